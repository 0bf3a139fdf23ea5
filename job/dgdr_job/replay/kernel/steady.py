"""Sequences that decode in every pass, counted together instead of one by one.

The first ``STEADY`` ones of those that run on a rank take a token in each pass, so all that is known of them moves with
the rank's ``TICK``, the passes so far: a sequence that joined at tick b has at tick t as many more tokens as t - b. Of
all of them together the rank knows the sum of their lengths, the tick at which the next one ends, how many of them fill
a block at each tick (their phase), and when their last token came. What is kept of a single one is as it was when it
joined, until `settle` brings it up to date: before anything else is decided about it, and at its end.

Only where nothing is ever found in a cache: else each block matters.
"""

from dgdr_job.replay.kernel.blocks import release
from dgdr_job.replay.kernel.state import (
    BASE,
    BLOCK,
    CACHING,
    COMPUTED,
    CONTEXT,
    EMITTED,
    EMITTED_COUNT,
    ENDS,
    GENERATED,
    GROWTH,
    HELD_BLOCKS,
    ISL,
    LAST_END,
    NEVER,
    NEXT_END,
    NO_EVICTION,
    OSL,
    OUT_LAST,
    PART_END,
    PART_PASS,
    PART_START,
    PART_TOKENS,
    PASS_ID,
    PHASES,
    PHASE_WIDTH,
    RANK_ROLE,
    REQUESTS,
    RUNNING,
    RUNNING_COUNT,
    RUNNING_START,
    STEADY,
    TICK,
    WARM,
    WARMUP,
)
from dgdr_job.replay.kernel import compiling  # noqa: F401 - names the cache before numba compiles
from numba import njit


@njit(cache=True, error_model="numpy")
def _blocks(tokens, block):  # type: ignore[no-untyped-def]
    return (tokens + block - 1) // block


@njit(cache=True, error_model="numpy")
def join(m, o, rank, role, sequence):  # type: ignore[no-untyped-def]
    """The next of those that run joins the steady ones: from now on it decodes in every pass."""
    request = sequence - role * m[REQUESTS]
    tick = m[o[TICK] + rank]
    end = tick + m[o[OSL] + request] - m[o[GENERATED] + sequence]
    m[o[BASE] + sequence] = tick
    m[o[ENDS] + m[o[RUNNING_START] + rank] + m[o[STEADY] + rank]] = end
    m[o[NEXT_END] + rank] = min(m[o[NEXT_END] + rank], end)
    m[o[PHASES] + rank * m[PHASE_WIDTH] + (m[o[COMPUTED] + sequence] - tick) % m[o[BLOCK] + role]] += 1
    m[o[CONTEXT] + rank] += m[o[ISL] + request] + m[o[GENERATED] + sequence]
    m[o[WARM] + rank] += request >= m[WARMUP]
    m[o[STEADY] + rank] += 1


@njit(cache=True, error_model="numpy")
def growth(m, o, rank, role, passes):  # type: ignore[no-untyped-def]
    """Blocks that the steady ones fill up and need anew in so many passes from now on."""
    block = m[o[BLOCK] + role]
    phases = o[PHASES] + rank * m[PHASE_WIDTH]
    grown = passes // block * m[o[STEADY] + rank]
    phase = (-m[o[TICK] + rank]) % block
    for _ in range(passes % block):
        grown += m[phases + phase]
        phase = phase - 1 if phase else block - 1
    return grown


@njit(cache=True, error_model="numpy")
def _update(m, o, rank, role, sequence, block):  # type: ignore[no-untyped-def]
    passes = m[o[TICK] + rank] - m[o[BASE] + sequence]
    if passes == 0:
        return
    m[o[GENERATED] + sequence] += passes
    m[o[COMPUTED] + sequence] += passes
    m[o[HELD_BLOCKS] + sequence] = _blocks(m[o[COMPUTED] + sequence], block)
    m[o[OUT_LAST] + sequence - role * m[REQUESTS]] = m[o[LAST_END] + rank]


