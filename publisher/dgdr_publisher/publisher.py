"""The publisher of one run: takes its events in order, keeps its status, publishes its candidates at the end."""

from collections.abc import Callable, Sequence

from dgdr_api import reasons
from dgdr_api.candidate import EvaluatedCandidate
from dgdr_api.candidate_resource import DynamoGraphDeploymentCandidate
from dgdr_api.conditions import cut
from dgdr_api.events import (
    CandidateEvent,
    Completed,
    CompletedEvent,
    Evaluations,
    EvaluationsEvent,
    Event,
    Failed,
    FailedEvent,
    ResolvedEvent,
    RoundCompletedEvent,
    VersionLink,
)
from dgdr_api.run import DynamoGraphDeploymentRun, RunOutcome, RunStatus

from dgdr_publisher import run_status
from dgdr_publisher.errors import EventError, SequenceGapError
from dgdr_publisher.resources import candidate_resource, run_identity
from dgdr_publisher.selection import Selection, select
from dgdr_publisher.store import Store

Clock = Callable[[], str]
"""The time now: UTC, RFC 3339, ending in Z."""
_MAX_MESSAGE = 1024


class Publisher:
    """A state machine over the events of one run.

    Before ``search.resolved`` only that event or ``search.failed`` may come; after a terminal event nothing new.
    An event that was already taken (a repeated one of the same attempt) changes nothing. The journal is written
    first: an event that the store then does not take comes again, and stands in the journal twice.
    """

    def __init__(self, run: DynamoGraphDeploymentRun, store: Store, clock: Clock) -> None:
        self._run, self._store, self._clock = run, store, clock
        self._identity = run_identity(run)
        self._status = run.status or RunStatus()
        self._attempt: str | None = None
        self._seq = 0
        self._resolved = False
        self._candidates: dict[str, EvaluatedCandidate] = {}
        self._batches: list[Evaluations] = []
        self._versions: tuple[VersionLink, ...] = ()
        self._reserve: tuple[str, ...] = ()
        self._published: tuple[str, ...] = ()
        self._resources: tuple[DynamoGraphDeploymentCandidate, ...] = ()
        self._best_name: str | None = None

    @property
    def status(self) -> RunStatus:
        """The status of the run now."""
        return self._status

    @property
    def candidates(self) -> tuple[DynamoGraphDeploymentCandidate, ...]:
        """What is published, in order."""
        return self._resources

    @property
    def best_name(self) -> str | None:
        """Name of the candidate whose deployment was written as the best: rank 1, or the knee of the front."""
        return self._best_name

    @property
    def evaluations(self) -> tuple[Evaluations, ...]:
        """Every batch of evaluated points."""
        return tuple(self._batches)

    @property
    def done(self) -> bool:
        """Whether the terminal event was taken and the final state is in the store."""
        return self._status.outcome is not None

    def start(self) -> None:
        """Write the run before its first event, so that whoever finds the store knows what was going on.

        Raises:
            StoreError: the store does not take it.
        """
        self._save(run_status.after_start(self._status, self._clock()))

    def handle(self, event: Event) -> int:
        """Take one event.

        Returns:
            The sequence number up to which everything is taken. For a terminal event the store holds the final state.

        Raises:
            SequenceGapError: events are missing before this one.
            EventError: it belongs to another run, or cannot follow the ones before.
            StoreError: the store does not take it; the event counts as not taken.
        """
        if event.run_uid != self._identity.uid:
            raise EventError(f"event {event.seq} is of run {event.run_uid}, this is {self._identity.uid}")
        taken = self._seq if event.attempt == self._attempt else 0
        if event.seq <= taken:
            return taken
        if event.seq != taken + 1:
            raise SequenceGapError(taken + 1, event.seq)
        self._check_order(event)
        self._store.append_event(event)
        self._apply(event)
        self._attempt, self._seq = event.attempt, event.seq
        return event.seq

    def interrupt(self, message: str) -> None:
        """End the run as cancelled, with what the reserve holds now published. After a terminal event: nothing."""
        if not self.done:
            self._end(RunOutcome(reason=reasons.CANCELLED.name, message=message, time=self._clock()))

    def fail(self, message: str) -> None:
        """End the run as failed for a cause outside of its events. After a terminal event: nothing.

        Candidates that were written before the cause came up are removed: the run names none.

        Raises:
            StoreError: not even the run can be written.
        """
        if self.done:
            return
        for resource in self._resources:
            self._store.remove_candidate(resource.metadata.name)
        self._resources = ()
        outcome = RunOutcome(reason=reasons.SEARCH_FAILED.name, message=cut(message, _MAX_MESSAGE), time=self._clock())
        self._save(run_status.after_end(self._status, outcome))

    def _check_order(self, event: Event) -> None:
        if self.done:
            raise EventError(f"event {event.seq} ({event.type}) came after the end of the search")
        if event.attempt != self._attempt and self._attempt is not None:
            self._resolved = False
        if not self._resolved and not isinstance(event, ResolvedEvent | FailedEvent):
            raise EventError(f"event {event.seq} ({event.type}) came before search.resolved")

    def _apply(self, event: Event) -> None:
        match event:
            case ResolvedEvent():
                self._resolved, self._versions = True, event.data.versions
                self._save(run_status.after_resolved(self._status, event.data, self._clock()))
            case EvaluationsEvent():
                self._batches.append(event.data)
            case CandidateEvent():
                self._candidates[event.data.id] = event.data
            case RoundCompletedEvent():
                self._reserve = event.data.reserve
                known = [self._candidates[point] for point in self._reserve if point in self._candidates]
                best = self._best(known)
                self._save(run_status.after_round(self._status, event.data, best, self._clock()))
            case CompletedEvent():
                self._complete(event.data)
            case FailedEvent():
                self._fail(event.data)

    def _complete(self, data: Completed) -> None:
        self._reserve = data.reserve
        self._status = self._status.model_copy(
            update={
                "progress": run_status.counted(
                    self._status, data.counters, data.pareto_front, proven_best=data.proven_best
                )
            }
        )
        self._end(RunOutcome(reason=data.outcome, message=data.message, time=self._clock()))

    def _fail(self, data: Failed) -> None:
        """A failure publishes nothing; what is known of the points is kept."""
        text = f"{data.reason}: {data.message}"
        progress = run_status.counted(self._status, data.counters, 0, proven_best=False)
        self._status = self._status.model_copy(update={"progress": progress})
        self._reserve = ()
        self._store.write_points(self._batches, {})
        outcome = RunOutcome(reason=reasons.SEARCH_FAILED.name, message=text, time=self._clock())
        self._save(run_status.after_end(self._status, outcome))

    def _end(self, outcome: RunOutcome) -> None:
        """Publish the first of the reserve that render; candidates are written before anything names them."""
        selection = self._select()
        names = self._write_candidates(selection)
        best = self._best([chosen.evaluated for chosen in selection.chosen])
        for chosen, name in zip(selection.chosen, names, strict=True):
            if chosen.evaluated is best:
                self._store.write_best(chosen.rendered.dgd, chosen.rendered.materialization)
                self._best_name = name
        self._store.write_points(self._batches, _publication(selection, names))
        if not selection.chosen and selection.unrenderable and outcome.reason in reasons.HONEST_OUTCOMES:
            cause = next(iter(selection.unrenderable.values()))
            text = f"none of {len(selection.unrenderable)} candidates could be rendered; the first: {cause}"
            outcome = RunOutcome(
                reason=reasons.NOTHING_RENDERABLE.name, message=cut(text, _MAX_MESSAGE), time=outcome.time
            )
        status = run_status.after_publication(self._status, selection, names, best, outcome.time)
        self._save(run_status.after_end(status, outcome))
        for name in self._published:
            if name not in names:
                self._store.remove_candidate(name)
        self._published = tuple(names)

    def _select(self) -> Selection:
        return select(
            self._reserve,
            self._candidates,
            spec=self._run.spec,
            request_name=self._identity.request_name,
            namespace=self._identity.namespace,
            limit=self._run.spec.recommendation.max_candidates,
        )

    def _write_candidates(self, selection: Selection) -> list[str]:
        ranked = self._run.spec.objective.mode == "optimize"
        self._resources = tuple(
            candidate_resource(chosen, self._identity, rank=rank if ranked else None, versions=self._versions)
            for rank, chosen in enumerate(selection.chosen, start=1)
        )
        for resource in self._resources:
            self._store.write_candidate(resource)
        return [resource.metadata.name for resource in self._resources]

    def _best(self, candidates: Sequence[EvaluatedCandidate]) -> EvaluatedCandidate | None:
        """Rank 1, or the knee of the front: there the score is the product of the scaled objectives."""
        if self._run.spec.objective.mode == "optimize":
            return next(iter(candidates), None)
        return max(candidates, key=lambda one: one.evaluation.score, default=None)

    def _save(self, status: RunStatus) -> None:
        self._store.write_run(self._run.model_copy(update={"status": status}))
        self._status = status


def _publication(selection: Selection, names: list[str]) -> dict[str, str]:
    found = {chosen.evaluated.id: name for chosen, name in zip(selection.chosen, names, strict=True)}
    found |= {point: f"not rendered: {cause}" for point, cause in selection.unrenderable.items()}
    return found | dict.fromkeys(selection.repeated, "the same as a candidate before it")
