"""A Kubernetes Event about an object: what ``kubectl describe`` and ``kubectl get events`` show."""

import hashlib
from typing import Any, Literal

from dgdr_kube.resource import EVENT, Object

MAX_NOTE_BYTES = 1024
_NAME_DIGITS = 16


def build_event(
    about: Object,
    *,
    type: Literal["Normal", "Warning"],  # noqa: A002 - its name in the API
    reason: str,
    message: str,
    now: str,
    component: str,
) -> dict[str, Any]:
    """Return the Event. Equal events about the same object have one name, so that none is written twice.

    Args:
        about: the object; its apiVersion, kind and metadata are used.
        type: Normal, or Warning when a person should look.
        reason: CamelCase.
        message: for a reader; cut to 1,024 bytes.
        now: RFC 3339 in UTC.
        component: who says it.
    """
    meta = about["metadata"]
    said = hashlib.sha256("\n".join((meta["uid"], reason, message)).encode()).hexdigest()[:_NAME_DIGITS]
    return {
        "apiVersion": EVENT.api_version,
        "kind": EVENT.kind,
        "metadata": {"name": f"{meta['name']}.{said}", "namespace": meta["namespace"]},
        "involvedObject": {
            "apiVersion": about["apiVersion"],
            "kind": about["kind"],
            "namespace": meta["namespace"],
            "name": meta["name"],
            "uid": meta["uid"],
        },
        "type": type,
        "reason": reason,
        "message": message.encode()[:MAX_NOTE_BYTES].decode(errors="ignore"),
        "source": {"component": component},
        "reportingComponent": component,
        "reportingInstance": component,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }
