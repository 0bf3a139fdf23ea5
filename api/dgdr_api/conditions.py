"""Conditions: how a request, a run and a candidate say where they stand. The reasons are in `dgdr_api.reasons`."""

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field

from dgdr_api.base import ApiModel
from dgdr_api.bounds import Label, Time
from dgdr_api.reasons import Reason

MAX_MESSAGE_BYTES = 1024
_CUT = "..."


class Condition(ApiModel):
    """One condition, in the form of Kubernetes."""

    type: Label
    """What the condition is about."""
    status: Literal["True", "False", "Unknown"]
    """Whether it holds."""
    reason: Label
    """Why, as one word; the documentation lists them all."""
    message: Annotated[str, Field(max_length=MAX_MESSAGE_BYTES)] = ""
    """Why, for a reader, with the values concerned."""
    last_transition_time: Time
    """When status last changed."""
    observed_generation: Annotated[int, Field(ge=0)] | None = None
    """Generation of the object that this answers."""


Conditions = Annotated[
    tuple[Condition, ...],
    Field(max_length=8, json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}),
]
"""At most one condition of each type."""


def condition(
    reason: Reason, message: str, *, now: str, previous: Iterable[Condition] = (), generation: int | None = None
) -> Condition:
    """Build a condition with the type and status that belong to ``reason``.

    Args:
        reason: one of `dgdr_api.reasons`.
        message: cut to 1,024 bytes.
        now: the time, RFC 3339 in UTC; it stands in the result only when the status changes.
        previous: conditions that the object has now.
        generation: generation of the object that is answered.
    """
    since = next((old.last_transition_time for old in previous if _same(old, reason)), now)
    return Condition(
        type=reason.type,
        status=reason.status,
        reason=reason.name,
        message=cut(message, MAX_MESSAGE_BYTES),
        last_transition_time=since,
        observed_generation=generation,
    )


def cut(text: str, limit: int) -> str:
    """Return ``text`` in at most ``limit`` bytes of UTF-8; a cut never splits a character and ends in three dots."""
    data = text.encode()
    if len(data) <= limit:
        return text
    return data[: limit - len(_CUT)].decode(errors="ignore") + _CUT


def _same(old: Condition, reason: Reason) -> bool:
    return old.type == reason.type and old.status == reason.status
