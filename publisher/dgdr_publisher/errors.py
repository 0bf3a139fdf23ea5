"""The exceptions of this room.

::

    PublisherError
    ├── RenderError                 one candidate cannot become a deployment; the others still can
    │   ├── NotRenderableError      a field and value that this renderer, template or backend cannot express
    │   ├── UnmappedValueError      an evaluated value without destination or reason, or one that did not arrive
    │   └── ReadBackDifferenceError the rendered deployment reads back as another one than was evaluated
    ├── DocumentError               a document that is no candidate
    ├── EventError                  an event that cannot follow the ones before
    │   └── SequenceGapError        the sequence number that is expected instead
    ├── ReportError                 a report that is not there, or not whole
    ├── MalformedLineError          a line of events that is none: which line, which field
    └── StoreError                  a place that cannot take what is to be published
        ├── BusyError               it may take it later
        └── RefusedError            it will not take it, however often it is asked
"""

from collections.abc import Sequence
from typing import Any


class PublisherError(Exception):
    """Whatever this room raises."""


class RenderError(PublisherError):
    """One candidate cannot become a deployment."""


class NotRenderableError(RenderError):
    """A value that cannot be expressed as a deployment.

    Attributes:
        field: where the value stands, e.g. ``candidate.roles.decode.shape.cp``.
        value: what was found there.
        reason: why it cannot be rendered, and what could.
    """

    def __init__(self, field: str, value: Any, reason: str) -> None:  # noqa: ANN401 - whatever stands in the document
        self.field, self.value, self.reason = field, value, reason
        super().__init__(f"{field} = {value!r} cannot be rendered: {reason}")


class UnmappedValueError(RenderError):
    """An evaluated value that has no destination in the deployment, no reason why not, or did not arrive there."""

    def __init__(self, parameter: str, value: Any, cause: str) -> None:  # noqa: ANN401 - any leaf of the document
        self.parameter, self.value, self.cause = parameter, value, cause
        super().__init__(f"{parameter} = {value!r} is not materialized: {cause}")


class ReadBackDifferenceError(RenderError):
    """The rendered deployment reads back as another one than was evaluated."""

    def __init__(self, differences: Sequence[str]) -> None:
        self.differences = tuple(differences)
        super().__init__("the rendered deployment reads back differently: " + "; ".join(self.differences))


class DocumentError(PublisherError):
    """A document that is no candidate, with what was found and what is accepted."""


class EventError(PublisherError):
    """An event that cannot follow the ones before."""


class SequenceGapError(EventError):
    """An event came out of order.

    Attributes:
        expected_seq: the sequence number from which the sender must repeat.
    """

    def __init__(self, expected_seq: int, found_seq: int) -> None:
        self.expected_seq, self.found_seq = expected_seq, found_seq
        super().__init__(f"event {found_seq} came, {expected_seq} is expected: send again from there")


class StoreError(PublisherError):
    """A place that cannot take what is to be published."""


class BusyError(StoreError):
    """A place that may take it later: try again.

    Attributes:
        retry_after_s: seconds that it asks to wait; None: it does not say.
        conflict: whether somebody else wrote in between.
    """

    def __init__(self, message: str, retry_after_s: float | None = None, *, conflict: bool = False) -> None:
        self.retry_after_s, self.conflict = retry_after_s, conflict
        super().__init__(message)


class RefusedError(StoreError):
    """A place that will not take it, however often it is asked."""


class ReportError(PublisherError):
    """A report that is not there, or not whole."""


class MalformedLineError(PublisherError):
    """A line that is no event.

    Attributes:
        line: its number in the request, from 1.
        field: the field that is wrong, e.g. ``data.counters.feasible``; empty: the whole line.
        problem: what is wrong with it.
    """

    def __init__(self, line: int, field: str, problem: str) -> None:
        self.line, self.field, self.problem = line, field, problem
        super().__init__(f"line {line}: {field or 'the line'}: {problem}")
