"""The lines and heaps of a replay in flat arrays."""

from dgdr_job.replay.kernel.state import (
    ACTIONS,
    ACTION_COUNT,
    ACTION_HEAD,
    ARRIVAL,
    CONCURRENCY,
    END_NS,
    FIRST_TURNS,
    FIRST_TURN_COUNT,
    HEAP,
    HEAP_PLACE,
    IN_FLIGHT,
    NEVER,
    NEXT_FIRST,
    NEXT_TURN,
    NOW,
    REQUESTS,
    THINK_NS,
    TRANSFERS,
    TRANSFERS_STARTED,
    TRANSFER_SEQ,
    TRANSFER_TIME,
    TURNS,
    TURN_REQUEST,
    TURN_TIME,
    WORKER_COUNT,
)
from dgdr_job.replay.kernel import compiling  # noqa: F401 - names the cache before numba compiles
from numba import njit


@njit(cache=True, error_model="numpy")
def push_action(m, o, step, request):  # type: ignore[no-untyped-def]
    """A step of a handoff that can be taken."""
    size = m[REQUESTS] + 1
    m[o[ACTIONS] + (m[ACTION_HEAD] + m[ACTION_COUNT]) % size] = request * 8 + step
    m[ACTION_COUNT] += 1


@njit(cache=True, error_model="numpy")
def pop_action(m, o):  # type: ignore[no-untyped-def]
    """The oldest step."""
    code = m[o[ACTIONS] + m[ACTION_HEAD]]
    m[ACTION_HEAD] = (m[ACTION_HEAD] + 1) % (m[REQUESTS] + 1)
    m[ACTION_COUNT] -= 1
    return code % 8, code // 8


@njit(cache=True, error_model="numpy")
def _sooner(m, o, one, other):  # type: ignore[no-untyped-def]
    return m[o[END_NS] + one] < m[o[END_NS] + other] or (m[o[END_NS] + one] == m[o[END_NS] + other] and one < other)


@njit(cache=True, error_model="numpy")
def set_end(m, o, worker, time):  # type: ignore[no-untyped-def]
    """When a worker's pass ends; NEVER when it is idle. Keeps the heap of workers in order."""
    m[o[END_NS] + worker] = time
    heap = o[HEAP]
    at = m[o[HEAP_PLACE] + worker]
    while at > 0 and _sooner(m, o, worker, m[heap + (at - 1) // 2]):
        m[heap + at] = m[heap + (at - 1) // 2]
        m[o[HEAP_PLACE] + m[heap + at]] = at
        at = (at - 1) // 2
    while True:
        child = 2 * at + 1
        if child >= m[WORKER_COUNT]:
            break
        if child + 1 < m[WORKER_COUNT] and _sooner(m, o, m[heap + child + 1], m[heap + child]):
            child += 1
        if not _sooner(m, o, m[heap + child], worker):
            break
        m[heap + at] = m[heap + child]
        m[o[HEAP_PLACE] + m[heap + at]] = at
        at = child
    m[heap + at] = worker
    m[o[HEAP_PLACE] + worker] = at


@njit(cache=True, error_model="numpy")
def _before(m, times, seconds, one, other):  # type: ignore[no-untyped-def]
    return m[times + one] < m[times + other] or (
        m[times + one] == m[times + other] and m[seconds + one] < m[seconds + other]
    )


@njit(cache=True, error_model="numpy")
def _swap(m, times, seconds, one, other):  # type: ignore[no-untyped-def]
    m[times + one], m[times + other] = m[times + other], m[times + one]
    m[seconds + one], m[seconds + other] = m[seconds + other], m[seconds + one]


@njit(cache=True, error_model="numpy")
def heap_push(m, times, seconds, count, time, second):  # type: ignore[no-untyped-def]
    """A heap by two numbers; the caller counts."""
    m[times + count] = time
    m[seconds + count] = second
    at = count
    while at > 0 and _before(m, times, seconds, at, (at - 1) // 2):
        _swap(m, times, seconds, at, (at - 1) // 2)
        at = (at - 1) // 2


@njit(cache=True, error_model="numpy")
def heap_pop(m, times, seconds, count):  # type: ignore[no-untyped-def]
    """Move the first of ``count`` to the end; the caller counts, and reads it there."""
    last = count - 1
    _swap(m, times, seconds, 0, last)
    at = 0
    while True:
        child = 2 * at + 1
        if child >= last:
            break
        if child + 1 < last and _before(m, times, seconds, child + 1, child):
            child += 1
        if not _before(m, times, seconds, child, at):
            break
        _swap(m, times, seconds, at, child)
        at = child


@njit(cache=True, error_model="numpy")
def push_transfer(m, o, time, request):  # type: ignore[no-untyped-def]
    """A transfer that ends at a time; those of one time in the order of their start."""
    sequence = m[TRANSFERS_STARTED]
    m[TRANSFERS_STARTED] = sequence + 1
    heap_push(m, o[TRANSFER_TIME], o[TRANSFER_SEQ], m[TRANSFERS], time, sequence * m[REQUESTS] + request)
    m[TRANSFERS] += 1


@njit(cache=True, error_model="numpy")
def pop_transfer(m, o):  # type: ignore[no-untyped-def]
    """The request whose transfer ends first."""
    heap_pop(m, o[TRANSFER_TIME], o[TRANSFER_SEQ], m[TRANSFERS])
    m[TRANSFERS] -= 1
    return m[o[TRANSFER_SEQ] + m[TRANSFERS]] % m[REQUESTS]


@njit(cache=True, error_model="numpy")
def next_arrival_ns(m, o):  # type: ignore[no-untyped-def]
    """When the next request comes, as far as that is known; else NEVER."""
    now = m[NOW]
    time = NEVER
    if m[TURNS]:
        time = m[o[TURN_TIME] + 0]
    if m[NEXT_FIRST] < m[FIRST_TURN_COUNT]:
        if not m[CONCURRENCY]:
            time = min(time, m[o[ARRIVAL] + m[o[FIRST_TURNS] + m[NEXT_FIRST]]])
        elif m[IN_FLIGHT] < m[CONCURRENCY]:
            time = min(time, now)
    return max(now, time)


@njit(cache=True, error_model="numpy")
def take_arrival(m, o):  # type: ignore[no-untyped-def]
    """A request that comes now, or -1; later turns first."""
    now = m[NOW]
    if m[TURNS] and m[o[TURN_TIME] + 0] <= now:
        heap_pop(m, o[TURN_TIME], o[TURN_REQUEST], m[TURNS])
        m[TURNS] -= 1
        return m[o[TURN_REQUEST] + m[TURNS]]
    if m[NEXT_FIRST] == m[FIRST_TURN_COUNT]:
        return -1
    request = m[o[FIRST_TURNS] + m[NEXT_FIRST]]
    if m[CONCURRENCY]:
        if m[IN_FLIGHT] >= m[CONCURRENCY]:
            return -1
    elif m[o[ARRIVAL] + request] > now:
        return -1
    m[NEXT_FIRST] += 1
    m[IN_FLIGHT] += 1
    return request


@njit(cache=True, error_model="numpy")
def request_ended(m, o, request):  # type: ignore[no-untyped-def]
    """Its session goes on, or its slot is free."""
    follower = m[o[NEXT_TURN] + request]
    if follower >= 0:
        heap_push(m, o[TURN_TIME], o[TURN_REQUEST], m[TURNS], m[NOW] + m[THINK_NS], follower)
        m[TURNS] += 1
    else:
        m[IN_FLIGHT] -= 1
