"""Pass times of a worker as a table: dense where the data has steps, coarse where it is smooth.

The data is a staircase in the tokens of a pass and in the number of decoding sequences, so both are tabled one by one;
attention is smooth in the length of the context, so that is tabled at few points, and linear between them. Source:
engine.md section 5. One cached file per identity, shape and size of the table; sizes are rounded up to powers of two,
so that deployments with other limits share it.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from dgdr_api.shape import Shape
from pydantic import TypeAdapter

from dgdr_job.catalog.catalog import Catalog
from dgdr_job.catalog.identity import PerfIdentity

if TYPE_CHECKING:
    from dgdr_job.catalog.aic import PerformanceModel

FloatArray = npt.NDArray[np.float64]
LEAST_BATCH, LEAST_TOKENS, LEAST_LENGTH = 64, 2048, 4096
"""The smallest table."""
_SHORT, _LONG = 256, 1024
"""Contexts beyond the one, and from the other on, are each tabled twice as densely."""
NEW_RATIO, CACHED_RATIO = 1.08, 1.35
"""Between neighbouring numbers of new tokens, and of cached ones, at which attention of prompts is tabled."""


@dataclass(frozen=True, eq=False)
class PassTable:
    """Milliseconds of the parts of a pass of one attention data-parallel rank.

    Attributes:
        other_ms: All but attention, by the tokens of the pass, prompts' and decoding ones, from 1 on, shape [tokens].
        prompts, new_tokens, cached_tokens: Points of the attention of prompts: how many the pass has, the new tokens of
            one, and those before them.
        prompt_ms: Attention of one of so many prompts, shape [prompts, new, cached].
        context: Points of the length of decoding sequences, the new token included.
        step_ms: A pass that only decodes, by the number of sequences, from 1 on, shape [batch, context].
        attention_ms: The attention of decoding sequences in a pass with prompts, shape [batch, context].
    """

    other_ms: FloatArray
    prompts: FloatArray
    new_tokens: FloatArray
    cached_tokens: FloatArray
    prompt_ms: FloatArray
    context: FloatArray
    step_ms: FloatArray
    attention_ms: FloatArray


@dataclass(frozen=True)
class _Stored:
    """What a file holds."""

    other_ms: list[float]
    prompt_ms: list[list[list[float]]]
    step_ms: list[list[float]]
    attention_ms: list[list[float]]


_STORED = TypeAdapter(_Stored)


def pass_table(
    catalog: Catalog, identity: PerfIdentity, shape: Shape, *, batch: int, tokens: int, length: int
) -> PassTable:
    """The table of a worker's passes.

    Args:
        catalog: The catalog.
        identity: Model, SKU, backend and version.
        shape: The worker's shape.
        batch: Sequences of a pass, at most.
        tokens: Tokens of a pass, at most.
        length: Prompt and output of a sequence, at most.

    Raises:
        Unsupported: NoLegalShape, MissingOperatorData, UnsupportedDtype, InvalidData, or what the identity lacks.
    """
    batches = list(range(1, _rounded(batch, LEAST_BATCH) + 1))
    counts = list(range(1, _rounded(tokens, LEAST_TOKENS) + 1))
    longest = _rounded(length, LEAST_LENGTH)
    context = context_points(longest)
    new, cached = ratio_points(counts[-1], NEW_RATIO), [0, *ratio_points(longest, CACHED_RATIO)]
    prompts = half_octaves(batches[-1])

    def compute(performance: "PerformanceModel") -> _Stored:
        from dgdr_job.catalog.aic_passes import PassParts  # noqa: PLC0415 - imports the performance model

        parts = PassParts(performance, shape)
        step, attention = parts.decode_ms(batches, context)
        of_prompts = [parts.prompt_ms(count, new, cached) for count in prompts]
        return _Stored(parts.other_ms(counts), of_prompts, step, attention)

    sizes = {"batch": batches[-1], "tokens": counts[-1], "length": longest}
    stored = catalog.recall("passes", identity, {"shape": list(shape.key), **sizes}, _STORED, compute)
    return PassTable(
        other_ms=np.array(stored.other_ms),
        prompts=np.array(prompts, dtype=np.float64),
        new_tokens=np.array(new, dtype=np.float64),
        cached_tokens=np.array(cached, dtype=np.float64),
        prompt_ms=np.array(stored.prompt_ms) / np.array(prompts)[:, None, None],
        context=np.array(context, dtype=np.float64),
        step_ms=np.array(stored.step_ms),
        attention_ms=np.array(stored.attention_ms),
    )


def half_octaves(longest: int) -> list[int]:
    """1, 2, 3, 4, 6, 8, 12 and so on to a power of two: where the measured grids have their knees, and between."""
    doubled = [1 << power for power in range((longest - 1).bit_length() + 1)]
    return sorted({*doubled, *(count * 3 // 2 for count in doubled[1:-1])})


def context_points(longest: int) -> list[int]:
    """Lengths from 1 to a power of two: quarters of octaves where they are long, halves and whole ones below."""
    octaves = [count for count in half_octaves(longest) if count & (count - 1) == 0]
    halves = [count for count in half_octaves(longest) if count > _SHORT]
    quarters = [count * part // 4 for count in octaves if _LONG <= count < longest for part in (5, 7)]
    return sorted({*octaves, *halves, *quarters})


def ratio_points(longest: int, ratio: float) -> list[int]:
    """Whole numbers from 1 to the longest, each so much larger than the one before."""
    points = [1]
    while points[-1] < longest:
        points.append(min(longest, max(points[-1] + 1, int(points[-1] * ratio))))
    return points


def _rounded(count: int, least: int) -> int:
    """The next power of two, at least the smallest table's."""
    return max(least, 1 << (count - 1).bit_length())
