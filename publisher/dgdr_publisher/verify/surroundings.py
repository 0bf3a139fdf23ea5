"""What the request determines beside the candidate: images, nodes, model files. Read from the request itself."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dgdr_api.errors import UnknownSku
from dgdr_api.images import image_for, tag_of
from dgdr_api.replay_spec import Role
from dgdr_api.request import SearchSpec
from dgdr_api.skus import GPU_PRODUCT_LABEL, Sku, resolve_sku
from dgdr_api.terms import Backend
from dgdr_api.versions import engine_version, runtime_version

from dgdr_publisher.verify.reading import Difference, EngineReading, PodReading, WorkerReading


@dataclass(frozen=True)
class Surroundings:
    """A request, or nothing: then only what candidate and catalogs determine is checked."""

    spec: SearchSpec | None = None
    namespace: str = "default"


def check_nodes(role: Role, worker: WorkerReading, around: Surroundings) -> Iterator[Difference]:
    """Whether the pods go to nodes of the role's SKU and fit them."""
    where, found = f"{worker.component}.nodeSelector", dict(worker.node_selector)
    try:
        sku = resolve_sku(role.sku)
    except UnknownSku as error:
        yield Difference(where, "nodes of a known SKU", str(error))
        return
    if around.spec is None:
        product = found.get(GPU_PRODUCT_LABEL)
        if not found or (product is not None and _other_sku(product, sku)):
            yield Difference(where, f"nodes of {role.sku}", str(found))
        return
    gpu = around.spec.hardware.gpu
    expected = _selector_of(gpu.node_selector, sku)
    if found != expected:
        yield Difference(where, str(expected), str(found))
    per_node = gpu.per_node or sku.gpus_per_node
    if worker.gpus_per_pod > per_node:
        yield Difference(f"{worker.component}.nvidia.com/gpu", f"at most {per_node} a node", str(worker.gpus_per_pod))
    if worker.node_count > 1 and role.gpus_per_worker <= per_node:
        yield Difference(f"{worker.component}.multinode", f"none: a node has {per_node} GPUs", str(worker.node_count))


def check_image(
    backend: Backend, version: str, component: str, pod: PodReading, around: Surroundings
) -> Iterator[Difference]:
    """Whether the image carries the engine of that version, by its tag or the override, and is the request's."""
    runtime = runtime_version(pod.image, pod.runtime_version_override)
    if runtime is None or engine_version(runtime, backend) != version:
        found = "an unknown version" if runtime is None else f"Dynamo {runtime}"
        yield Difference(f"{component}.image", f"one that carries {backend} {version}", f"{pod.image}, {found}")
    if image_for(pod.image, backend) != pod.image:
        yield Difference(f"{component}.image", image_for(pod.image, backend), pod.image)
    if around.spec is not None:
        asked = around.spec.runtime
        if image_for(asked.image, backend) != pod.image:
            yield Difference(f"{component}.image", image_for(asked.image, backend), pod.image)
        named = runtime_version(image_for(asked.image, backend), asked.version_override)
        if named != runtime:
            yield Difference(f"{component}.runtimeVersionOverride", f"Dynamo {named}", f"Dynamo {runtime}")
    if pod.runtime_version_override is None and runtime_version(pod.image) is None:
        yield Difference(
            f"{component}.runtimeVersionOverride", "a version", f"none, and the tag is {tag_of(pod.image)}"
        )


def check_model(component: str, engine: EngineReading, around: Surroundings) -> Iterator[Difference]:
    """Whether the worker reads the model that the request names, from where it says."""
    if around.spec is None:
        return
    ref = around.spec.model_ref
    if engine.trust_remote_code != (ref.remote_code != "Never"):
        yield Difference(f"{component}.trust remote code", ref.remote_code, str(engine.trust_remote_code))
    folder = ref.cache.pvc.model_path if ref.cache is not None else ""
    pinned = folder or ref.remote_code == "TrustCacheAndRevision"
    if engine.model.startswith("/") != bool(pinned):
        yield Difference(f"{component}.model", "a folder" if pinned else ref.name, engine.model)
    if folder and not engine.model.endswith("/" + folder.strip("/")):
        yield Difference(f"{component}.model", f"a path that ends in {folder}", engine.model)
    if pinned and not folder and not engine.model.endswith(f"/snapshots/{ref.revision}"):
        yield Difference(f"{component}.model", f"the snapshot {ref.revision}", engine.model)
    if not pinned and engine.revision != ref.revision:
        yield Difference(f"{component}.args.--revision", str(ref.revision), str(engine.revision))


def check_cache(component: str, pod: PodReading, around: Surroundings) -> Iterator[Difference]:
    """Whether claim, Hugging Face cache and token are those of the request."""
    if around.spec is None:
        return
    ref = around.spec.model_ref
    claims: dict[str, str] = {}
    hf_home = None
    if ref.cache is not None:
        mount = ref.cache.pvc.mount_path.rstrip("/")
        claims = {mount: ref.cache.pvc.name}
        hf_home = mount if not ref.cache.pvc.model_path else None
    token = None if ref.token_secret is None else (ref.token_secret.name, ref.token_secret.key)
    for name, expected, found in (
        ("volumeMounts", claims, dict(pod.claims)),
        ("env.HF_HOME", hf_home, pod.hf_home),
        ("env.HF_TOKEN", token, pod.token_secret),
    ):
        if expected != found:
            yield Difference(f"{component}.{name}", str(expected), str(found))


def _selector_of(selectors: Mapping[str, Mapping[str, str]], sku: Sku) -> dict[str, str]:
    for name, labels in selectors.items():
        if resolve_sku(name) == sku:
            return dict(labels)
    return dict(sku.node_labels or {})


def _other_sku(product: str, sku: Sku) -> bool:
    try:
        return resolve_sku(product) != sku
    except UnknownSku:
        return False
