"""The pod of a search: the sweeper without any token, the publisher beside it with the only one.

It passes PodSecurity ``restricted``: numeric user, read-only roots, no capability, no privilege.
"""

from collections.abc import Mapping
from typing import Any

from dgdr_api.canonical import canonical_json
from dgdr_api.group import ANNOTATION_REQUEST_NAME, GROUP
from dgdr_kube.resource import Object

from dgdr_operator.kinds import controller_name
from dgdr_operator.programs import (
    CLAIMS,
    CONFIG_MAPS,
    PUBLISHER,
    RUN_ANNOTATION,
    RUN_FILE,
    SWEEPER,
    WORKSPACE,
    publisher_command,
    socket_is_there,
    sweeper_command,
)
from dgdr_operator.settings import JobSettings

USER = 65532
TOKEN_SECONDS = 3600
"""The kubelet renews the token when four fifths of this are over."""
STARTUP_SECONDS = 120
_TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105 - where clients look for it
_TEMPORARY = "/tmp"  # noqa: S108 - a volume of the container's own
_OVERRIDABLE = ("tolerations", "nodeSelector", "affinity", "priorityClassName", "imagePullSecrets")


def build_pod_template(
    run: Object, labels: Mapping[str, str], override: Mapping[str, Any], settings: JobSettings
) -> dict[str, Any]:
    """Return the template of a run's pods.

    Args:
        run: as the API server holds it.
        labels: by which the pods are found.
        override: ``overrides.profilingJob.template``, of the form that `dgdr_api.free_form` admits.
        settings: what all Jobs of this installation have in common.
    """
    extra, spec = override.get("metadata", {}), override.get("spec", {})
    annotations = {
        ANNOTATION_REQUEST_NAME: controller_name(run),
        RUN_ANNOTATION: run_text(run),
    }
    return {
        "metadata": {
            "labels": {**extra.get("labels", {}), **labels},
            "annotations": {**extra.get("annotations", {}), **annotations},
        },
        "spec": _pod_spec(run, spec.get("containers", [{}])[0].get("resources", {}), settings)
        | {name: spec[name] for name in _OVERRIDABLE if name in spec},
    }


def run_text(run: Object) -> str:
    """Return what the sweeper reads: the run without status, and of its metadata what identifies it."""
    meta = run["metadata"]
    metadata = {name: meta[name] for name in ("name", "namespace", "uid")} | {
        kind: {name: text for name, text in (meta.get(kind) or {}).items() if name.startswith(f"{GROUP}/")}
        for kind in ("labels", "annotations")
    }
    return canonical_json({name: run[name] for name in ("apiVersion", "kind", "spec")} | {"metadata": metadata})


def _pod_spec(run: Object, resources: Mapping[str, Any], settings: JobSettings) -> dict[str, Any]:
    meta = run["metadata"]
    inputs = _inputs(run["spec"])
    secrets = {"imagePullSecrets": [{"name": name} for name in settings.image_pull_secrets]}
    return {
        "restartPolicy": "Never",
        "serviceAccountName": meta["name"],
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": settings.grace_period_s,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "fsGroup": USER,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "initContainers": [_publisher(meta["namespace"], meta["name"], settings)],
        "containers": [_sweeper(run["spec"], inputs, resources, settings)],
        "volumes": [*_own_volumes(settings), *({"name": name, **source} for name, _, source in inputs)],
    } | (secrets if settings.image_pull_secrets else {})


