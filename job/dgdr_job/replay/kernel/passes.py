"""Passes of the workers: one by one where something is decided, in spans where they only decode."""

import math

from dgdr_job.replay.kernel.blocks import NOTHING, key_of, publish, release, take
from dgdr_job.replay.kernel.queues import request_ended, set_end
from dgdr_job.replay.kernel.scheduler import (
    cached_and_fits,
    is_computed,
    next_in_line,
    promise,
    run_pass,
    up,
)
from dgdr_job.replay.kernel.state import (
    AFTER_IN_PHASE,
    ATTEMPT,
    BAD_PASS_TIME,
    BLOCK,
    BLOCKS,
    BUSY,
    BY_PHASE,
    CACHING,
    CAPACITY,
    COMPUTED,
    CONTEXT,
    DECODE,
    DECODED,
    EMITTED,
    EMITTED_COUNT,
    EXACT,
    FAILURE,
    FIRST_RANK,
    FIRST_WORKER,
    FREE,
    GAP_BINS,
    GAP_COUNT,
    GAP_MAX,
    GAP_MIN,
    GAP_SUM,
    GENERATED,
    GENERATION,
    GROWTH,
    HELD_BLOCKS,
    ISL,
    KIND,
    LAST_END,
    LEFT,
    LONGEST_SPAN,
    MAX_SEQS,
    MAX_TOKENS,
    NEVER,
    NEXT_END,
    NOW,
    NO_EVICTION,
    OSL,
    OUT_FIRST,
    OUT_LAST,
    OUT_STATUS,
    PART_END,
    PART_START,
    PASSES,
    PASS_ID,
    PASS_PARTS,
    PEAK,
    PENDING_HEAD,
    PREFILL,
    PROMPTS,
    RANKS,
    RANK_ROLE,
    REQUESTS,
    RUNNING,
    RUNNING_COUNT,
    RUNNING_START,
    SLOT_KEY,
    SPAN,
    SPAN_NS,
    SPAN_START,
    SPAN_WIDTH,
    STARTED,
    STEADY,
    TABLE,
    TABLE_START,
    TICK,
    USED,
    WARM,
    WARMUP,
    WORKER_ROLE,
    YIELDED_WARM,
)
from dgdr_job.replay.kernel.steady import advance, growth
from dgdr_job.replay.kernel.times import (
    decode_ns,
    mixed_ns,
    polynomial_decode_ns,
    prefill_ns,
    prompt_ns,
    prompts_segment,
)
from dgdr_job.replay.pass_times import FIXED, PERFORMANCE, POLYNOMIAL
from dgdr_job.replay.kernel import compiling  # noqa: F401 - names the cache before numba compiles
from numba import njit


@njit(cache=True, error_model="numpy")
def note_gap(m, o, gap, count):  # type: ignore[no-untyped-def]
    """Count a time between tokens: exact sums, and a bin of a thousandth of its size."""
    m[GAP_COUNT] += count
    m[GAP_SUM] += gap * count
    m[GAP_MIN] = min(m[GAP_MIN], gap)
    m[GAP_MAX] = max(m[GAP_MAX], gap)
    if gap == 0:
        m[o[GAP_BINS] + 0] += count
        return
    mantissa, exponent = math.frexp(float(gap))
    m[o[GAP_BINS] + 1 + ((exponent - 1) << 10) + int((2.0 * mantissa - 1.0) * 1024.0)] += count


@njit(cache=True, error_model="numpy")
def _mixed_duration_ns(m, o, rank, times):  # type: ignore[no-untyped-def]
    """A pass with prompts, of times that know each of them."""
    parts = o[PASS_PARTS] + rank * 8
    start = o[PROMPTS] + m[o[RUNNING_START] + rank]
    tokens = m[parts + 6]
    total = 0
    row, part = prompts_segment(times, m[parts + 1])
    for at in range(start, start + m[parts + 1]):
        sequence = m[at]
        before = m[o[PART_START] + sequence]
        new = m[o[PART_END] + sequence] - before
        tokens += new
        attention = prompt_ns(times, row, part, new, before)
        if attention < 0:
            m[FAILURE] = BAD_PASS_TIME
        total += attention
    others = mixed_ns(times, tokens, m[parts + 6], m[parts + 7])
    if others < 0:
        m[FAILURE] = BAD_PASS_TIME
    return total + others