@njit(cache=True, error_model="numpy")
def settle(m, o, rank):  # type: ignore[no-untyped-def]
    """Bring all steady ones up to date; none is steady then."""
    role = m[o[RANK_ROLE] + rank]
    block = m[o[BLOCK] + role]
    start = o[RUNNING] + m[o[RUNNING_START] + rank]
    for at in range(start, start + m[o[STEADY] + rank]):
        _update(m, o, rank, role, m[at], block)
    for at in range(o[PHASES] + rank * m[PHASE_WIDTH], o[PHASES] + (rank + 1) * m[PHASE_WIDTH]):
        m[at] = 0
    m[o[STEADY] + rank] = 0
    m[o[CONTEXT] + rank] = 0
    m[o[WARM] + rank] = 0
    m[o[NEXT_END] + rank] = NEVER


@njit(cache=True, error_model="numpy")
def settle_scheduled(m, o, rank):  # type: ignore[no-untyped-def]
    """`settle`, in the middle of a pass that has given each of them its token."""
    role = m[o[RANK_ROLE] + rank]
    block = m[o[BLOCK] + role]
    start = o[RUNNING] + m[o[RUNNING_START] + rank]
    count = m[o[STEADY] + rank]
    settle(m, o, rank)
    for at in range(start, start + count):
        sequence = m[at]
        isl = m[o[ISL] + sequence - role * m[REQUESTS]]
        m[o[COMPUTED] + sequence] += 1
        m[o[HELD_BLOCKS] + sequence] = _blocks(m[o[COMPUTED] + sequence], block)
        m[o[PART_PASS] + sequence] = m[PASS_ID]
        m[o[PART_TOKENS] + sequence] = 1
        m[o[PART_START] + sequence] = isl
        m[o[PART_END] + sequence] = isl


@njit(cache=True, error_model="numpy")
def advance(m, o, rank, role, passes):  # type: ignore[no-untyped-def]
    """All steady ones have had so many passes. Those that end now are moved to the yielded ones, their blocks freed."""
    m[o[TICK] + rank] += passes
    count = m[o[STEADY] + rank]
    m[o[CONTEXT] + rank] += passes * count
    tick = m[o[TICK] + rank]
    if m[o[NEXT_END] + rank] > tick:
        return
    block = m[o[BLOCK] + role]
    first = role * m[REQUESTS]
    start = o[RUNNING] + m[o[RUNNING_START] + rank]
    ends = o[ENDS] + m[o[RUNNING_START] + rank]
    target = o[EMITTED] + m[o[RUNNING_START] + rank]
    phases = o[PHASES] + rank * m[PHASE_WIDTH]
    left = 0
    soonest = NEVER
    for at in range(count):
        end = m[ends + at]
        sequence = m[start + at]
        if end > tick:
            soonest = min(soonest, end)
            m[ends + left] = end
            m[start + left] = sequence
            left += 1
            continue
        m[phases + (m[o[COMPUTED] + sequence] - m[o[BASE] + sequence]) % block] -= 1
        _update(m, o, rank, role, sequence, block)
        request = sequence - first
        m[o[CONTEXT] + rank] -= m[o[ISL] + request] + m[o[GENERATED] + sequence]
        m[o[WARM] + rank] -= request >= m[WARMUP]
        if m[o[NO_EVICTION] + role]:
            final = _blocks(m[o[ISL] + request] + m[o[OSL] + request], block)
            m[o[GROWTH] + rank] -= max(0, final - m[o[HELD_BLOCKS] + sequence])
        release(m, o, rank, sequence, m[o[CACHING] + role])
        m[target + m[o[EMITTED_COUNT] + rank]] = sequence
        m[o[EMITTED_COUNT] + rank] += 1
    for at in range(count, m[o[RUNNING_COUNT] + rank]):
        m[start + left + at - count] = m[start + at]
    m[o[RUNNING_COUNT] + rank] -= count - left
    m[o[STEADY] + rank] = left
    m[o[NEXT_END] + rank] = soonest