def _sweeper(
    spec: Mapping[str, Any],
    inputs: list[tuple[str, str, dict[str, Any]]],
    resources: Mapping[str, Any],
    settings: JobSettings,
) -> dict[str, Any]:
    mounts = [
        {"name": "run", "mountPath": RUN_FILE.rpartition("/")[0], "readOnly": True},
        {"name": "sweeper-tmp", "mountPath": _TEMPORARY},
        *({"name": name, "mountPath": path, "readOnly": True} for name, path, _ in inputs),
    ]
    merged = {
        kind: {**settings.sweeper_resources.get(kind, {}), **resources.get(kind, {})}
        for kind in ("requests", "limits")
        if kind in settings.sweeper_resources or kind in resources
    }
    container = _container(SWEEPER, spec.get("image") or settings.sweeper_image, sweeper_command(), merged, settings)
    secret = ((spec["workload"].get("trace") or {}).get("source") or {}).get("uri", {}).get("secret")
    return (
        container
        | {"volumeMounts": [*container["volumeMounts"], *mounts]}
        | ({"envFrom": [{"secretRef": {"name": secret}}]} if secret else {})
    )


def _publisher(namespace: str, run_name: str, settings: JobSettings) -> dict[str, Any]:
    command = publisher_command(namespace, run_name)
    container = _container(PUBLISHER, settings.publisher_image, command, settings.publisher_resources, settings)
    mounts = [
        {"name": "token", "mountPath": _TOKEN_PATH, "readOnly": True},
        {"name": "publisher-tmp", "mountPath": _TEMPORARY},
    ]
    return container | {
        "restartPolicy": "Always",
        "startupProbe": {
            "exec": {"command": socket_is_there()},
            "periodSeconds": 1,
            "timeoutSeconds": 5,
            "failureThreshold": STARTUP_SECONDS,
        },
        "volumeMounts": [*container["volumeMounts"], *mounts],
    }


def _container(
    name: str, image: str, command: list[str], resources: Mapping[str, Any], settings: JobSettings
) -> dict[str, Any]:
    return {
        "name": name,
        "image": image,
        "imagePullPolicy": settings.image_pull_policy,
        "command": command,
        "env": [
            {"name": "POD_UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}},
            {"name": "HOME", "value": _TEMPORARY},
            {"name": "DGDR_CACHE_DIR", "value": f"{WORKSPACE}/cache"},
        ],
        "resources": {kind: dict(amounts) for kind, amounts in resources.items()},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [{"name": "workspace", "mountPath": WORKSPACE}],
    }


def _own_volumes(settings: JobSettings) -> list[dict[str, Any]]:
    medium = {"medium": settings.workspace_medium} if settings.workspace_medium else {}
    annotation = {"fieldRef": {"fieldPath": f"metadata.annotations['{RUN_ANNOTATION}']"}}
    return [
        {"name": "workspace", "emptyDir": {**medium, "sizeLimit": settings.workspace_size}},
        {"name": "sweeper-tmp", "emptyDir": {"sizeLimit": "1Gi"}},
        {"name": "publisher-tmp", "emptyDir": {"sizeLimit": "256Mi"}},
        {"name": "run", "downwardAPI": {"items": [{"path": RUN_FILE.rpartition("/")[2], **annotation}]}},
        {"name": "token", "projected": {"sources": _token_sources()}},
    ]


def _token_sources() -> list[dict[str, Any]]:
    """Return what a client in a pod looks for: a short-lived token, the server's certificate, its own namespace."""
    namespace = {"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}
    return [
        {"serviceAccountToken": {"path": "token", "expirationSeconds": TOKEN_SECONDS}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [namespace]}},
    ]


def _inputs(spec: Mapping[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    """Return volume name, mount path and source of everything that the request names, each once, read-only."""
    model, trace = spec["modelRef"], spec["workload"].get("trace") or {}
    claims = [
        ((trace.get("source") or {}).get("pvc") or {}).get("claimName"),
        ((model.get("cache") or {}).get("pvc") or {}).get("name"),
    ]
    named = dict.fromkeys(claim for claim in claims if claim)
    found = [
        (
            f"claim-{index}",
            f"{CLAIMS}/{claim}",
            {"persistentVolumeClaim": {"claimName": claim, "readOnly": True}},
        )
        for index, claim in enumerate(named)
    ]
    config = ((model.get("config") or {}).get("configMap") or {}).get("name")
    if config:
        found.append(("model-config", f"{CONFIG_MAPS}/{config}", {"configMap": {"name": config}}))
    return found