@njit(cache=True, error_model="numpy")
def _duration_ns(m, o, rank, times):  # type: ignore[no-untyped-def]
    role = m[o[RANK_ROLE] + rank]
    parts = o[PASS_PARTS] + rank * 8
    if times.kind == PERFORMANCE and m[parts + 1] and m[o[KIND] + role] != DECODE:
        return _mixed_duration_ns(m, o, rank, times)
    total = 0
    if m[parts + 1] and m[o[KIND] + role] != DECODE:
        tokens = m[parts + 1] * (m[parts + 3] // m[parts + 1] - m[parts + 2] // m[parts + 1])
        prefill = prefill_ns(times, tokens)
        if prefill < 0:
            m[FAILURE] = BAD_PASS_TIME
        total += prefill
    if m[parts + 6]:
        decode = decode_ns(times, m[parts + 6], m[parts + 7], m[o[CAPACITY] + role])
        if decode < 0:
            m[FAILURE] = BAD_PASS_TIME
        total += decode
    return total


@njit(cache=True, error_model="numpy")
def _can_span(m, o, rank, role):  # type: ignore[no-untyped-def]
    """Whether the next passes only decode: all that run did so in the last one, and nobody can join them."""
    count = m[o[RUNNING_COUNT] + rank]
    if count == 0 or count > m[o[MAX_TOKENS] + role] or m[o[RANKS] + role] > 1:
        return False
    if not m[o[DECODED] + rank] if m[EXACT] else m[o[STEADY] + rank] < count:
        return False
    waits = m[o[PENDING_HEAD] + rank]
    if waits != NOTHING and m[o[ATTEMPT] + waits] != m[o[GENERATION] + rank]:
        return False  # the end of the next pass lets it in
    if count < m[o[MAX_SEQS] + role]:
        sequence = next_in_line(m, o, rank, role)
        if sequence != NOTHING:
            if is_computed(m, o, role, sequence):
                return False
            _, fits = cached_and_fits(m, o, rank, role, sequence)
            return not fits
    return True


@njit(cache=True, error_model="numpy")
def _soonest_end(m, o, rank, role):  # type: ignore[no-untyped-def]
    """Passes until the first of those that run ends, and the sum of their lengths."""
    start = o[RUNNING] + m[o[RUNNING_START] + rank]
    shortest = LONGEST_SPAN
    context = 0
    first = role * m[REQUESTS]
    generated, isl, osl = o[GENERATED], o[ISL], o[OSL]
    for at in range(start, start + m[o[RUNNING_COUNT] + rank]):
        sequence = m[at]
        done = m[generated + sequence]
        shortest = min(shortest, m[osl + sequence - first] - done)
        context += m[isl + sequence - first] + done
    return shortest, context


@njit(cache=True, error_model="numpy")
def _growth_of_each(m, o, rank, passes, block):  # type: ignore[no-untyped-def]
    start = o[RUNNING] + m[o[RUNNING_START] + rank]
    grown = 0
    for at in range(start, start + m[o[RUNNING_COUNT] + rank]):
        sequence = m[at]
        grown += up(m[o[COMPUTED] + sequence] + passes, block) - m[o[HELD_BLOCKS] + sequence]
    return grown


@njit(cache=True, error_model="numpy")
def _plan_span(m, o, worker, rank, role, times):  # type: ignore[no-untyped-def]
    """Time the passes until the first sequence ends; False when blocks may run out before."""
    count = m[o[RUNNING_COUNT] + rank]
    block = m[o[BLOCK] + role]
    room = m[o[BLOCKS] + role] - m[o[USED] + rank]
    if m[EXACT]:
        shortest, context = _soonest_end(m, o, rank, role)
        grown = _growth_of_each(m, o, rank, shortest, block) if count * up(shortest, block) > room else 0
    else:
        shortest = min(LONGEST_SPAN, m[o[NEXT_END] + rank] - m[o[TICK] + rank])
        context = m[o[CONTEXT] + rank]
        grown = growth(m, o, rank, role, shortest) if count * up(shortest, block) > room else 0
    if grown > room:
        return False
    end = m[NOW]
    capacity = m[o[CAPACITY] + role]
    overhead, kind = times.overhead_ns, times.kind
    duration = 0
    spans = o[SPAN_NS] + worker * m[SPAN_WIDTH]
    for index in range(spans, spans + shortest):
        if kind == POLYNOMIAL:
            duration = polynomial_decode_ns(context, capacity)
        elif kind != FIXED or index == spans:
            duration = decode_ns(times, count, context, capacity)
        if duration < 0:
            m[FAILURE] = BAD_PASS_TIME
            return False
        m[index] = duration + overhead
        end += duration + overhead
        context += count
    m[o[SPAN] + worker] = shortest
    m[o[SPAN_START] + worker] = m[NOW]
    m[o[BUSY] + worker] = 1
    set_end(m, o, worker, end)
    return True


@njit(cache=True, error_model="numpy")
def interrupt(m, o, worker):  # type: ignore[no-untyped-def]
    """Something reaches a worker inside a span: end the span with the pass that runs now.

    A pass that ends at this very instant has ended, unless passes of this instant were started since.
    """
    if m[o[SPAN] + worker] == 0:
        return
    end = m[o[SPAN_START] + worker]
    done = 0
    while done < m[o[SPAN] + worker] and (end < m[NOW] or done == 0 or (end == m[NOW] and m[STARTED])):
        end += m[o[SPAN_NS] + worker * m[SPAN_WIDTH] + done]
        done += 1
    if done < m[o[SPAN] + worker]:
        m[o[SPAN] + worker] = done
        set_end(m, o, worker, end)


@njit(cache=True, error_model="numpy")
def start_pass(m, o, worker, times):  # type: ignore[no-untyped-def]
    """Start the next pass of an idle worker. Returns whether anything was done."""
    role = m[o[WORKER_ROLE] + worker]
    first = m[o[FIRST_RANK] + role] + (worker - m[o[FIRST_WORKER] + role]) * m[o[RANKS] + role]
    if _can_span(m, o, first, role) and _plan_span(m, o, worker, first, role, times):
        return True
    if m[FAILURE]:
        return False
    m[PASS_ID] += 1
    something = False
    longest = 0
    for rank in range(first, first + m[o[RANKS] + role]):
        m[o[EMITTED_COUNT] + rank] = 0
        something = run_pass(m, o, rank) or something
        if m[FAILURE]:
            return False
    if not something:
        return False
    for rank in range(first, first + m[o[RANKS] + role]):
        longest = max(longest, _duration_ns(m, o, rank, times))
    m[PASSES] += 1
    m[o[BUSY] + worker] = 1
    m[o[SPAN] + worker] = 0
    set_end(m, o, worker, m[NOW] + longest + times.overhead_ns)
    return True


@njit(cache=True, error_model="numpy")
def _end_request(m, o, request):  # type: ignore[no-untyped-def]
    m[o[OUT_STATUS] + request] = 1
    m[LEFT] -= 1
    request_ended(m, o, request)


@njit(cache=True, error_model="numpy")
def _grow(m, o, rank, role, passes):  # type: ignore[no-untyped-def]
    """Take and publish the blocks of a span, pass by pass, in the order of those that run."""
    start = o[RUNNING] + m[o[RUNNING_START] + rank]
    block = m[o[BLOCK] + role]
    first, following = o[BY_PHASE], o[AFTER_IN_PHASE]
    held = 0
    m[first : first + block] = NOTHING
    for at in range(m[o[RUNNING_COUNT] + rank] - 1, -1, -1):
        phase = m[o[COMPUTED] + m[start + at]] % block
        m[following + at] = m[first + phase]
        m[first + phase] = at
    for index in range(passes):
        full = m[first + (-index) % block]
        ending = m[first + (-index - 1) % block] if m[o[CACHING] + role] else NOTHING
        while full != NOTHING or ending != NOTHING:
            if full != NOTHING and (ending == NOTHING or full <= ending):
                take(m, o, rank, m[start + full], 0, 1)
                held += 1
                full = m[following + full]
            else:
                sequence = m[start + ending]
                place = (m[o[COMPUTED] + sequence] + index) // block
                slot = m[o[TABLE] + m[o[TABLE_START] + sequence] + place]
                if m[o[SLOT_KEY] + slot] == NOTHING:
                    publish(m, o, rank, slot, key_of(m, o, role, sequence - role * m[REQUESTS], place))
                ending = m[following + ending]
    if m[o[NO_EVICTION] + role]:
        m[o[GROWTH] + rank] -= held


@njit(cache=True, error_model="numpy")
def end_span(m, o, worker, rank):  # type: ignore[no-untyped-def]
    """Move all that run to the end of the span."""
    role = m[o[WORKER_ROLE] + worker]
    passes = m[o[SPAN] + worker]
    count = m[o[RUNNING_COUNT] + rank]
    m[o[PEAK] + role * 4 + 0] = max(m[o[PEAK] + role * 4 + 0], count)
    m[o[PEAK] + role * 4 + 1] = max(m[o[PEAK] + role * 4 + 1], count)
    m[PASSES] += passes
    m[o[SPAN] + worker] = 0
    m[o[EMITTED_COUNT] + rank] = 0
    if m[EXACT]:
        _grow(m, o, rank, role, passes)
        warm = _advance_each(m, o, rank, role, passes)
    else:
        warm = m[o[WARM] + rank]
        _grow_together(m, o, rank, role, passes)
        m[o[LAST_END] + rank] = m[NOW]
        advance(m, o, rank, role, passes)
    if warm:
        spans = o[SPAN_NS] + worker * m[SPAN_WIDTH]
        for index in range(spans, spans + passes):
            note_gap(m, o, m[index], warm)
    ended = o[EMITTED] + m[o[RUNNING_START] + rank]
    for at in range(ended, ended + m[o[EMITTED_COUNT] + rank]):
        _end_request(m, o, m[at] - role * m[REQUESTS])
    m[o[EMITTED_COUNT] + rank] = 0


@njit(cache=True, error_model="numpy")
def _grow_together(m, o, rank, role, passes):  # type: ignore[no-untyped-def]
    grown = growth(m, o, rank, role, passes)
    m[o[USED] + rank] += grown
    if m[o[NO_EVICTION] + role]:
        m[o[GROWTH] + rank] -= grown
    evict = max(0, grown - m[o[FREE] + rank])
    m[o[FREE] + rank] -= grown - evict
    m[o[PEAK] + role * 4 + 2] = max(m[o[PEAK] + role * 4 + 2], m[o[USED] + rank])
    m[o[PEAK] + role * 4 + 3] += evict


@njit(cache=True, error_model="numpy")
def _advance_each(m, o, rank, role, passes):  # type: ignore[no-untyped-def]
    """Where each block matters. Those that end are moved to the yielded ones; returns how many are counted."""
    first = role * m[REQUESTS]
    start = o[RUNNING] + m[o[RUNNING_START] + rank]
    target = o[EMITTED] + m[o[RUNNING_START] + rank]
    generated, computed, last, osl = o[GENERATED], o[COMPUTED], o[OUT_LAST], o[OSL]
    now, warmup = m[NOW], m[WARMUP]
    warm = 0
    left = start
    for at in range(start, start + m[o[RUNNING_COUNT] + rank]):
        sequence = m[at]
        m[computed + sequence] += passes
        m[generated + sequence] += passes
        m[last + sequence - first] = now
        warm += sequence - first >= warmup
        if m[generated + sequence] < m[osl + sequence - first]:
            m[left] = sequence
            left += 1
            continue
        if m[o[NO_EVICTION] + role]:
            promise(m, o, rank, role, sequence, -1)
        release(m, o, rank, sequence, m[o[CACHING] + role])
        m[target + m[o[EMITTED_COUNT] + rank]] = sequence
        m[o[EMITTED_COUNT] + rank] += 1
    m[o[RUNNING_COUNT] + rank] = left - start
    return warm


@njit(cache=True, error_model="numpy")
def end_tokens(m, o, rank):  # type: ignore[no-untyped-def]
    """Note the tokens that a pass of an aggregated or decode rank yields at its end."""
    role = m[o[RANK_ROLE] + rank]
    n = m[REQUESTS]
    now, warmup = m[NOW], m[WARMUP]
    start = o[EMITTED] + m[o[RUNNING_START] + rank]
    first, last, generated, osl = o[OUT_FIRST], o[OUT_LAST], o[GENERATED], o[OSL]
    if m[o[YIELDED_WARM] + rank]:
        note_gap(m, o, now - m[o[LAST_END] + rank], m[o[YIELDED_WARM] + rank])
        m[o[YIELDED_WARM] + rank] = 0
    m[o[LAST_END] + rank] = now
    gap = -1
    same = 0  # most sequences of a pass have the same gap
    for at in range(start, start + m[o[EMITTED_COUNT] + rank]):
        sequence = m[at]
        request = sequence - role * n
        before = m[last + request]
        if before < 0:
            m[first + request] = now
        elif request >= warmup:
            if now - before != gap:
                if same:
                    note_gap(m, o, gap, same)
                gap = now - before
                same = 0
            same += 1
        m[last + request] = now
        if m[generated + sequence] == m[osl + request]:
            _end_request(m, o, request)
    if same:
        note_gap(m, o, gap, same)
    m[o[EMITTED_COUNT] + rank] = 0


@njit(cache=True, error_model="numpy")
def idle(m, o, worker):  # type: ignore[no-untyped-def]
    """A worker has ended its pass."""
    m[o[BUSY] + worker] = 0
    set_end(m, o, worker, NEVER)


@njit(cache=True, error_model="numpy")
def is_prefill(m, o, worker):  # type: ignore[no-untyped-def]
    """Whether a worker computes prompts for others."""
    return m[o[KIND] + m[o[WORKER_ROLE] + worker]] == PREFILL
