"""What the events of a run say, as a value: each event makes the next state. Pure, so a journal can be replayed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from dgdr_api import reasons
from dgdr_api.candidate import EvaluatedCandidate
from dgdr_api.events import (
    CandidateEvent,
    Completed,
    CompletedEvent,
    Counters,
    Evaluations,
    EvaluationsEvent,
    Event,
    Failed,
    FailedEvent,
    ResolvedEvent,
    RoundCompleted,
    RoundCompletedEvent,
    VersionLink,
)
from dgdr_api.run import RunOutcome, RunStatus

from dgdr_publisher import run_status
from dgdr_publisher.errors import EventError, SequenceGapError
from dgdr_publisher.points import taken

Mode = Literal["optimize", "pareto"]


@dataclass(frozen=True, kw_only=True)
class SearchState:
    """Everything that is known of a search.

    Before ``search.resolved`` only that event or ``search.failed`` may come; after a terminal event nothing new. A
    second ``search.resolved`` begins the search again: after a crash of the engine, or in another pod.
    """

    status: RunStatus
    """Status of the run without what publication adds to it."""
    attempt: str | None = None
    seq: int = 0
    """The last event of the attempt that was taken."""
    resolved: bool = False
    caught_up: bool = True
    """Whether a search that began again has come as far as the one before it; until then it shows nothing."""
    candidates: Mapping[str, EvaluatedCandidate] = field(default_factory=dict)
    batches: tuple[Evaluations, ...] = ()
    earlier: tuple[Evaluations, ...] = ()
    """Points of searches that did not come to their end."""
    versions: tuple[VersionLink, ...] = ()
    reserve: tuple[str, ...] = ()
    """Ids of the current reserve, best first."""
    outcome: RunOutcome | None = None
    """How the search ended; candidates may still have to be published."""

    @property
    def failed(self) -> bool:
        """Whether the search ended with an error of its own: then nothing is published, what is published stays."""
        return self.outcome is not None and self.outcome.reason == reasons.SEARCH_FAILED.name


def is_new(state: SearchState, event: Event, run_uid: str) -> bool:
    """Whether an event is to be taken; False: it was taken before and changes nothing.

    Raises:
        SequenceGapError: events are missing before this one.
        EventError: it belongs to another run, or cannot follow the ones before.
    """
    if event.run_uid != run_uid:
        raise EventError(f"event {event.seq} is of run {event.run_uid}, this is {run_uid}")
    taken = state.seq if event.attempt == state.attempt else 0
    if event.seq <= taken:
        return False
    if event.seq != taken + 1:
        raise SequenceGapError(taken + 1, event.seq)
    if state.outcome is not None:
        raise EventError(f"event {event.seq} ({event.type}) came after the end of the search")
    resolved = state.resolved and state.attempt in {None, event.attempt}
    if not resolved and not isinstance(event, ResolvedEvent | FailedEvent):
        raise EventError(f"event {event.seq} ({event.type}) came before search.resolved")
    return True


def advance(state: SearchState, event: Event, mode: Mode, now: str) -> SearchState:
    """The state after a new event.

    Args:
        state: the state before it.
        event: one that ``is_new``.
        mode: how the run ranks, for the best so far.
        now: the time.

    Raises:
        EventError: it says something that the contract does not know.
    """
    state = replace(state, attempt=event.attempt, seq=event.seq)
    match event:
        case ResolvedEvent():
            status = run_status.after_resolved(state.status, event.data, now)
            return replace(_begun_again(state), status=status, resolved=True, versions=event.data.versions)
        case EvaluationsEvent():
            return replace(state, batches=(*state.batches, event.data))
        case CandidateEvent():
            return replace(state, candidates={**state.candidates, event.data.id: event.data})
        case RoundCompletedEvent():
            return _round(state, event.data, mode, now)
        case CompletedEvent():
            return _completed(state, event.data, now)
        case FailedEvent():
            return _failed(state, event.data, now)


def interrupted(state: SearchState, message: str, now: str) -> SearchState:
    """The state after a user ended the search."""
    return replace(state, outcome=RunOutcome(reason=reasons.CANCELLED.name, message=message, time=now))


def best_of(candidates: Sequence[EvaluatedCandidate], mode: Mode) -> EvaluatedCandidate | None:
    """Rank 1, or the knee of the front: there the score is the product of the scaled objectives."""
    if mode == "optimize":
        return next(iter(candidates), None)
    return max(candidates, key=lambda one: one.evaluation.score, default=None)


def all_batches(state: SearchState) -> tuple[Evaluations, ...]:
    """Every point that is known, a point of an earlier search only where this one has not come to it."""
    if not state.earlier:
        return state.batches
    known = {point for batch in state.batches for point in batch.id}
    unknown = ([at for at, point in enumerate(batch.id) if point not in known] for batch in state.earlier)
    rest = (taken(batch, indices) for batch, indices in zip(state.earlier, unknown, strict=True) if indices)
    return (*state.batches, *rest)


def _begun_again(state: SearchState) -> SearchState:
    if not state.batches and not state.candidates and state.status.progress is None:
        return state
    return replace(
        state, earlier=all_batches(state), batches=(), candidates={}, reserve=(), caught_up=_done_of(state) == 0
    )


def _round(state: SearchState, data: RoundCompleted, mode: Mode, now: str) -> SearchState:
    caught_up = state.caught_up or run_status.done_points(data.counters) >= _done_of(state)
    known = [state.candidates[point] for point in data.reserve if point in state.candidates]
    best = best_of(known, mode) if caught_up else None
    status = run_status.after_round(state.status, data, best, now)
    return replace(state, status=status, reserve=data.reserve, caught_up=caught_up)


def _completed(state: SearchState, data: Completed, now: str) -> SearchState:
    progress = run_status.counted(state.status, data.counters, data.pareto_front, proven_best=data.proven_best)
    return replace(
        state,
        status=state.status.model_copy(update={"progress": progress}),
        reserve=data.reserve,
        earlier=(),
        caught_up=True,
        outcome=RunOutcome(reason=data.outcome, message=data.message, time=now),
    )


def _failed(state: SearchState, data: Failed, now: str) -> SearchState:
    progress = run_status.counted(state.status, data.counters, 0, proven_best=False)
    text = f"{data.reason}: {data.message}"
    return replace(
        state,
        status=state.status.model_copy(update={"progress": progress}),
        reserve=(),
        outcome=RunOutcome(reason=reasons.SEARCH_FAILED.name, message=text, time=now),
    )


def _done_of(state: SearchState) -> int:
    progress = state.status.progress
    return run_status.done_points(progress.evaluations if progress is not None else Counters())
