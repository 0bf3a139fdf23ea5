"""A pass of one rank, as `reference.paged`."""

from dgdr_job.replay.kernel.blocks import NOTHING, find_prefix, key_of, publish, release, take
from dgdr_job.replay.kernel.state import (
    AGG,
    BLOCK,
    BLOCKS,
    CACHING,
    CHUNKED,
    COMPUTED,
    CONTEXT,
    DECODE,
    DECODED,
    EMITTED,
    EMITTED_COUNT,
    EXACT,
    FAILURE,
    FOLLOWING,
    FREE,
    GENERATED,
    GENERATION,
    GROWTH,
    HELD_BLOCKS,
    ISL,
    KIND,
    MAX_SEQS,
    MAX_TOKENS,
    NEEDS_BLOCKS,
    NOW,
    NO_EVICTION,
    OLDEST,
    OSL,
    OUT_ADMITTED,
    OUT_DECODE_ADMITTED,
    OUT_OF_ORDER,
    OUT_PREEMPTIONS,
    OUT_REUSED,
    PART_END,
    PART_PASS,
    PART_START,
    PART_TOKENS,
    PASS_ID,
    PASS_PARTS,
    PEAK,
    PENDING_HEAD,
    PRECEDING,
    PREFILL,
    PROMPTS,
    RANK_ROLE,
    REQUESTS,
    RUNNING,
    RUNNING_COUNT,
    RUNNING_START,
    SLOT_KEY,
    STEADY,
    TABLE,
    TABLE_START,
    USED,
    WAIT_HEAD,
    WAIT_TAIL,
    WARM,
    YIELDED_WARM,
)
from dgdr_job.replay.kernel.steady import advance, growth, join, settle, settle_scheduled
from dgdr_job.replay.kernel import compiling  # noqa: F401 - names the cache before numba compiles
from numba import njit

GRANTED, BLOCKED, GAVE_WAY = 0, 1, 2


@njit(cache=True, error_model="numpy")
def up(tokens, block):  # type: ignore[no-untyped-def]
    """Blocks of so many tokens."""
    return (tokens + block - 1) // block


@njit(cache=True, error_model="numpy")
def outputs_of(m, o, role, request):  # type: ignore[no-untyped-def]
    """Tokens that a role generates for a request."""
    return 1 if m[o[KIND] + role] == PREFILL else m[o[OSL] + request]


@njit(cache=True, error_model="numpy")
def line_push(m, o, head, tail, rank, sequence):  # type: ignore[no-untyped-def]
    """Append to a line."""
    last = m[o[tail] + rank]
    m[o[PRECEDING] + sequence] = last
    m[o[FOLLOWING] + sequence] = NOTHING
    if last == NOTHING:
        m[o[head] + rank] = sequence
    else:
        m[o[FOLLOWING] + last] = sequence
    m[o[tail] + rank] = sequence


@njit(cache=True, error_model="numpy")
def line_before(m, o, head, rank, sequence, other):  # type: ignore[no-untyped-def]
    """Insert before another one of the line."""
    before = m[o[PRECEDING] + other]
    m[o[PRECEDING] + sequence] = before
    m[o[FOLLOWING] + sequence] = other
    m[o[PRECEDING] + other] = sequence
    if before == NOTHING:
        m[o[head] + rank] = sequence
    else:
        m[o[FOLLOWING] + before] = sequence


@njit(cache=True, error_model="numpy")
def line_remove(m, o, head, tail, rank, sequence):  # type: ignore[no-untyped-def]
    """Take out of a line."""
    before, after = m[o[PRECEDING] + sequence], m[o[FOLLOWING] + sequence]
    if before == NOTHING:
        m[o[head] + rank] = after
    else:
        m[o[FOLLOWING] + before] = after
    if after == NOTHING:
        m[o[tail] + rank] = before
    else:
        m[o[PRECEDING] + after] = before


