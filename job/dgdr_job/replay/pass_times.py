"""How long a pass takes: one interface over all sources of times, in numbers that the kernel reads too.

A pass has a prefill term (by the new prompt tokens) and a decode term (by the sequences and their context). Each is
rounded to the nearest nanosecond, then they are added, with the host overhead (engine.md 7.1). Times from performance
data know each prompt of a pass: what all its tokens take together, the attention of each prompt, and that of the
decoding sequences are terms of their own; a pass without a prompt is one step (engine.md 5).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dgdr_job.replay.errors import InvalidTiming

FIXED, POLYNOMIAL, TABLE, PERFORMANCE = 0, 1, 2, 3
NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000
LONGEST_PASS_MS = 1e9
"""Eleven days: what is longer is no pass time."""


def _empty() -> NDArray[np.float64]:
    return np.zeros(0)


def _empty_table() -> NDArray[np.float64]:
    return np.zeros((0, 0))


@dataclass(frozen=True)
class PassTimes:
    """Times of one role. Arrays of the kinds that do not use them are empty.

    Attributes:
        kind: FIXED, POLYNOMIAL, TABLE or PERFORMANCE.
        prefill_ms, decode_ms: milliseconds of every pass, for FIXED.
        prefill_tokens, prefill_table_ms: points of the prefill term, shape [p], tokens ascending.
            For PERFORMANCE: all but attention, by all tokens of a pass, decoding ones too.
        decode_batch, decode_context, decode_table_ms: points of the decode term, shapes [b], [c] and [b, c].
            For PERFORMANCE: a whole step without prompts.
        prompt_counts, new_tokens, cached_tokens, prompt_table_ms: attention of one of so many prompts by its new tokens
            and those before them, shapes [p], [n], [k] and [p, n, k], for PERFORMANCE. More prompts are as the most.
        attention_table_ms: attention of the decoding sequences beside prompts, shape [b, c], for PERFORMANCE.
        host_overhead_ns: added to every pass.
    """

    kind: int
    prefill_ms: float = 0.0
    decode_ms: float = 0.0
    prefill_tokens: NDArray[np.float64] = field(default_factory=_empty)
    prefill_table_ms: NDArray[np.float64] = field(default_factory=_empty)
    decode_batch: NDArray[np.float64] = field(default_factory=_empty)
    decode_context: NDArray[np.float64] = field(default_factory=_empty)
    decode_table_ms: NDArray[np.float64] = field(default_factory=_empty_table)
    prompt_counts: NDArray[np.float64] = field(default_factory=_empty)
    new_tokens: NDArray[np.float64] = field(default_factory=_empty)
    cached_tokens: NDArray[np.float64] = field(default_factory=_empty)
    prompt_table_ms: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 0, 0)))
    attention_table_ms: NDArray[np.float64] = field(default_factory=_empty_table)
    host_overhead_ns: int = 0

    def pass_ns(self, prompts: Sequence[tuple[int, int]], batch: int, context_tokens: int, capacity_tokens: int) -> int:
        """Nanoseconds of a pass, without the host overhead.

        Args:
            prompts: of each prompt in the pass the computed tokens before and after it.
            batch: decoding sequences.
            context_tokens: the sum of their lengths.
            capacity_tokens: tokens that the KV cache of the rank holds.
        """
        if self.kind == PERFORMANCE and prompts:
            return self._mixed_ns(prompts, batch, context_tokens)
        total = 0
        if prompts:
            count = len(prompts)
            means = sum(end for _, end in prompts) // count - sum(start for start, _ in prompts) // count
            total += self.prefill_ns(count * means)
        if batch:
            total += self.decode_ns(batch, context_tokens, capacity_tokens)
        return total

    def _mixed_ns(self, prompts: Sequence[tuple[int, int]], batch: int, context_tokens: int) -> int:
        tokens = sum(end - start for start, end in prompts) + batch
        total = nanoseconds(_linear(self.prefill_tokens, self.prefill_table_ms, float(tokens)))
        row, part = _segment(self.prompt_counts, min(float(len(prompts)), float(self.prompt_counts[-1])))
        for start, end in prompts:
            total += nanoseconds(self._prompt_ms(row, part, end - start, start))
        if batch:
            total += nanoseconds(self._decode_table(self.attention_table_ms, float(batch), context_tokens / batch))
        return total

    def _prompt_ms(self, row: int, part: float, new: int, cached: int) -> float:
        low = _bilinear(self.new_tokens, self.cached_tokens, self.prompt_table_ms[row], new, cached)
        if part == 0.0:
            return low
        high = _bilinear(self.new_tokens, self.cached_tokens, self.prompt_table_ms[row + 1], new, cached)
        return low + part * (high - low)

    def prefill_ns(self, tokens: int) -> int:
        """Nanoseconds of the prefill term of a pass with so many new prompt tokens; not for PERFORMANCE."""
        if self.kind == FIXED:
            return nanoseconds(self.prefill_ms)
        if self.kind == POLYNOMIAL:
            return nanoseconds(4.209989e-7 * (tokens * tokens) + 1.518344e-2 * tokens + 16.50142)
        return nanoseconds(_linear(self.prefill_tokens, self.prefill_table_ms, float(tokens)))

    def decode_ns(self, batch: int, context_tokens: int, capacity_tokens: int) -> int:
        """Nanoseconds of the decode term.

        Args:
            batch: decoding sequences, at least 1.
            context_tokens: the sum of their lengths.
            capacity_tokens: tokens that the KV cache of the rank holds.
        """
        if self.kind == FIXED:
            return nanoseconds(self.decode_ms)
        if self.kind == POLYNOMIAL:
            used = min(1.0, context_tokens / capacity_tokens)
            return nanoseconds(max(1.0, -25.74 * (used * used) + 54.01 * used + 5.74))
        return nanoseconds(self._decode_table(self.decode_table_ms, float(batch), context_tokens / batch))

    def _decode_table(self, table: NDArray[np.float64], batch: float, context: float) -> float:
        return _bilinear(self.decode_batch, self.decode_context, table, batch, context)


def nanoseconds(milliseconds: float) -> int:
    """The nearest whole number of nanoseconds to the seconds as a double: exact, half to even.

    The peer's durations are made of seconds; a polynomial is often half a nanosecond away from two numbers.

    Raises:
        InvalidTiming: the time is negative, not finite or longer than any pass.
    """
    if not 0 <= milliseconds <= LONGEST_PASS_MS:
        raise InvalidTiming(f"a pass would take {milliseconds} ms; expected 0 to {LONGEST_PASS_MS:.0f}")
    numerator, denominator = (float(milliseconds) / 1000.0).as_integer_ratio()
    whole, rest = divmod(numerator * NS_PER_S, denominator)
    return whole + (2 * rest > denominator or (2 * rest == denominator and whole % 2 == 1))


def _segment(points: NDArray[np.float64], at: float) -> tuple[int, float]:
    """The segment that holds ``at`` and how far into it; beyond the last point the last segment goes on."""
    last = len(points) - 1
    if last == 0 or at <= points[0]:
        return 0, 0.0
    low, high = 0, last
    while high - low > 1:
        middle = (low + high) // 2
        if points[middle] <= at:
            low = middle
        else:
            high = middle
    return low, float((at - points[low]) / (points[low + 1] - points[low]))


def _linear(points: NDArray[np.float64], values: NDArray[np.float64], at: float) -> float:
    row, part = _segment(points, at)
    low = float(values[row])
    return low if part == 0.0 else low + part * (float(values[row + 1]) - low)


def _bilinear(
    rows: NDArray[np.float64], columns: NDArray[np.float64], values: NDArray[np.float64], at: float, across: float
) -> float:
    row, part = _segment(rows, at)
    low = _linear(columns, values[row], across)
    return low if part == 0.0 else low + part * (_linear(columns, values[row + 1], across) - low)


def read_table(path: Path, host_overhead_ns: int = 0) -> PassTimes:
    """Times from an npz file; linear between its points, the ends go on as they are.

    Raises:
        InvalidTiming: the file cannot be read, an array is missing, or its values are no table.
    """
    names = ("prefill_tokens", "prefill_ms", "decode_batch", "decode_context", "decode_ms")
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: np.asarray(file[name], dtype=np.float64) for name in names}
    except (OSError, ValueError, KeyError) as error:
        raise InvalidTiming(f"{path}: {error}; expected an npz file with {', '.join(names)}") from error
    for name in ("prefill_tokens", "decode_batch", "decode_context"):
        points = arrays[name]
        if points.ndim != 1 or not len(points) or not np.all(np.diff(points) > 0) or not np.all(np.isfinite(points)):
            raise InvalidTiming(f"{path}: {name} must be a list of at least one number, ascending")
    shapes = {
        "prefill_ms": arrays["prefill_tokens"].shape,
        "decode_ms": arrays["decode_batch"].shape + arrays["decode_context"].shape,
    }
    for name, shape in shapes.items():
        values = arrays[name]
        if values.shape != shape:
            raise InvalidTiming(f"{path}: {name} has the shape {values.shape}; expected {shape}")
        if not np.all((values >= 0) & (values <= LONGEST_PASS_MS)):
            wrong = values[~((values >= 0) & (values <= LONGEST_PASS_MS))][0]
            raise InvalidTiming(f"{path}: {name} holds {wrong}; expected 0 to {LONGEST_PASS_MS:.0f} milliseconds")
    return PassTimes(
        kind=TABLE,
        prefill_tokens=arrays["prefill_tokens"],
        prefill_table_ms=arrays["prefill_ms"],
        decode_batch=arrays["decode_batch"],
        decode_context=arrays["decode_context"],
        decode_table_ms=arrays["decode_ms"],
        host_overhead_ns=host_overhead_ns,
    )


def is_time(milliseconds: float) -> bool:
    """Whether a number can be the time of a pass."""
    return math.isfinite(milliseconds) and 0 <= milliseconds <= LONGEST_PASS_MS
