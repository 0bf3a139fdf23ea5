"""Where a time comes from: measured, derived, or taken from another version or backend."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True)
class DataProvenance:
    """What stands behind the estimates of one identity.

    Attributes:
        wheel_version: Version of the performance model's package.
        borrowed_tables: Tables of the model's operators without rows of their own version: all rows are another
            version's or another backend's.
        filled_tables: Tables that have rows of their own, with gaps filled from elsewhere.
        notes: What the performance model warned of, once each.
    """

    wheel_version: str
    borrowed_tables: tuple[str, ...]
    filled_tables: tuple[str, ...]
    notes: tuple[str, ...]


class OperatorTime(NamedTuple):
    """One operator's part of a pass.

    Attributes:
        name: The operator.
        latency_ms: Its time.
        source: The performance model's word for where it comes from.
    """

    name: str
    latency_ms: float
    source: str


@dataclass(frozen=True)
class SourceShares:
    """Fractions of a time, which sum to 1.

    Attributes:
        silicon: Measured for this version and backend.
        empirical: A formula: memory traffic or speed of light.
        estimated: Interpolated across formats or shapes, or a mixture that the performance model does not split.
        borrowed: Measured, but for another version or backend.
    """

    silicon: float
    empirical: float
    estimated: float
    borrowed: float


_SHARE_OF_SOURCE = {"silicon": "silicon", "empirical": "empirical", "sol": "empirical"}


def source_shares(times: Iterable[OperatorTime], borrowed_operators: frozenset[str]) -> SourceShares:
    """Splits a pass by source.

    Args:
        times: The operators of the pass; times in milliseconds, not negative.
        borrowed_operators: Names of the operators whose table is borrowed.

    Returns:
        Shares that sum to 1; all ``estimated`` for a pass that takes no time.
    """
    sums = dict.fromkeys(("silicon", "empirical", "estimated", "borrowed"), 0.0)
    for time in times:
        share = _SHARE_OF_SOURCE.get(time.source, "estimated")
        if share == "silicon" and time.name in borrowed_operators:
            share = "borrowed"
        sums[share] += time.latency_ms
    total = sum(sums.values())
    if total <= 0:
        return SourceShares(silicon=0.0, empirical=0.0, estimated=1.0, borrowed=0.0)
    return SourceShares(**{share: ms / total for share, ms in sums.items()})
