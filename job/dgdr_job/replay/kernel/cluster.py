"""The replay, as `reference.cluster`: events in a total order, each instant settled before the clock moves."""

from dgdr_job.replay.kernel.borrowed import borrowed_times, integers
from dgdr_job.replay.kernel.blocks import NOTHING, find, key_of, publish, release, take
from dgdr_job.replay.kernel.passes import end_span, end_tokens, idle, interrupt, is_prefill, start_pass
from dgdr_job.replay.kernel.queues import (
    next_arrival_ns,
    pop_action,
    pop_transfer,
    push_action,
    push_transfer,
    request_ended,
    take_arrival,
)
from dgdr_job.replay.kernel.scheduler import (
    line_before,
    line_push,
    line_remove,
    outputs_of,
    promise,
    room_to_completion,
    up,
)
from dgdr_job.replay.kernel.state import (
    ACTION_COUNT,
    AGG,
    ATTEMPT,
    BLOCK,
    BUSY,
    CACHING,
    COMPUTED,
    CONTENTION,
    DEFERRED_HEAD,
    DEFERRED_NEXT,
    DEFERRED_STEP,
    DEFERRED_TAIL,
    DONE,
    EMITTED,
    EMITTED_COUNT,
    END_NS,
    EXACT,
    FAILURE,
    FIRST_RANK,
    FIRST_WORKER,
    FOLLOWING,
    FRESH,
    GENERATED,
    GENERATION,
    HEAP,
    HELD,
    HITS,
    ISL,
    JOINED,
    KIND,
    LATENCY_NS,
    LEFT,
    LINK_FREE,
    MAX_SEQS,
    NEVER,
    NOW,
    NO_EVICTION,
    ONLY_MISSING,
    ORDER,
    OUT_ARRIVAL,
    OUT_DECODE_WORKER,
    OUT_OF_ORDER,
    OUT_STATUS,
    OUT_WORKER,
    PENDING_HEAD,
    PENDING_TAIL,
    POOL_TURN,
    RANKS,
    RANK_ROLE,
    RANK_TURN,
    RANK_WORKER,
    REJECTED,
    REQUESTS,
    RESERVED,
    RUNNING_COUNT,
    RUNNING_START,
    SLOT_KEY,
    SOURCE_RANK,
    SPAN,
    STALLED,
    STARTED,
    STEP_ACTIVATE,
    STEP_PREFILL,
    STEP_RELEASE,
    STEP_RESERVE,
    STEP_TRANSFER,
    TABLE,
    TABLE_START,
    TARGET_RANK,
    TRANSFERS,
    TRANSFER_TIME,
    WAIT_HEAD,
    WAIT_TAIL,
    WORKERS,
    WORKER_ROLE,
)
from dgdr_job.replay.kernel import compiling  # noqa: F401 - names the cache before numba compiles
import numpy as np
from numba import njit


@njit(cache=True, error_model="numpy")
def _reach(m, o, worker):  # type: ignore[no-untyped-def]
    """Something comes to a worker: its span ends with the pass that runs now, or just ended at this instant."""
    if m[o[BUSY] + worker] and m[o[SPAN] + worker]:
        interrupt(m, o, worker)
        if m[o[END_NS] + worker] == m[NOW] and not m[STARTED]:
            _end_pass(m, o, worker)


@njit(cache=True, error_model="numpy")
def _choose_rank(m, o, role):  # type: ignore[no-untyped-def]
    """Round robin: over workers and each one's ranks when aggregated, over all ranks in a pool of a pair."""
    turn = m[o[POOL_TURN] + role]
    m[o[POOL_TURN] + role] += 1
    ranks = m[o[RANKS] + role]
    workers = m[o[WORKERS] + role]
    if m[o[KIND] + role] != AGG:
        return m[o[FIRST_RANK] + role] + turn % (workers * ranks)
    worker = m[o[FIRST_WORKER] + role] + turn % workers
    rank = m[o[RANK_TURN] + worker] % ranks
    m[o[RANK_TURN] + worker] += 1
    return m[o[FIRST_RANK] + role] + (turn % workers) * ranks + rank


