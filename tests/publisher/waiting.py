"""Waiting for a condition instead of a time."""

import time
from collections.abc import Callable
from typing import Any

POLL_S, DEADLINE_S = 0.02, 60.0


def until(holds: Callable[[], Any], what: str, deadline_s: float = DEADLINE_S) -> Any:
    """Wait until a condition holds and return what it returned."""
    end = time.monotonic() + deadline_s
    while not (found := holds()):
        if time.monotonic() > end:
            raise AssertionError(f"not within {deadline_s:g} s: {what}")
        time.sleep(POLL_S)
    return found
