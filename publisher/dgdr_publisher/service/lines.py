"""Lines of ``application/x-ndjson`` as events of wire version 1."""

from collections.abc import Iterator

from dgdr_api.events import Event
from pydantic import TypeAdapter, ValidationError

from dgdr_publisher.errors import MalformedLineError

_EVENT: TypeAdapter[Event] = TypeAdapter(Event)
_KINDS = frozenset(
    {"search.resolved", "evaluations", "candidate", "round.completed", "search.completed", "search.failed"}
)
_MAX_PROBLEM, _MAX_SHOWN = 200, 100


def lines_of(body: bytes) -> list[bytes]:
    """The lines that are not empty."""
    return [line for line in body.split(b"\n") if line.strip()]


def parsed(lines: list[bytes]) -> Iterator[Event]:
    """The events, one by one, so that those before a malformed line are still taken.

    Raises:
        MalformedLineError: a line is no event.
    """
    for number, line in enumerate(lines, start=1):
        try:
            yield _EVENT.validate_json(line)
        except ValidationError as error:
            raise _malformed(number, error) from error


def _malformed(number: int, error: ValidationError) -> MalformedLineError:
    first = error.errors(include_url=False)[0]
    steps = [str(step) for step in first["loc"]]
    if steps and steps[0] in _KINDS:  # pydantic says first which kind of event it took the line for
        steps = steps[1:]
    field = "type" if first["type"].startswith("union_tag") else ".".join(steps)
    found = repr(first.get("input"))
    shown = "" if len(found) > _MAX_SHOWN else f"; found {found}"
    return MalformedLineError(number, field, f"{first['msg'][:_MAX_PROBLEM]}{shown}")
