"""The kinds that the operator reads and writes, and how an object says what it belongs to."""

from typing import Any

from dgdr_api.group import API_VERSION, LABEL_GENERATION, REQUEST_KIND, RUN_KIND
from dgdr_kube.resource import EVENT, JOB, POD, ROLE_BINDING, SERVICE_ACCOUNT, Object, Resource

__all__ = ["EVENT", "JOB", "POD", "REQUEST", "ROLE_BINDING", "RUN", "SERVICE_ACCOUNT"]

REQUEST = Resource(API_VERSION, REQUEST_KIND, "dynamographdeploymentrequests")
RUN = Resource(API_VERSION, RUN_KIND, "dynamographdeploymentruns")

FIELD_MANAGER = "dgdr-operator"
"""Under this name the operator owns what it writes."""


def controller_of(value: Object) -> dict[str, Any] | None:
    """Return the owner reference of the object that manages this one."""
    owners = value["metadata"].get("ownerReferences") or ()
    return next((owner for owner in owners if owner.get("controller")), None)


def controller_uid(value: Object) -> str:
    """Return the uid of the object that manages this one; empty: none does."""
    owner = controller_of(value)
    return "" if owner is None else str(owner["uid"])


def controller_name(value: Object) -> str:
    """Return the name of the object that manages this one; empty: none does."""
    owner = controller_of(value)
    return "" if owner is None else str(owner["name"])


def generation_of(run: Object) -> int:
    """Return the generation of the request that a run answers; 0 when its label was taken away."""
    label = (run["metadata"].get("labels") or {}).get(LABEL_GENERATION, "")
    return int(label) if label.isdecimal() else 0


def condition_of(value: Object, type: str) -> dict[str, Any] | None:  # noqa: A002 - its name in the API
    """Return a condition of an object, if it has one of this type."""
    conditions = (value.get("status") or {}).get("conditions") or ()
    return next((found for found in conditions if found.get("type") == type), None)


def is_deleted(value: Object) -> bool:
    """Whether deletion was asked for."""
    return bool(value["metadata"].get("deletionTimestamp"))
