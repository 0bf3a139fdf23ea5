"""From a run's spec to the settings of one candidate's deployment."""

from dgdr_api.candidate import EvaluatedCandidate
from dgdr_api.errors import UnknownSku, VersionChainBroken
from dgdr_api.images import image_for, parse_tag, tag_of
from dgdr_api.model_ref import ModelRef
from dgdr_api.replay_spec import Role
from dgdr_api.request import SearchSpec
from dgdr_api.skus import catalog, resolve_sku
from dgdr_api.versions import resolve_chain

from dgdr_publisher.errors import NotRenderableError
from dgdr_publisher.render.deployment import Claim, Deployment, ModelSource, NodePool, SecretKey


def deployment_of(spec: SearchSpec, evaluated: EvaluatedCandidate) -> Deployment:
    """The settings that a request gives to a candidate.

    Raises:
        NotRenderableError: an override (not applied yet), a broken version chain, or one that ends at another engine
            or other performance data than were evaluated.
    """
    if spec.overrides.dgd:
        raise NotRenderableError("overrides.dgd", spec.overrides.dgd, "overrides are not applied yet: leave it out")
    backend = evaluated.candidate.backend
    image, override = image_for(spec.runtime.image, backend), spec.runtime.version_override
    runtimes = {_check_chain(spec, role) for role in evaluated.candidate.roles}
    return Deployment(
        model=_model(spec.model_ref),
        image=image,
        runtime_version=runtimes.pop(),
        runtime_version_override=_override(image, override),
        nodes={role.kind: _nodes(spec, role) for role in evaluated.candidate.roles},
    )


def _check_chain(spec: SearchSpec, role: Role) -> str:
    """Follow every link from the image to the data that timed the role; returns the Dynamo version of the image."""
    runtime = spec.runtime
    where = f"candidate.roles.{role.kind}"
    try:
        chain = resolve_chain(
            runtime.image,
            runtime.version_override,
            runtime.performance_data_version,
            role.backend,
            resolve_sku(role.sku).name,
        )
    except UnknownSku as error:
        raise NotRenderableError(f"{where}.sku", role.sku, str(error)) from error
    except VersionChainBroken as error:
        found = runtime.image if error.field == "runtime.image" else role.engine_version
        raise NotRenderableError(error.field, found, str(error)) from error
    if role.engine_version != chain.engine:
        raise NotRenderableError(
            f"{where}.engineVersion",
            role.engine_version,
            f"image {runtime.image} is Dynamo {chain.runtime}, which carries {role.backend} {chain.engine}",
        )
    if role.data_version != chain.performance_data:
        raise NotRenderableError(
            f"{where}.dataVersion",
            role.data_version,
            f"image {runtime.image} is Dynamo {chain.runtime}, which carries {role.backend} {chain.engine}, and the "
            f"request binds data of {chain.performance_data}; to use that of {role.data_version}, set "
            f"runtime.performanceDataVersion: {{{role.backend}: {role.data_version}}}",
        )
    return chain.runtime


def _override(image: str, version_override: str | None) -> str | None:
    """The override, only where the tag does not say the same: operators before 1.5 do not know the field."""
    parsed = parse_tag(tag_of(image) or "")
    return None if parsed is not None and version_override in (None, parsed[0]) else version_override


def _model(ref: ModelRef) -> ModelSource:
    pvc = None if ref.cache is None else ref.cache.pvc
    return ModelSource(
        name=ref.name,
        revision=ref.revision,
        remote_code=ref.remote_code,
        claim=None if pvc is None else Claim(pvc.name, pvc.mount_path, pvc.model_path),
        token_secret=None if ref.token_secret is None else SecretKey(ref.token_secret.name, ref.token_secret.key),
    )


def _nodes(spec: SearchSpec, role: Role) -> NodePool:
    gpu, sku = spec.hardware.gpu, resolve_sku(role.sku)
    given = {resolve_sku(name).name: labels for name, labels in gpu.node_selector.items()}
    selector = given.get(sku.name) or sku.node_labels
    if not selector:
        raise NotRenderableError(
            f"candidate.roles.{role.kind}.sku",
            role.sku,
            f"no node label is known for it: set hardware.gpu.nodeSelector.{role.sku}",
        )
    return NodePool(
        gpus_per_node=gpu.per_node or catalog()[sku.name].gpus_per_node,
        node_selector=dict(selector),
        tolerations=tuple(dict(toleration) for toleration in sku.tolerations),
        shared_memory_size=sku.shm_size_decode if role.kind == "decode" else sku.shm_size,
    )
