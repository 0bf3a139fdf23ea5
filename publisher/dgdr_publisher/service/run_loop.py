"""The thread that publishes: waits for something new, writes it no faster than the pace, tries again, gives up."""

import importlib
import logging
import threading
from collections.abc import Callable

from dgdr_publisher.errors import BusyError, RefusedError
from dgdr_publisher.search_state import SearchState
from dgdr_publisher.service.ingest import REFUSED, Ingest
from dgdr_publisher.service.pace import Backoff, Pace
from dgdr_publisher.service.writer import Writer

STATUS_S = 5.0
"""Seconds between two writes of the run's status."""
MOST_CONFLICTS = 10
"""Conflicts in a row after which somebody else is taken to write what is ours: a bug, which is reported."""
LATE_IMPORTS = ("pyarrow.parquet", "pyarrow.json")
"""What the report imports when it is first written: a moment that the end of a search need not wait for."""

_log = logging.getLogger(__name__)


class PublishLoop:
    """Publishes what ``ingest`` knows until the end of the search is published, or until it is stopped.

    Args:
        ingest: what is known.
        writer: brings the cluster to it.
        pace: of the writes; the first state and the last do not wait for it.
        clock: seconds, never going back.
    """

    def __init__(self, ingest: Ingest, writer: Writer, pace: Pace, clock: Callable[[], float]) -> None:
        self._ingest, self._writer, self._pace, self._clock = ingest, writer, pace, clock
        self._written: SearchState | None = None
        self._backoff, self._not_before = Backoff(), 0.0
        self._stop_at: float | None = None
        self._done = False
        self.refused = ""
        """Why the cluster takes nothing more; empty: it does."""

    def run(self) -> None:
        """Publish until there is nothing more to do."""
        for module in LATE_IMPORTS:
            importlib.import_module(module)
        while (state := self._next()) is not None:
            self._publish(state)

    def stop(self, grace_s: float) -> None:
        """Publish what is known, for at most so many seconds, and end."""
        with self._ingest.changed:
            self._stop_at = self._clock() + grace_s
            self._ingest.changed.notify_all()

    def wait_s(self, state: SearchState) -> float | None:
        """Seconds until this state is to be written; None: there is nothing to write."""
        if not state.resolved and state.outcome is None:
            return None
        if state is self._written:
            return None
        at_once = self._written is None or state.outcome is not None or self._stop_at is not None
        return max(0.0 if at_once else self._pace.wait_s(), self._not_before - self._clock())

    def _next(self) -> SearchState | None:
        """Wait for a state that is to be written now; None: the end."""
        with self._ingest.changed:
            while True:
                state = self._ingest.state
                wait_s = self.wait_s(state)
                if self._over(wait_s, state):
                    return None
                if wait_s == 0:
                    return state
                left = None if self._stop_at is None else max(0.0, self._stop_at - self._clock())
                self._ingest.changed.wait(min((each for each in (wait_s, left) if each is not None), default=None))

    def _over(self, wait_s: float | None, state: SearchState) -> bool:
        if self._done or (state.outcome is not None and state is self._written):
            return True
        return self._stop_at is not None and (wait_s is None or self._clock() + wait_s > self._stop_at)

    def _publish(self, state: SearchState) -> None:
        try:
            if self.refused:
                self._writer.give_up(state, self.refused)
            else:
                self._writer.step(state)
        except BusyError as error:
            self._later(error)
        except RefusedError as error:
            self._give_up(str(error))
        else:
            self._wrote(state)

    def _wrote(self, state: SearchState) -> None:
        self._backoff.reset()
        self._pace.wrote()
        self._written = state
        if self.refused:
            self._done = True
        elif state.outcome is not None:
            self._ingest.published()

    def _later(self, error: BusyError) -> None:
        wait_s = self._backoff.after(retry_after_s=error.retry_after_s, conflict=error.conflict)
        self._not_before = self._clock() + wait_s
        _log.warning("the cluster did not take it, again in %.1f s: %s", wait_s, error)
        if self._backoff.conflicts >= MOST_CONFLICTS:
            self._give_up(f"{self._backoff.conflicts} conflicts in a row: {error}")

    def _give_up(self, why: str) -> None:
        """Say in the run why nothing more is published; where the cluster refuses even that, to the sweeper alone."""
        _log.error("the cluster refuses: %s", why)
        if self.refused:
            self._done = True
            return
        self._backoff.reset()
        self._ingest.fail(REFUSED, why)
        with self._ingest.changed:
            self.refused, self._written = why, None
            self._ingest.changed.notify_all()


def start(loop: PublishLoop) -> threading.Thread:
    """Run the loop in a thread of its own."""
    thread = threading.Thread(target=loop.run, name="publish", daemon=True)
    thread.start()
    return thread
