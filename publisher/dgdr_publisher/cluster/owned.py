"""Which part of a run's status the publisher owns: all but what the operator says of the run's life."""

from typing import Any

from dgdr_api import reasons
from dgdr_api.base import wire
from dgdr_api.run import RunStatus

FIELD_MANAGER = "dgdr-publisher"
_OF_THE_OPERATOR = ("phase", "jobRef", "startTime", "completionTime")


def owned_status(status: RunStatus) -> dict[str, Any]:
    """The status as the publisher applies it, whole: what an apply leaves out is deleted."""
    found = wire(status)
    for name in _OF_THE_OPERATOR:
        found.pop(name, None)
    found["conditions"] = [one for one in found["conditions"] if one["type"] != reasons.COMPLETED]
    return found
