"""Reads a v1beta1 DynamoGraphDeployment back: components, pods, images, arguments.

Only fields that this publisher writes are accepted, so that nothing unread can change what runs. What the operator
injects or replaces (discovery, probes, /dev/shm) must not be there.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dgdr_publisher.verify import sglang, vllm
from dgdr_publisher.verify.arguments import ArgumentsError
from dgdr_publisher.verify.frontend import MODULE as FRONTEND_MODULE
from dgdr_publisher.verify.frontend import read_frontend
from dgdr_publisher.verify.reading import (
    DeploymentReading,
    Difference,
    EngineReading,
    FrontendReading,
    PodReading,
    WorkerReading,
)

ENGINES: Mapping[str, tuple[str, Callable[[Sequence[str]], EngineReading]]] = {
    "vllm": (vllm.MODULE, vllm.read_engine),
    "sglang": (sglang.MODULE, sglang.read_engine),
}
_KIND_OF_TYPE = {"worker": "agg", "prefill": "prefill", "decode": "decode"}
_SPEC = frozenset({"backendFramework", "components"})
_COMPONENT = frozenset(
    {"name", "type", "replicas", "multinode", "sharedMemorySize", "podTemplate", "runtimeVersionOverride"}
)
_ONLY_OF_WORKERS = frozenset({"multinode", "sharedMemorySize"})
_POD = frozenset({"nodeSelector", "tolerations", "containers", "volumes"})
_POD_ONLY_OF_WORKERS = frozenset({"nodeSelector", "tolerations"})
_CONTAINER = frozenset({"name", "image", "command", "args", "env", "resources", "volumeMounts"})
_GPU = "nvidia.com/gpu"
_ENV = frozenset({"HF_HOME", "HF_TOKEN"})


class UnreadableError(ValueError):
    """A deployment that does not say what it deploys; carries the difference."""

    def __init__(self, difference: Difference) -> None:
        self.difference = difference
        super().__init__(str(difference))


def read_back(dgd: Mapping[str, Any]) -> DeploymentReading:
    """What a deployment deploys.

    Raises:
        UnreadableError: a field that is unknown, missing or of the wrong kind, or arguments that the program refuses.
    """
    for field, expected in (("apiVersion", "nvidia.com/v1beta1"), ("kind", "DynamoGraphDeployment")):
        if dgd.get(field) != expected:
            raise UnreadableError(Difference(field, expected, repr(dgd.get(field))))
    name = _get(_get(dgd, "metadata", dict, ""), "name", str, "metadata")
    spec = _get(dgd, "spec", dict, "")
    _only(spec, _SPEC, "spec")
    backend = _get(spec, "backendFramework", str, "spec")
    if backend not in ENGINES:
        raise UnreadableError(Difference("spec.backendFramework", " or ".join(ENGINES), backend))
    frontends, workers = [], []
    for component in _list(spec, "components", "spec"):
        _only(component, _COMPONENT, "spec.components")
        if component.get("type") == "frontend":
            frontends.append(_frontend(component))
        else:
            workers.append(_worker(component, backend))
    if len(frontends) != 1:
        raise UnreadableError(Difference("spec.components", "one frontend", str(len(frontends))))
    return DeploymentReading(name=name, backend=backend, frontend=frontends[0], workers=tuple(workers))


def _frontend(component: Mapping[str, Any]) -> FrontendReading:
    name, pod, container = _parts(component, FRONTEND_MODULE)
    _only(component, _COMPONENT - _ONLY_OF_WORKERS, name)
    _only(pod, _POD - _POD_ONLY_OF_WORKERS, f"{name}.podTemplate.spec")
    _only(container, _CONTAINER - {"resources"}, f"{name}.main")
    try:
        options = read_frontend(_get(container, "args", list, name))
    except ArgumentsError as error:
        raise UnreadableError(Difference(f"{name}.args", "arguments that the frontend takes", str(error))) from error
    return FrontendReading(
        component=name,
        replicas=_get(component, "replicas", int, name),
        router_mode=options.router_mode,
        model_name=options.model_name,
        model_path=options.model_path,
        trust_remote_code=options.trust_remote_code,
        pod=_pod(component, pod, container, name),
    )


def _worker(component: Mapping[str, Any], backend: str) -> WorkerReading:
    module, read_engine = ENGINES[backend]
    name, pod, container = _parts(component, module)
    kind = _KIND_OF_TYPE.get(_get(component, "type", str, name))
    if kind is None:
        raise UnreadableError(Difference(f"{name}.type", " or ".join(_KIND_OF_TYPE), component["type"]))
    try:
        engine = read_engine(_get(container, "args", list, name))
    except ArgumentsError as error:
        raise UnreadableError(Difference(f"{name}.args", "arguments that the engine takes", str(error))) from error
    multinode = _get(component, "multinode", dict, name) if "multinode" in component else None
    _only(multinode or {}, frozenset({"nodeCount"}), f"{name}.multinode")
    return WorkerReading(
        component=name,
        kind=kind,
        replicas=_get(component, "replicas", int, name),
        node_count=1 if multinode is None else _get(multinode, "nodeCount", int, f"{name}.multinode"),
        gpus_per_pod=_gpus(container, name),
        node_selector=_labels(pod, name),
        pod=_pod(component, pod, container, name),
        engine=engine,
    )


def _gpus(container: Mapping[str, Any], name: str) -> int:
    """GPUs of a pod: its limit. Requests are the same or absent, as for every extended resource; claims add devices."""
    resources = _get(container, "resources", dict, name)
    _only(resources, frozenset({"limits", "requests"}), f"{name}.resources")
    limits = _get(resources, "limits", dict, f"{name}.resources")
    _only(limits, frozenset({_GPU}), f"{name}.resources.limits")
    gpus: str = _get(limits, _GPU, str, f"{name}.resources.limits")
    if re.fullmatch("[1-9][0-9]{0,4}", gpus) is None:
        raise UnreadableError(Difference(f"{name}.resources.limits.{_GPU}", "a whole number", gpus))
    requests = resources.get("requests", limits)
    if requests != limits:
        raise UnreadableError(Difference(f"{name}.resources.requests", f"the limits, {limits}", repr(requests)))
    return int(gpus)


def _parts(component: Mapping[str, Any], module: str) -> tuple[str, Mapping[str, Any], Mapping[str, Any]]:
    """Name, pod spec and main container of a component that runs ``python3 -m module``."""
    name: str = _get(component, "name", str, "spec.components")
    template = _get(component, "podTemplate", dict, name)
    _only(template, frozenset({"spec"}), f"{name}.podTemplate")
    pod = _get(template, "spec", dict, name)
    _only(pod, _POD, f"{name}.podTemplate.spec")
    containers = _list(pod, "containers", name)
    if [container.get("name") for container in containers] != ["main"]:
        raise UnreadableError(Difference(f"{name}.containers", "the one container main", repr(containers)))
    container = containers[0]
    _only(container, _CONTAINER, f"{name}.main")
    if container.get("command") != ["python3", "-m", module]:
        raise UnreadableError(Difference(f"{name}.command", f"python3 -m {module}", repr(container.get("command"))))
    return name, pod, container


def _pod(component: Mapping[str, Any], pod: Mapping[str, Any], container: Mapping[str, Any], name: str) -> PodReading:
    env: dict[str, Mapping[str, Any]] = {}
    for entry in _list(container, "env", name):
        variable = _get(entry, "name", str, f"{name}.env")
        if variable not in _ENV or variable in env:
            raise UnreadableError(
                Difference(f"{name}.env", f"each of {', '.join(sorted(_ENV))} at most once", variable)
            )
        _only(entry, frozenset({"name", "value" if variable == "HF_HOME" else "valueFrom"}), f"{name}.env.{variable}")
        env[variable] = entry
    versioned = "runtimeVersionOverride" in component
    return PodReading(
        image=_get(container, "image", str, name),
        runtime_version_override=_get(component, "runtimeVersionOverride", str, name) if versioned else None,
        hf_home=_get(env["HF_HOME"], "value", str, f"{name}.env.HF_HOME") if "HF_HOME" in env else None,
        token_secret=_secret(env["HF_TOKEN"], name) if "HF_TOKEN" in env else None,
        claims=_claims(pod, container, name),
    )


def _labels(pod: Mapping[str, Any], name: str) -> dict[str, str]:
    selector = _get(pod, "nodeSelector", dict, name)
    return {label: _get(selector, label, str, f"{name}.nodeSelector") for label in selector}


def _secret(entry: Mapping[str, Any], name: str) -> tuple[str, str]:
    where = f"{name}.env.HF_TOKEN"
    source = _get(entry, "valueFrom", dict, where)
    _only(source, frozenset({"secretKeyRef"}), f"{where}.valueFrom")
    reference = _get(source, "secretKeyRef", dict, f"{where}.valueFrom")
    _only(reference, frozenset({"name", "key"}), f"{where}.valueFrom.secretKeyRef")
    return _get(reference, "name", str, where), _get(reference, "key", str, where)


def _claims(pod: Mapping[str, Any], container: Mapping[str, Any], name: str) -> dict[str, str]:
    """Claim by mount path: each path once, each volume a claim, none at /dev/shm, which the operator owns."""
    volumes: dict[str, str] = {}
    for volume in _list(pod, "volumes", name):
        title = _get(volume, "name", str, f"{name}.volumes")
        _only(volume, frozenset({"name", "persistentVolumeClaim"}), f"{name}.volumes.{title}")
        claim = _get(volume, "persistentVolumeClaim", dict, f"{name}.volumes.{title}")
        _only(claim, frozenset({"claimName"}), f"{name}.volumes.{title}")
        if title in volumes:
            raise UnreadableError(Difference(f"{name}.volumes", "each name once", title))
        volumes[title] = _get(claim, "claimName", str, f"{name}.volumes.{title}")
    found: dict[str, str] = {}
    for mount in _list(container, "volumeMounts", name):
        _only(mount, frozenset({"name", "mountPath"}), f"{name}.volumeMounts")
        path, title = (_get(mount, field, str, f"{name}.volumeMounts") for field in ("mountPath", "name"))
        if path in found or path == "/dev/shm" or title not in volumes:  # noqa: S108 - the operator owns that mount
            raise UnreadableError(
                Difference(
                    f"{name}.volumeMounts", f"one mount of {', '.join(volumes) or 'nothing'}", f"{title} at {path}"
                )
            )
        found[path] = volumes[title]
    return found


def _only(found: object, known: frozenset[str], where: str) -> None:
    if not isinstance(found, Mapping):
        raise UnreadableError(Difference(where, "an object", repr(found)))
    unknown = sorted(str(field) for field in set(found) - known)
    if unknown:
        raise UnreadableError(Difference(where, "the fields " + ", ".join(sorted(known)), ", ".join(unknown)))


def _list(parent: Mapping[str, Any], field: str, where: str) -> list[Mapping[str, Any]]:
    """A list of objects; absent is empty."""
    found = parent.get(field, [])
    if not isinstance(found, list) or not all(isinstance(item, Mapping) for item in found):
        raise UnreadableError(Difference(f"{where}.{field}", "a list of objects", repr(found)))
    return found


def _get(parent: Mapping[str, Any], field: str, kind: type, where: str) -> Any:  # noqa: ANN401 - of the kind asked for
    found = parent.get(field)
    if not isinstance(found, kind) or (kind is int and isinstance(found, bool)):
        place = f"{where}.{field}".lstrip(".")
        raise UnreadableError(Difference(place, f"a value of type {kind.__name__}", repr(found)))
    return found
