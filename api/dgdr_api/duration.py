"""Durations as the contract writes them: ``90s``, ``1h30m``, ``1.5h``."""

import re
from decimal import Decimal
from typing import Annotated

from pydantic import Field

from dgdr_api.canonical import INT64_MAX
from dgdr_api.rules import Rule

PATTERN = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)")
_NANOSECONDS = {"ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}


def nanoseconds(text: str) -> int:
    """Length of a duration; fractions of a nanosecond are cut off, part by part, as Go does."""
    return sum(int(Decimal(number) * _NANOSECONDS[unit]) for number, unit in _PART.findall(text))


def seconds(text: str) -> float:
    """Length of a duration in seconds."""
    return nanoseconds(text) / 1e9


Duration = Annotated[
    str,
    Field(max_length=32, pattern=PATTERN),
    Rule(
        id="duration",
        cel="duration(self) > duration('0s')",
        message="must be a duration above 0, e.g. 90s or 1h30m",
        holds=lambda text: 0 < nanoseconds(text) <= INT64_MAX,
    ),
]