@njit(cache=True, error_model="numpy")
def _join(m, o, request, role):  # type: ignore[no-untyped-def]
    """A request comes to a rank of a role."""
    rank = _choose_rank(m, o, role)
    worker = m[o[RANK_WORKER] + rank]
    sequence = role * m[REQUESTS] + request
    m[o[ORDER] + sequence] = m[o[JOINED] + rank]
    m[o[JOINED] + rank] += 1
    m[o[GENERATED] + sequence] = 0
    m[o[COMPUTED] + sequence] = 0
    if role == 0:
        m[o[OUT_WORKER] + request] = worker - m[o[FIRST_WORKER] + role]
        # Who waits behind others, or for a place in a full batch, changes nothing until that batch changes.
        if m[o[WAIT_HEAD] + rank] == NOTHING and m[o[RUNNING_COUNT] + rank] < m[o[MAX_SEQS] + role]:
            _reach(m, o, worker)
        line_push(m, o, WAIT_HEAD, WAIT_TAIL, rank, sequence)
    else:
        m[o[OUT_DECODE_WORKER] + request] = worker - m[o[FIRST_WORKER] + role]
        if m[o[PENDING_HEAD] + rank] == NOTHING:
            _reach(m, o, worker)
        line_push(m, o, PENDING_HEAD, PENDING_TAIL, rank, sequence)
    return rank


