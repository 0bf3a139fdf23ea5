"""A run's Job and what the Job needs, as values: run in, objects out. What the pod looks like is in `pod_template`."""

from collections.abc import Mapping
from typing import Any

from dgdr_api.group import (
    ANNOTATION_REQUEST_NAME,
    API_VERSION,
    LABEL_GENERATION,
    LABEL_REQUEST_UID,
    LABEL_RUN_UID,
    RUN_KIND,
)
from dgdr_kube.resource import JOB, ROLE_BINDING, SERVICE_ACCOUNT, Object

from dgdr_operator.kinds import controller_name, controller_uid, generation_of
from dgdr_operator.pod_template import build_pod_template
from dgdr_operator.programs import NEVER_RETRY_EXIT_CODE, SWEEPER
from dgdr_operator.settings import JobSettings

BACKOFF_LIMIT = 3


def build_job(run: Object, settings: JobSettings) -> dict[str, Any]:
    """Return the Job of a run, with the request's ``overrides.profilingJob`` merged in.

    Args:
        run: as the API server holds it.
        settings: what all Jobs of this installation have in common.
    """
    override: Mapping[str, Any] = run["spec"].get("overrides", {}).get("profilingJob") or {}
    metadata = build_metadata(run)
    extra = override.get("metadata", {})
    return {
        "apiVersion": JOB.api_version,
        "kind": JOB.kind,
        "metadata": metadata
        | {
            "labels": {**extra.get("labels", {}), **metadata["labels"]},
            "annotations": {**extra.get("annotations", {}), **metadata["annotations"]},
        },
        "spec": {
            "completions": 1,
            "parallelism": 1,
            "backoffLimit": BACKOFF_LIMIT,
            "podReplacementPolicy": "Failed",
            "activeDeadlineSeconds": override.get("activeDeadlineSeconds", settings.active_deadline_s),
            "ttlSecondsAfterFinished": override.get("ttlSecondsAfterFinished", settings.ttl_s),
            "podFailurePolicy": {
                "rules": [
                    {
                        "action": "FailJob",
                        "onExitCodes": {
                            "containerName": SWEEPER,
                            "operator": "In",
                            "values": [NEVER_RETRY_EXIT_CODE],
                        },
                    },
                    {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
                ]
            },
            "template": build_pod_template(run, build_labels(run), override.get("template", {}), settings),
        },
    }


def build_service_account(run: Object) -> dict[str, Any]:
    """Return the run's service account. No pod gets its token unasked."""
    return {
        "apiVersion": SERVICE_ACCOUNT.api_version,
        "kind": SERVICE_ACCOUNT.kind,
        "metadata": build_metadata(run),
        "automountServiceAccountToken": False,
    }


def build_role_binding(run: Object, settings: JobSettings) -> dict[str, Any]:
    """Return what lets the run's service account publish, in the run's namespace alone."""
    name, namespace = run["metadata"]["name"], run["metadata"]["namespace"]
    return {
        "apiVersion": ROLE_BINDING.api_version,
        "kind": ROLE_BINDING.kind,
        "metadata": build_metadata(run),
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": settings.publisher_cluster_role,
        },
        "subjects": [{"kind": SERVICE_ACCOUNT.kind, "name": name, "namespace": namespace}],
    }


def build_metadata(run: Object) -> dict[str, Any]:
    """Return the metadata of an object that belongs to a run: its name, and gone with it."""
    meta = run["metadata"]
    return {
        "name": meta["name"],
        "namespace": meta["namespace"],
        "labels": build_labels(run),
        "annotations": {ANNOTATION_REQUEST_NAME: controller_name(run)},
        "ownerReferences": [
            {
                "apiVersion": API_VERSION,
                "kind": RUN_KIND,
                "name": meta["name"],
                "uid": meta["uid"],
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }


def build_labels(run: Object) -> dict[str, str]:
    """Return the labels by which Jobs and pods of a run are found."""
    return {
        "app.kubernetes.io/name": "dgdr",
        "app.kubernetes.io/component": "search",
        "app.kubernetes.io/managed-by": "dgdr-operator",
        LABEL_REQUEST_UID: controller_uid(run),
        LABEL_GENERATION: str(generation_of(run)),
        LABEL_RUN_UID: run["metadata"]["uid"],
    }
