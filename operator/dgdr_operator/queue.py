"""Which requests must be looked at: each key once, in one worker at a time, with a back-off of its own."""

import heapq
import itertools
import threading
import time
from collections import OrderedDict
from collections.abc import Callable

Key = tuple[str, str]
"""Namespace and name of a request."""

FIRST_DELAY_S, LONGEST_DELAY_S = 0.25, 60.0


class WorkQueue:
    """Keys to be worked on. A key that is added while it is worked on comes back when that is done.

    Args:
        clock: seconds; for tests.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._ready: OrderedDict[Key, None] = OrderedDict()
        self._later: list[tuple[float, int, Key]] = []
        self._active: set[Key] = set()
        self._again: set[Key] = set()
        self._failures: dict[Key, int] = {}
        self._numbers = itertools.count()
        self._closed = False
        self._changed = threading.Condition()

    def add(self, key: Key) -> None:
        """Have a key worked on soon."""
        with self._changed:
            self._add(key)

    def add_after(self, key: Key, delay_s: float) -> None:
        """Have a key worked on in some time; sooner when it is added meanwhile, and then once more."""
        with self._changed:
            heapq.heappush(self._later, (self._clock() + delay_s, next(self._numbers), key))
            self._changed.notify()

    def retry(self, key: Key, at_least_s: float = 0.0) -> float:
        """Have a key worked on again after a failure; return the delay, which doubles from failure to failure."""
        with self._changed:
            failures = self._failures.get(key, 0)
            self._failures[key] = failures + 1
            delay_s = min(FIRST_DELAY_S * float(2 ** min(failures, 16)), LONGEST_DELAY_S)
            delay_s = max(delay_s, at_least_s)
            heapq.heappush(self._later, (self._clock() + delay_s, next(self._numbers), key))
            self._changed.notify()
            return delay_s

    def forget(self, key: Key) -> None:
        """Let the next failure of a key start with the shortest delay."""
        with self._changed:
            self._failures.pop(key, None)

    def take(self, timeout_s: float | None = None) -> Key | None:
        """Wait for a key and take it; None when the queue is closed or the time is over. Give it back with `done`."""
        end = None if timeout_s is None else self._clock() + timeout_s
        with self._changed:
            while not self._closed:
                self._promote()
                if self._ready:
                    key, _ = self._ready.popitem(last=False)
                    self._active.add(key)
                    return key
                now = self._clock()
                if end is not None and end <= now:
                    return None
                moments = [moment for moment in (end, self._later[0][0] if self._later else None) if moment is not None]
                self._changed.wait(min(moments) - now if moments else None)
            return None

    def done(self, key: Key) -> None:
        """Give a key back."""
        with self._changed:
            self._active.discard(key)
            if key in self._again:
                self._again.discard(key)
                self._add(key)

    def close(self) -> None:
        """Let every waiting worker go."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def __len__(self) -> int:
        with self._changed:
            return len(self._ready) + len(self._active)

    def _add(self, key: Key) -> None:
        if key in self._active:
            self._again.add(key)
        elif key not in self._ready:
            self._ready[key] = None
            self._changed.notify()

    def _promote(self) -> None:
        now = self._clock()
        while self._later and self._later[0][0] <= now:
            self._add(heapq.heappop(self._later)[2])