@njit(cache=True, error_model="numpy")
def _reserve_next(m, o, rank):  # type: ignore[no-untyped-def]
    """Room for the first transfer that waits, if there is any."""
    sequence = m[o[PENDING_HEAD] + rank]
    if sequence == NOTHING:
        return False
    role = m[o[RANK_ROLE] + rank]
    n = m[REQUESTS]
    request = sequence - role * n
    if m[o[RUNNING_COUNT] + rank] >= m[o[MAX_SEQS] + role]:
        m[o[ATTEMPT] + sequence] = m[o[GENERATION] + rank]
        return False
    if m[o[ATTEMPT] + sequence] == m[o[GENERATION] + rank]:
        return False
    m[o[ATTEMPT] + sequence] = m[o[GENERATION] + rank]
    block = m[o[BLOCK] + role]
    blocks = up(m[o[ISL] + request], block)
    hits = 0
    if m[o[NO_EVICTION] + role]:
        if up(m[o[ISL] + request] + outputs_of(m, o, role, request), block) > room_to_completion(m, o, rank, role):
            return False
    elif m[EXACT] and m[o[CACHING] + role]:
        for index in range(m[o[ISL] + request] // block):
            slot = find(m, o, rank, key_of(m, o, role, request, index))
            if slot == NOTHING:
                break
            m[o[HITS] + hits] = slot
            hits += 1
    if not take(m, o, rank, sequence, hits, blocks - hits):
        return False
    m[o[FRESH] + request] = (blocks - hits) * block
    line_remove(m, o, PENDING_HEAD, PENDING_TAIL, rank, sequence)
    if m[o[NO_EVICTION] + role]:
        promise(m, o, rank, role, sequence, 1)
    m[o[RESERVED] + request] = 1
    _advance(m, o, request)
    return True


@njit(cache=True, error_model="numpy")
def _advance(m, o, request):  # type: ignore[no-untyped-def]
    if m[o[HELD] + request] and m[o[TARGET_RANK] + request] < 0:
        push_action(m, o, STEP_RESERVE, request)
    elif m[o[RESERVED] + request] and m[o[SOURCE_RANK] + request] < 0:
        push_action(m, o, STEP_PREFILL, request)
    elif m[o[HELD] + request] and m[o[RESERVED] + request]:
        push_action(m, o, STEP_TRANSFER, request)


@njit(cache=True, error_model="numpy")
def _defer(m, o, worker, step, request):  # type: ignore[no-untyped-def]
    """The step waits for the end of the pass."""
    m[o[DEFERRED_STEP] + request] = step
    m[o[DEFERRED_NEXT] + request] = NOTHING
    if m[o[DEFERRED_HEAD] + worker] == NOTHING:
        m[o[DEFERRED_HEAD] + worker] = request
    else:
        m[o[DEFERRED_NEXT] + m[o[DEFERRED_TAIL] + worker]] = request
    m[o[DEFERRED_TAIL] + worker] = request


@njit(cache=True, error_model="numpy")
def _activate(m, o, request, rank):  # type: ignore[no-untyped-def]
    n = m[REQUESTS]
    role = m[o[RANK_ROLE] + rank]
    sequence = role * n + request
    m[o[COMPUTED] + sequence] = m[o[ISL] + request]
    if m[EXACT] and m[o[CACHING] + role]:
        start = m[o[TABLE_START] + sequence]
        for index in range(m[o[ISL] + request] // m[o[BLOCK] + role]):
            slot = m[o[TABLE] + start + index]
            if m[o[SLOT_KEY] + slot] == NOTHING:
                publish(m, o, rank, slot, key_of(m, o, role, request, index))
    other = m[o[WAIT_HEAD] + rank]
    while other != NOTHING and m[o[ORDER] + other] <= m[o[ORDER] + sequence]:
        other = m[o[FOLLOWING] + other]
    if other == NOTHING:
        line_push(m, o, WAIT_HEAD, WAIT_TAIL, rank, sequence)
    else:
        line_before(m, o, WAIT_HEAD, rank, sequence, other)


@njit(cache=True, error_model="numpy")
def _transfer(m, o, request, link_ms_per_token):  # type: ignore[no-untyped-def]
    now = m[NOW]
    tokens = m[o[FRESH] + request] if m[ONLY_MISSING] else m[o[ISL] + request]
    link = int(np.rint(tokens * link_ms_per_token * 1e6))
    start = now
    if m[CONTENTION]:
        worker = m[o[RANK_WORKER] + m[o[SOURCE_RANK] + request]]
        start = max(now, m[o[LINK_FREE] + worker])
        m[o[LINK_FREE] + worker] = start + link
    end = start + link + m[LATENCY_NS]
    if end == now:
        push_action(m, o, STEP_ACTIVATE, request)
    else:
        push_transfer(m, o, end, request)


@njit(cache=True, error_model="numpy")
def _act(m, o, step, request, link_ms_per_token):  # type: ignore[no-untyped-def]
    if step == STEP_PREFILL:
        m[o[SOURCE_RANK] + request] = _join(m, o, request, 0)
    elif step == STEP_RESERVE:
        rank = _join(m, o, request, 1)
        m[o[TARGET_RANK] + request] = rank
        if not m[o[BUSY] + m[o[RANK_WORKER] + rank]]:
            _reserve_next(m, o, rank)
    elif step == STEP_TRANSFER:
        _transfer(m, o, request, link_ms_per_token)
    elif step == STEP_ACTIVATE:
        rank = m[o[TARGET_RANK] + request]
        worker = m[o[RANK_WORKER] + rank]
        _reach(m, o, worker)
        if m[o[BUSY] + worker]:
            _defer(m, o, worker, step, request)
            return
        _activate(m, o, request, rank)
        push_action(m, o, STEP_RELEASE, request)
        _reserve_next(m, o, rank)
    elif step == STEP_RELEASE:
        rank = m[o[SOURCE_RANK] + request]
        worker = m[o[RANK_WORKER] + rank]
        _reach(m, o, worker)
        if m[o[BUSY] + worker]:
            _defer(m, o, worker, step, request)
            return
        release(m, o, rank, request, m[o[CACHING] + 0])


@njit(cache=True, error_model="numpy")
def _end_pass(m, o, worker):  # type: ignore[no-untyped-def]
    role = m[o[WORKER_ROLE] + worker]
    idle(m, o, worker)
    request = m[o[DEFERRED_HEAD] + worker]
    m[o[DEFERRED_HEAD] + worker] = NOTHING
    while request != NOTHING:
        push_action(m, o, m[o[DEFERRED_STEP] + request], request)
        request = m[o[DEFERRED_NEXT] + request]
    first = m[o[FIRST_RANK] + role] + (worker - m[o[FIRST_WORKER] + role]) * m[o[RANKS] + role]
    if m[o[SPAN] + worker]:
        end_span(m, o, worker, first)
        _reserve_next(m, o, first)
        return
    for rank in range(first, first + m[o[RANKS] + role]):
        if is_prefill(m, o, worker):
            start = m[o[RUNNING_START] + rank]
            for at in range(m[o[EMITTED_COUNT] + rank]):
                request = m[o[EMITTED] + start + at]
                m[o[HELD] + request] = 1
                _advance(m, o, request)
            m[o[EMITTED_COUNT] + rank] = 0
        else:
            end_tokens(m, o, rank)
        _reserve_next(m, o, rank)


@njit(cache=True, error_model="numpy")
def _arrive(m, o, request, roles):  # type: ignore[no-untyped-def]
    m[o[OUT_ARRIVAL] + request] = m[NOW]
    if m[o[REJECTED] + request]:
        m[o[OUT_STATUS] + request] = m[o[REJECTED] + request]
        m[LEFT] -= 1
        request_ended(m, o, request)
    elif roles == 1:
        _join(m, o, request, 0)
    else:
        push_action(m, o, STEP_PREFILL, request)


@njit(cache=True, error_model="numpy")
def _start(m, o, worker, times):  # type: ignore[no-untyped-def]
    if m[o[BUSY] + worker]:
        return False
    role = m[o[WORKER_ROLE] + worker]
    first = m[o[FIRST_RANK] + role] + (worker - m[o[FIRST_WORKER] + role]) * m[o[RANKS] + role]
    work = False
    for rank in range(first, first + m[o[RANKS] + role]):
        work = work or m[o[RUNNING_COUNT] + rank] > 0 or m[o[WAIT_HEAD] + rank] != NOTHING
    if not work:
        return False
    if start_pass(m, o, worker, times):
        return True
    changed = False
    for rank in range(first, first + m[o[RANKS] + role]):
        if m[o[RUNNING_COUNT] + rank] > 0 or m[o[WAIT_HEAD] + rank] != NOTHING:
            changed = _reserve_next(m, o, rank) or changed
    return changed


@njit(cache=True, error_model="numpy")
def _settle(m, o, roles, times, decode_times):  # type: ignore[no-untyped-def]
    changed = True
    m[STARTED] = 0
    while changed and not m[FAILURE]:
        changed = False
        now = m[NOW]
        while m[o[END_NS] + m[o[HEAP] + 0]] <= now:
            _end_pass(m, o, m[o[HEAP] + 0])
            changed = True
        while m[TRANSFERS] and m[o[TRANSFER_TIME] + 0] <= now:
            push_action(m, o, STEP_ACTIVATE, pop_transfer(m, o))
            changed = True
        while m[ACTION_COUNT]:
            step, request = pop_action(m, o)
            _act(m, o, step, request, times.link_ms_per_token)
            changed = True
        request = take_arrival(m, o)
        while request >= 0:
            _arrive(m, o, request, roles)
            changed = True
            request = take_arrival(m, o)
        m[STARTED] = 1
        for worker in range(m[o[WORKERS] + 0]):
            changed = _start(m, o, worker, times) or changed
        if roles > 1:
            for worker in range(m[o[FIRST_WORKER] + 1], m[o[FIRST_WORKER] + 1] + m[o[WORKERS] + 1]):
                changed = _start(m, o, worker, decode_times) or changed


@njit(cache=True, error_model="numpy")
def _unblock(m, o, roles, times, decode_times):  # type: ignore[no-untyped-def]
    """Nothing will ever happen: let the first rank that can go on out of order do so."""
    m[OUT_OF_ORDER] = 1
    started = False
    for role in range(roles - 1, -1, -1):
        for at in range(m[o[WORKERS] + role]):
            if not started:
                worker = m[o[FIRST_WORKER] + role] + at
                started = _start(m, o, worker, times if role == 0 else decode_times)
    m[OUT_OF_ORDER] = 0
    return started


@njit(cache=True, error_model="numpy")
def _run(m, o, roles, times, decode_times):  # type: ignore[no-untyped-def]
    while m[LEFT] and not m[FAILURE]:
        time = min(m[o[END_NS] + m[o[HEAP] + 0]], next_arrival_ns(m, o))
        if m[TRANSFERS]:
            time = min(time, m[o[TRANSFER_TIME] + 0])
        if time >= NEVER:
            if not _unblock(m, o, roles, times, decode_times):
                return m[FAILURE] if m[FAILURE] else STALLED
            continue
        m[NOW] = time
        _settle(m, o, roles, times, decode_times)
    return m[FAILURE] if m[FAILURE] else DONE


@njit(cache=True, error_model="numpy")
def run(m, o, roles, times, decode_times):  # type: ignore[no-untyped-def]
    """Replay all requests. Returns DONE, or what ended the run."""
    return _run(integers(m), integers(o), roles, borrowed_times(times), borrowed_times(decode_times))