@njit(cache=True, error_model="numpy")
def promise(m, o, rank, role, sequence, sign):  # type: ignore[no-untyped-def]
    """Count the growth of a sequence to its end in or out (TensorRT-LLM)."""
    n = m[REQUESTS]
    request = sequence - role * n
    final = up(m[o[ISL] + request] + outputs_of(m, o, role, request), m[o[BLOCK] + role])
    m[o[GROWTH] + rank] += sign * max(0, final - m[o[HELD_BLOCKS] + sequence])


@njit(cache=True, error_model="numpy")
def room_to_completion(m, o, rank, role):  # type: ignore[no-untyped-def]
    """Blocks left when all that run, or are on their way here, have grown to their end."""
    return max(0, m[o[BLOCKS] + role] - m[o[USED] + rank] - m[o[GROWTH] + rank])


@njit(cache=True, error_model="numpy")
def _forget_prompt(m, o, rank, sequence):  # type: ignore[no-untyped-def]
    """Take a prompt out of those of the pass; their order means nothing."""
    start = o[PROMPTS] + m[o[RUNNING_START] + rank]
    last = start + m[o[PASS_PARTS] + rank * 8 + 1] - 1
    at = start
    while m[at] != sequence:
        at += 1
    m[at] = m[last]


@njit(cache=True, error_model="numpy")
def _preempt(m, o, rank, role, budget):  # type: ignore[no-untyped-def]
    """Returns the victim and the budget that it gives back."""
    if m[o[STEADY] + rank]:
        settle_scheduled(m, o, rank)
    start = m[o[RUNNING_START] + rank]
    count = m[o[RUNNING_COUNT] + rank] - 1
    if m[o[OLDEST] + role]:
        victim = m[o[RUNNING] + start]
        for at in range(count):
            m[o[RUNNING] + start + at] = m[o[RUNNING] + start + at + 1]
    else:
        victim = m[o[RUNNING] + start + count]
    m[o[RUNNING_COUNT] + rank] = count
    release(m, o, rank, victim, m[o[CACHING] + role])
    m[o[COMPUTED] + victim] = 0
    head = m[o[WAIT_HEAD] + rank]
    if head == NOTHING:
        line_push(m, o, WAIT_HEAD, WAIT_TAIL, rank, victim)
    else:
        line_before(m, o, WAIT_HEAD, rank, victim, head)
    m[o[OUT_PREEMPTIONS] + victim - role * m[REQUESTS]] += 1
    if m[o[PART_PASS] + victim] == m[PASS_ID]:
        m[o[PART_PASS] + victim] = NOTHING
        budget += m[o[PART_TOKENS] + victim]
        m[o[PASS_PARTS] + rank * 8 + 4] -= m[o[PART_TOKENS] + victim]
        m[o[PASS_PARTS] + rank * 8 + 0] -= 1
        if m[o[PART_END] + victim] > m[o[PART_START] + victim]:
            _forget_prompt(m, o, rank, victim)
            m[o[PASS_PARTS] + rank * 8 + 1] -= 1
            m[o[PASS_PARTS] + rank * 8 + 2] -= m[o[PART_START] + victim]
            m[o[PASS_PARTS] + rank * 8 + 3] -= m[o[PART_END] + victim]
    m[o[PASS_PARTS] + rank * 8 + 5] += 1
    return victim, budget


