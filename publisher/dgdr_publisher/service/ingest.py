"""Takes events from the sweeper: checks, journals, then knows them. What becomes of them is decided elsewhere."""

import threading
from collections.abc import Callable
from dataclasses import replace

from dgdr_api.events import Counters, Event, Failed, FailedEvent
from dgdr_api.run import DynamoGraphDeploymentRun

from dgdr_publisher.errors import EventError, MalformedLineError, SequenceGapError
from dgdr_publisher.resources import run_identity
from dgdr_publisher.search_state import SearchState, advance, is_new
from dgdr_publisher.service.journal import Journal
from dgdr_publisher.service.lines import lines_of, parsed

MALFORMED, REFUSED = "MalformedEvent", "ClusterRefused"
"""Reasons with which the publisher itself ends a search."""
_MAX_MESSAGE = 500


class Ingest:
    """The state of the search, behind a lock; whoever publishes it waits on ``changed``.

    Args:
        run: the run as the cluster holds it. One that has its outcome takes events of a further attempt without
            looking at them: its pod was lost after the end was published and before that was acknowledged.
        journal: where events go before they are known.
        state: what is known before the first event.
        clock: the time.
    """

    def __init__(
        self, run: DynamoGraphDeploymentRun, journal: Journal, state: SearchState, clock: Callable[[], str]
    ) -> None:
        self._identity = run_identity(run)
        self._mode = run.spec.objective.mode
        self._journal, self._clock = journal, clock
        self._state = state
        self._over = state.outcome is not None
        self._published = self._over
        self.changed = threading.Condition()
        self._taking = threading.Lock()
        self.own_failure = ""
        """Why the publisher itself ended the search; empty: it did not. Nothing is taken after it."""

    @property
    def state(self) -> SearchState:
        """What is known now."""
        with self.changed:
            return self._state

    @property
    def run_uid(self) -> str:
        """Uid of the run."""
        return self._identity.uid

    @property
    def ack_seq(self) -> int:
        """The last event of the current attempt that will not be needed again.

        A terminal event is that only once the cluster holds the final state.
        """
        with self.changed:
            waits = self._state.outcome is not None and not self._published
            return max(0, self._state.seq - 1) if waits else self._state.seq

    def replay(self) -> None:
        """Know again what the journal holds."""
        for event in self._journal.events():
            state = self._after(self._state, event)
            if state is not None:
                self._become(state)
            if isinstance(event, FailedEvent) and event.data.reason in {MALFORMED, REFUSED}:
                self.own_failure = f"{event.data.reason}: {event.data.message}"

    def take(self, body: bytes) -> None:
        """Take a batch of lines; those before one that cannot be taken are taken.

        Raises:
            SequenceGapError: events are missing before a line.
            MalformedLineError: a line is no event, or one that cannot follow; the search has failed.
            StoreError: the workspace does not take the journal; nothing of the batch is taken.
        """
        with self._taking:
            state, taken, problem = self._read(lines_of(body))
            if taken:
                self._journal.append(taken)
                self._become(state)
            if isinstance(problem, MalformedLineError) and not self._over:
                self._fail(MALFORMED, str(problem))
            if problem is not None:
                raise problem

    def fail(self, reason: str, message: str) -> None:
        """End the search, for a reason of the publisher's own.

        Raises:
            StoreError: the workspace does not take the journal.
        """
        with self._taking:
            self._fail(reason, message)

    def published(self) -> None:
        """The cluster holds the final state."""
        with self.changed:
            self._published = True
            self.changed.notify_all()

    def wait_published(self, timeout_s: float, given_up: Callable[[], object]) -> None:
        """Wait until the end of the search is published or given up, if it has ended; at most this long."""
        with self.changed:
            self.changed.wait_for(lambda: self._published or self._state.outcome is None or given_up(), timeout_s)

    def _read(
        self, lines: list[bytes]
    ) -> tuple[SearchState, list[bytes], SequenceGapError | MalformedLineError | None]:
        state, taken = self.state, list[bytes]()
        try:
            for number, event in enumerate(parsed(lines)):
                following = self._after_line(state, event, number + 1)
                if following is not None:
                    state = following
                    taken.append(lines[number])
        except (SequenceGapError, MalformedLineError) as error:
            return state, taken, error
        return state, taken, None

    def _after_line(self, state: SearchState, event: Event, number: int) -> SearchState | None:
        try:
            return self._after(state, event)
        except SequenceGapError:
            raise
        except EventError as error:
            raise MalformedLineError(number, "type", str(error)) from error

    def _after(self, state: SearchState, event: Event) -> SearchState | None:
        """The state after an event, or None: it is known."""
        if self._over:
            taken = state.seq if event.attempt == state.attempt else 0
            if event.seq > taken + 1:
                raise SequenceGapError(taken + 1, event.seq)
            return None if event.seq <= taken else replace(state, attempt=event.attempt, seq=event.seq)
        if not is_new(state, event, self._identity.uid):
            return None
        return advance(state, event, self._mode, self._clock())

    def _fail(self, reason: str, message: str) -> None:
        state = self.state
        if state.outcome is not None:
            return
        progress = state.status.progress
        event = FailedEvent(
            seq=state.seq + 1,
            attempt=state.attempt or "publisher",
            run_uid=self._identity.uid,
            time=self._clock(),
            data=Failed(
                reason=reason,
                message=message[:_MAX_MESSAGE],
                counters=Counters() if progress is None else progress.evaluations,
            ),
        )
        following = advance(state, event, self._mode, self._clock())
        self._journal.append_event(event)
        self.own_failure = f"{reason}: {message}"
        self._become(following)

    def _become(self, state: SearchState) -> None:
        with self.changed:
            self._state = state
            self.changed.notify_all()
