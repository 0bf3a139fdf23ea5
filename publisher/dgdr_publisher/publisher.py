"""The publisher of one run on a laptop: takes its events in order, keeps its status, publishes at the end."""

from collections.abc import Callable
from dataclasses import replace

from dgdr_api import reasons
from dgdr_api.candidate_resource import DynamoGraphDeploymentCandidate
from dgdr_api.conditions import MAX_MESSAGE_BYTES, cut
from dgdr_api.events import CompletedEvent, Evaluations, Event, FailedEvent, ResolvedEvent, RoundCompletedEvent
from dgdr_api.run import DynamoGraphDeploymentRun, RunOutcome, RunStatus

from dgdr_publisher import run_status
from dgdr_publisher.publication import final_publication
from dgdr_publisher.resources import run_identity
from dgdr_publisher.search_state import SearchState, advance, interrupted, is_new
from dgdr_publisher.store import Store

Clock = Callable[[], str]
"""The time now: UTC, RFC 3339, ending in Z."""


class Publisher:
    """Puts the state of a search into a store, event by event.

    An event that was already taken (a repeated one of the same attempt) changes nothing. The journal is written
    first: an event that the store then does not take comes again, and stands in the journal twice.
    """

    def __init__(self, run: DynamoGraphDeploymentRun, store: Store, clock: Clock) -> None:
        self._run, self._store, self._clock = run, store, clock
        self._identity = run_identity(run)
        self._state = SearchState(status=run.status or RunStatus())
        self._published: tuple[str, ...] = ()
        self._resources: tuple[DynamoGraphDeploymentCandidate, ...] = ()
        self._best_name: str | None = None

    @property
    def status(self) -> RunStatus:
        """The status of the run now."""
        return self._state.status

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
        return self._state.batches

    @property
    def done(self) -> bool:
        """Whether the terminal event was taken and the final state is in the store."""
        return self._state.status.outcome is not None

    def start(self) -> None:
        """Write the run before its first event, so that whoever finds the store knows what was going on.

        Raises:
            StoreError: the store does not take it.
        """
        status = run_status.after_start(self._state.status, self._clock())
        self._save(status)
        self._state = replace(self._state, status=status)

    def handle(self, event: Event) -> int:
        """Take one event.

        Returns:
            The sequence number up to which everything is taken. For a terminal event the store holds the final state.

        Raises:
            SequenceGapError: events are missing before this one.
            EventError: it belongs to another run, or cannot follow the ones before.
            StoreError: the store does not take it; the event counts as not taken.
        """
        if not is_new(self._state, event, self._identity.uid):
            return self._state.seq
        state = advance(self._state, event, self._run.spec.objective.mode, self._clock())
        self._store.append_event(event)
        if isinstance(event, CompletedEvent | FailedEvent):
            state = self._ended(state)
        elif isinstance(event, ResolvedEvent | RoundCompletedEvent):
            self._save(state.status)
        self._state = state
        return event.seq

    def interrupt(self, message: str) -> None:
        """End the run as cancelled, with what the reserve holds now published. After a terminal event: nothing."""
        if not self.done:
            self._state = self._ended(interrupted(self._state, message, self._clock()))

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
        self._resources, self._published = (), ()
        text = cut(message, MAX_MESSAGE_BYTES)
        outcome = RunOutcome(reason=reasons.SEARCH_FAILED.name, message=text, time=self._clock())
        status = run_status.after_end(self._state.status, outcome)
        self._save(status)
        self._state = replace(self._state, status=status, outcome=outcome)

    def _ended(self, state: SearchState) -> SearchState:
        """Publish the end; candidates are written before anything names them, and removed after."""
        found = final_publication(self._run, self._identity, state)
        names = self._published
        if found.candidates is not None:
            self._resources = found.candidates
            self._store.write_candidates(found.candidates)
            names = tuple(resource.metadata.name for resource in found.candidates)
        if found.best is not None:
            self._store.write_best(found.best.rendered.dgd, found.best.rendered.materialization)
            self._best_name = found.best_name
        self._store.write_points(state.batches, found.points)
        self._save(found.status)
        for name in self._published:
            if name not in names:
                self._store.remove_candidate(name)
        self._published = names
        return replace(state, status=found.status)

    def _save(self, status: RunStatus) -> None:
        self._store.write_run(self._run.model_copy(update={"status": status}))