@njit(cache=True, error_model="numpy")
def _schedule(m, o, rank, role, sequence, cached, budget):  # type: ignore[no-untyped-def]
    """Give a sequence its part of the pass. Returns how that went, and the budget left."""
    request = sequence - role * m[REQUESTS]
    block = m[o[BLOCK] + role]
    isl = m[o[ISL] + request]
    known = isl + m[o[GENERATED] + sequence]
    start = m[o[COMPUTED] + sequence] + cached
    left = max(0, isl - start)
    if not m[o[CHUNKED] + role] and left <= m[o[MAX_TOKENS] + role] and left > budget:
        return BLOCKED, budget
    tokens = min(known - start, budget)
    if tokens == 0 and known > start:
        return BLOCKED, budget
    end = start + tokens
    hits = cached // block
    missing = up(end, block) - m[o[HELD_BLOCKS] + sequence]
    while missing > 0 and not take(m, o, rank, sequence, hits, missing - hits):
        if m[o[NO_EVICTION] + role]:
            return BLOCKED, budget
        if not m[EXACT] and m[o[CACHING] + role]:
            m[FAILURE] = NEEDS_BLOCKS
            return BLOCKED, budget
        victim, budget = _preempt(m, o, rank, role, budget)
        if victim == sequence:
            return GAVE_WAY, budget
    m[o[COMPUTED] + sequence] = end
    if m[EXACT] and m[o[CACHING] + role]:
        table = m[o[TABLE_START] + sequence]
        for index in range(start // block, end // block):
            slot = m[o[TABLE] + table + index]
            if m[o[SLOT_KEY] + slot] == NOTHING:
                publish(m, o, rank, slot, key_of(m, o, role, request, index))
    budget -= tokens
    m[o[PART_PASS] + sequence] = m[PASS_ID]
    m[o[PART_TOKENS] + sequence] = tokens
    m[o[PART_START] + sequence] = min(start, isl)
    m[o[PART_END] + sequence] = min(end, isl)
    m[o[PASS_PARTS] + rank * 8 + 0] += 1
    m[o[PASS_PARTS] + rank * 8 + 4] += tokens
    if m[o[PART_END] + sequence] > m[o[PART_START] + sequence]:
        m[o[PROMPTS] + m[o[RUNNING_START] + rank] + m[o[PASS_PARTS] + rank * 8 + 1]] = sequence
        m[o[PASS_PARTS] + rank * 8 + 1] += 1
        m[o[PASS_PARTS] + rank * 8 + 2] += m[o[PART_START] + sequence]
        m[o[PASS_PARTS] + rank * 8 + 3] += m[o[PART_END] + sequence]
    return GRANTED, budget


@njit(cache=True, error_model="numpy")
def is_computed(m, o, role, sequence):  # type: ignore[no-untyped-def]
    """Whether the whole prompt is there."""
    return m[o[COMPUTED] + sequence] >= m[o[ISL] + sequence - role * m[REQUESTS]]


@njit(cache=True, error_model="numpy")
def next_in_line(m, o, rank, role):  # type: ignore[no-untyped-def]
    """Who may be admitted next, or NOTHING."""
    sequence = m[o[WAIT_HEAD] + rank]
    if m[o[PENDING_HEAD] + rank] != NOTHING:
        while sequence != NOTHING and not is_computed(m, o, role, sequence):
            sequence = m[o[FOLLOWING] + sequence]
    return sequence


@njit(cache=True, error_model="numpy")
def cached_and_fits(m, o, rank, role, sequence):  # type: ignore[no-untyped-def]
    """Tokens of the cached prefix that count, and whether there is room for the sequence."""
    request = sequence - role * m[REQUESTS]
    block = m[o[BLOCK] + role]
    known = m[o[ISL] + request] + m[o[GENERATED] + sequence]
    hits = 0
    in_use = 0
    if m[EXACT] and m[o[CACHING] + role]:
        hits, in_use = find_prefix(m, o, rank, role, request, known)
    cached = hits * block
    if not m[o[NO_EVICTION] + role]:
        cached = min(cached, (known - 1) // block * block)
    in_use = min(in_use, cached // block)
    if m[o[NO_EVICTION] + role]:
        final = m[o[ISL] + request] + outputs_of(m, o, role, request)
        return cached, up(final, block) - in_use <= room_to_completion(m, o, rank, role)
    return cached, up(known, block) - in_use <= m[o[BLOCKS] + role] - m[o[USED] + rank]


@njit(cache=True, error_model="numpy")
def _admit(m, o, rank, role, sequence, budget):  # type: ignore[no-untyped-def]
    """Returns whether it runs now, whether another may follow, and the budget left."""
    cached = 0
    waited_computed = is_computed(m, o, role, sequence)
    if not waited_computed:
        cached, fits = cached_and_fits(m, o, rank, role, sequence)
        if not fits:
            return False, False, budget
    if waited_computed and m[o[NO_EVICTION] + role]:
        promise(m, o, rank, role, sequence, -1)
    outcome, budget = _schedule(m, o, rank, role, sequence, cached, budget)
    if outcome != GRANTED:
        if waited_computed and m[o[NO_EVICTION] + role]:
            promise(m, o, rank, role, sequence, 1)
        return False, False, budget
    line_remove(m, o, WAIT_HEAD, WAIT_TAIL, rank, sequence)
    m[o[RUNNING] + m[o[RUNNING_START] + rank] + m[o[RUNNING_COUNT] + rank]] = sequence
    m[o[RUNNING_COUNT] + rank] += 1
    if m[o[NO_EVICTION] + role]:
        promise(m, o, rank, role, sequence, 1)
    request = sequence - role * m[REQUESTS]
    if role == 0:
        if m[o[OUT_ADMITTED] + request] < 0:
            m[o[OUT_ADMITTED] + request] = m[NOW]
        m[o[OUT_REUSED] + request] = max(m[o[OUT_REUSED] + request], cached)
    elif m[o[OUT_DECODE_ADMITTED] + request] < 0:
        m[o[OUT_DECODE_ADMITTED] + request] = m[NOW]
    m[o[PASS_PARTS] + rank * 8 + 5] += 1
    return True, budget > 0 or m[o[PART_TOKENS] + sequence] > 0, budget


@njit(cache=True, error_model="numpy")
def _decode_steady(m, o, rank, role, budget):  # type: ignore[no-untyped-def]
    """The steady ones take one token each, where that needs no decision; else none is steady. Returns how many did."""
    count = m[o[STEADY] + rank]
    grown = growth(m, o, rank, role, 1)
    if count > budget or grown > m[o[BLOCKS] + role] - m[o[USED] + rank]:
        settle(m, o, rank)
        return 0
    m[o[USED] + rank] += grown
    evict = max(0, grown - m[o[FREE] + rank])
    m[o[FREE] + rank] -= grown - evict
    if m[o[NO_EVICTION] + role]:
        m[o[GROWTH] + rank] -= grown
    m[o[PEAK] + role * 4 + 2] = max(m[o[PEAK] + role * 4 + 2], m[o[USED] + rank])
    m[o[PEAK] + role * 4 + 3] += evict
    m[o[PASS_PARTS] + rank * 8 + 0] = count
    m[o[PASS_PARTS] + rank * 8 + 4] = count
    return count


@njit(cache=True, error_model="numpy")
def run_pass(m, o, rank):  # type: ignore[no-untyped-def]
    """Choose what the next pass computes, and move everything to its end.

    Fills `State.pass_parts` of the rank: parts, prompts, sum of their starts, of their ends, tokens, other changes,
    decoding sequences, sum of their lengths. Returns whether anything changed.
    """
    role = m[o[RANK_ROLE] + rank]
    n = m[REQUESTS]
    for column in range(8):
        m[o[PASS_PARTS] + rank * 8 + column] = 0
    budget = m[o[MAX_TOKENS] + role]
    start = m[o[RUNNING_START] + rank]
    no_eviction = m[o[NO_EVICTION] + role]
    preempted = False
    at = 0
    if m[o[STEADY] + rank]:
        at = _decode_steady(m, o, rank, role, budget)
        budget -= at
    while at < m[o[RUNNING_COUNT] + rank] and budget > 0:
        sequence = m[o[RUNNING] + start + at]
        before = m[o[PASS_PARTS] + rank * 8 + 5]
        if no_eviction:
            promise(m, o, rank, role, sequence, -1)
        outcome, budget = _schedule(m, o, rank, role, sequence, 0, budget)
        if no_eviction:
            promise(m, o, rank, role, sequence, 1)
        preempted = preempted or m[o[PASS_PARTS] + rank * 8 + 5] > before
        if outcome == BLOCKED:
            break
        if outcome == GRANTED:
            at += 1
    while not preempted and m[o[RUNNING_COUNT] + rank] < m[o[MAX_SEQS] + role]:
        sequence = next_in_line(m, o, rank, role)
        if sequence == NOTHING:
            break
        _, more, budget = _admit(m, o, rank, role, sequence, budget)
        if not more:
            break
    if m[OUT_OF_ORDER] and m[o[RUNNING_COUNT] + rank] == 0:
        sequence = m[o[WAIT_HEAD] + rank]
        while sequence != NOTHING:
            after = m[o[FOLLOWING] + sequence]
            admitted, _, budget = _admit(m, o, rank, role, sequence, budget)
            if admitted:
                break
            sequence = after
    _yield_tokens(m, o, rank, role, n)
    return m[o[PASS_PARTS] + rank * 8 + 0] > 0 or m[o[PASS_PARTS] + rank * 8 + 5] > 0 or m[o[EMITTED_COUNT] + rank] > 0


@njit(cache=True, error_model="numpy")
def _yield_tokens(m, o, rank, role, n):  # type: ignore[no-untyped-def]
    """All whose known tokens are computed yield the next one: the steady ones together, then each of the others."""
    parts = o[PASS_PARTS] + rank * 8
    count = m[o[RUNNING_COUNT] + rank]
    m[o[PEAK] + role * 4 + 0] = max(m[o[PEAK] + role * 4 + 0], count)
    m[o[PEAK] + role * 4 + 1] = max(m[o[PEAK] + role * 4 + 1], m[parts + 4])
    batch = m[o[STEADY] + rank]
    context = m[o[CONTEXT] + rank]
    yielded = batch
    if batch:
        advance(m, o, rank, role, 1)
    m[o[YIELDED_WARM] + rank] = m[o[WARM] + rank]
    start = o[RUNNING] + m[o[RUNNING_START] + rank]
    target = o[EMITTED] + m[o[RUNNING_START] + rank]
    kind, pass_id = m[o[KIND] + role], m[PASS_ID]
    together = not m[EXACT] and kind != PREFILL
    generated, isl, osl, computed = o[GENERATED], o[ISL], o[OSL], o[COMPUTED]
    emitted = m[o[EMITTED_COUNT] + rank]
    left = m[o[STEADY] + rank]
    for at in range(left, m[o[RUNNING_COUNT] + rank]):
        sequence = m[start + at]
        request = sequence - role * n
        done = m[generated + sequence]
        known = m[isl + request] + done
        finished = False
        ready = m[computed + sequence] >= known
        if ready:
            yielded += 1
            prompt_ends = (
                done == 0
                and m[o[PART_PASS] + sequence] == pass_id
                and m[o[PART_END] + sequence] > m[o[PART_START] + sequence]
            )
            if kind == DECODE or (kind == AGG and not prompt_ends):
                batch += 1
                context += known
            m[generated + sequence] = done + 1
            m[target + emitted] = sequence
            emitted += 1
            if kind == PREFILL or done + 1 == m[osl + request]:
                finished = True
                if m[o[NO_EVICTION] + role]:
                    promise(m, o, rank, role, sequence, -1)
                if kind == PREFILL:
                    m[o[GENERATION] + rank] += 1
                else:
                    release(m, o, rank, sequence, m[o[CACHING] + role])
        if not finished:
            m[start + left] = sequence
            if ready and together and left == m[o[STEADY] + rank]:
                join(m, o, rank, role, sequence)
            left += 1
    m[parts + 6] = batch
    m[parts + 7] = context
    m[o[DECODED] + rank] = yielded == count
    m[o[RUNNING_COUNT] + rank] = left
    m[o[EMITTED_COUNT] + rank] = emitted
