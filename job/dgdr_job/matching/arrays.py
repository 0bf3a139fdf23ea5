"""The words of matching: array types, goals and when two rates are equal."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from dgdr_job.space.limits import PoolName

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

Goal = Literal["rate_per_gpu", "rate_per_cost", "rate", "fewest_gpus"]
"""What the counts of one tuple of rows are chosen for; metrics that depend on the rows alone use ``fewest_gpus``."""

TIE = 1e-12
"""Relative difference below which two rates are equal (engine.md section 6)."""


@dataclass(frozen=True)
class Prices:
    """Price of one GPU of each role; a role that does everything counts as decode."""

    prefill: float = 1.0
    decode: float = 1.0
    encode: float | None = None
    """None where nothing encodes, or as decode."""

    @property
    def one(self) -> bool:
        """Whether all GPUs cost the same, so that rate per cost and rate per GPU have one order."""
        return self.prefill == self.decode == self.of("encode")

    def of(self, pool: PoolName) -> float:
        """Price of one GPU of this pool."""
        match pool:
            case "prefill":
                return self.prefill
            case "decode":
                return self.decode
            case "encode":
                return self.decode if self.encode is None else self.encode


ONE_PRICE = Prices()
"""Every GPU costs the same."""
