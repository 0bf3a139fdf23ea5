"""Pass times, the same operations in the same order as `dgdr_job.replay.pass_times`."""

from typing import Any, NamedTuple

from dgdr_job.replay.kernel import compiling  # noqa: F401 - names the cache before numba compiles
from numba import njit

LONGEST_PASS_MS = 1e9
BAD_TIME = -1


class Times(NamedTuple):
    """`PassTimes` as the kernel takes it."""

    kind: int
    prefill_ms: float
    decode_ms: float
    prefill_tokens: Any
    prefill_table_ms: Any
    decode_batch: Any
    decode_context: Any
    decode_table_ms: Any
    prompt_counts: Any
    new_tokens: Any
    cached_tokens: Any
    prompt_table_ms: Any
    attention_table_ms: Any
    overhead_ns: int
    link_ms_per_token: float


TABLES = (
    "prefill_tokens",
    "prefill_table_ms",
    "decode_batch",
    "decode_context",
    "decode_table_ms",
    "prompt_counts",
    "new_tokens",
    "cached_tokens",
    "prompt_table_ms",
    "attention_table_ms",
)
"""The arrays among the fields of `Times`."""


@njit(cache=True, error_model="numpy")
def nanoseconds(ms):  # type: ignore[no-untyped-def]
    """Nearest whole nanosecond to the seconds as a double, half to even; BAD_TIME when there is none."""
    if not (0 <= ms <= LONGEST_PASS_MS):
        return BAD_TIME
    seconds = ms / 1000.0
    product = seconds * 1e9
    whole = int(product)
    part = product - whole
    if part > 0.5:
        return whole + 1
    if part < 0.5:
        return whole
    # Half as far as doubles can tell: the rounding error of the product decides (Dekker).
    split = seconds * 134217729.0
    high = split - (split - seconds)
    low = seconds - high
    error = (high * 1e9 - product) + low * 1e9
    if error > 0:
        return whole + 1
    if error < 0:
        return whole
    return whole + (whole & 1)


@njit(cache=True, error_model="numpy")
def _segment(points, at):  # type: ignore[no-untyped-def]
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
    return low, (at - points[low]) / (points[low + 1] - points[low])


@njit(cache=True, error_model="numpy")
def _linear(points, values, at):  # type: ignore[no-untyped-def]
    row, part = _segment(points, at)
    low = values[row]
    if part == 0.0:
        return low
    return low + part * (values[row + 1] - low)


@njit(cache=True, error_model="numpy")
def _bilinear(rows, columns, values, at, across):  # type: ignore[no-untyped-def]
    row, part = _segment(rows, float(at))
    low = _linear(columns, values[row], float(across))
    if part == 0.0:
        return low
    return low + part * (_linear(columns, values[row + 1], float(across)) - low)


@njit(cache=True, error_model="numpy")
def prefill_ns(times, tokens):  # type: ignore[no-untyped-def]
    """`PassTimes.prefill_ns`."""
    if times.kind == 0:
        return nanoseconds(times.prefill_ms)
    if times.kind == 1:
        return nanoseconds(4.209989e-7 * (tokens * tokens) + 1.518344e-2 * tokens + 16.50142)
    return nanoseconds(_linear(times.prefill_tokens, times.prefill_table_ms, float(tokens)))


@njit(cache=True, error_model="numpy")
def polynomial_decode_ns(context, capacity):  # type: ignore[no-untyped-def]
    """The polynomial's decode term."""
    used = min(1.0, context / capacity)
    return nanoseconds(max(1.0, -25.74 * (used * used) + 54.01 * used + 5.74))


@njit(cache=True, error_model="numpy")
def decode_ns(times, batch, context, capacity):  # type: ignore[no-untyped-def]
    """`PassTimes.decode_ns`."""
    if times.kind == 0:
        return nanoseconds(times.decode_ms)
    if times.kind == 1:
        return polynomial_decode_ns(context, capacity)
    return nanoseconds(
        _bilinear(times.decode_batch, times.decode_context, times.decode_table_ms, batch, context / batch)
    )


@njit(cache=True, error_model="numpy")
def mixed_ns(times, tokens, batch, context):  # type: ignore[no-untyped-def]
    """`PassTimes._mixed_ns` without the attention of the prompts; BAD_TIME when there is none."""
    total = nanoseconds(_linear(times.prefill_tokens, times.prefill_table_ms, float(tokens)))
    if batch and total >= 0:
        attention = nanoseconds(
            _bilinear(times.decode_batch, times.decode_context, times.attention_table_ms, batch, context / batch)
        )
        total = total + attention if attention >= 0 else BAD_TIME
    return total


@njit(cache=True, error_model="numpy")
def prompts_segment(times, prompts):  # type: ignore[no-untyped-def]
    """Where so many prompts stand in the table."""
    return _segment(times.prompt_counts, min(float(prompts), times.prompt_counts[-1]))


@njit(cache=True, error_model="numpy")
def prompt_ns(times, row, part, new, cached):  # type: ignore[no-untyped-def]
    """Attention of one prompt of a pass; ``row`` and ``part`` are those of `prompts_segment`."""
    low = _bilinear(times.new_tokens, times.cached_tokens, times.prompt_table_ms[row], new, cached)
    if part == 0.0:
        return nanoseconds(low)
    high = _bilinear(times.new_tokens, times.cached_tokens, times.prompt_table_ms[row + 1], new, cached)
    return nanoseconds(low + part * (high - low))
