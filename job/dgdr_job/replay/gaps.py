"""Times between tokens: exact sums, and bins of a thousandth of their size, so that tokens cost no memory."""

from dataclasses import dataclass, field

import numpy as np

from dgdr_job.replay.requests import Ints

MANTISSA_BITS = 10
"""A bin is as wide as a thousandth of its value: the distance from its middle is at most 0.05 %."""
_SHIFT = 52 - MANTISSA_BITS
_FIRST = 1023 << MANTISSA_BITS
BINS = (64 << MANTISSA_BITS) + 1


@dataclass
class Gaps:
    """A histogram of nanoseconds. Bin 0 holds the zeros; the others follow the leading bits of the number."""

    bins: Ints = field(default_factory=lambda: np.zeros(BINS, dtype=np.int64))
    count: int = 0
    total_ns: int = 0
    least_ns: int = 0
    most_ns: int = 0

    def add(self, gap_ns: int) -> None:
        """Count one."""
        self.least_ns = gap_ns if not self.count else min(self.least_ns, gap_ns)
        self.most_ns = max(self.most_ns, gap_ns)
        self.count += 1
        self.total_ns += gap_ns
        place = 0 if gap_ns == 0 else 1 + (int(np.float64(gap_ns).view(np.int64)) >> _SHIFT) - _FIRST
        self.bins[place] += 1

    def values(self) -> tuple[np.ndarray, Ints]:
        """The middles of the bins that are not empty, ascending, and their counts."""
        places = np.flatnonzero(self.bins)
        low = ((places - 1 + _FIRST).astype(np.int64) << _SHIFT).view(np.float64)
        high = ((places + _FIRST).astype(np.int64) << _SHIFT).view(np.float64)
        middles = np.where(places == 0, 0.0, (low + high) / 2)
        return np.clip(middles, self.least_ns, self.most_ns), self.bins[places]
