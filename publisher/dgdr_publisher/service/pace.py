"""When to write: one write an interval, but at once what must not wait; and how long to wait after an error."""

from collections.abc import Callable
from dataclasses import dataclass

FIRST_WAIT_S, LONGEST_WAIT_S = 0.5, 30.0


class Pace:
    """At most one write in ``interval_s`` seconds.

    Args:
        interval_s: seconds between two writes.
        clock: seconds, never going back.
    """

    def __init__(self, interval_s: float, clock: Callable[[], float]) -> None:
        self._interval_s, self._clock = interval_s, clock
        self._last: float | None = None

    def wait_s(self) -> float:
        """Seconds until the next write may go; the first may go at once."""
        return 0.0 if self._last is None else max(0.0, self._last + self._interval_s - self._clock())

    def wrote(self) -> None:
        """A write has gone."""
        self._last = self._clock()


@dataclass
class Backoff:
    """Waits longer after each error in a row."""

    errors: int = 0
    conflicts: int = 0

    def after(self, *, retry_after_s: float | None, conflict: bool) -> float:
        """Seconds to wait after one more error."""
        self.errors += 1
        self.conflicts = self.conflicts + 1 if conflict else 0
        wait_s = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** min(self.errors - 1, 16))
        return max(wait_s, retry_after_s or 0.0)

    def reset(self) -> None:
        """A write went well."""
        self.errors = self.conflicts = 0
