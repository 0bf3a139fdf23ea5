"""The words of matching: array types, goals and when two rates are equal."""

from typing import Literal

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

Goal = Literal["rate_per_gpu", "rate", "fewest_gpus"]
"""What the counts of one pair of rows are chosen for; metrics that depend on the rows alone use ``fewest_gpus``."""

TIE = 1e-12
"""Relative difference below which two rates are equal (engine.md section 6)."""
