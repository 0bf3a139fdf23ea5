"""The block pool of a rank in flat arrays, as `reference.blocks`."""

from dgdr_job.replay.kernel.state import (
    BLOCK,
    BLOCKS,
    COMPUTED,
    EXACT,
    FIRST_OWN,
    FREE,
    FREE_SLOTS,
    GENERATION,
    HELD_BLOCKS,
    HITS,
    IDLE_HEAD,
    IDLE_TAIL,
    ISL,
    MAP_BASE,
    MAP_BITS,
    MAP_KEY,
    MAP_SLOT,
    PEAK,
    PER_UNIT,
    RANK_ROLE,
    SLOT_AFTER,
    SLOT_BASE,
    SLOT_BEFORE,
    SLOT_KEY,
    SLOT_TWIN,
    SLOT_USERS,
    STREAM,
    STRIDE,
    TABLE,
    TABLE_START,
    UNITS,
    UNIT_START,
    USED,
)
from dgdr_job.replay.kernel import compiling  # noqa: F401 - names the cache before numba compiles
from numba import int64, njit, uint64

NOTHING = -1


@njit(cache=True, error_model="numpy")
def key_of(m, o, role, request, index):  # type: ignore[no-untyped-def]
    """`BlockKeys.of` for one block."""
    per_unit = m[o[PER_UNIT] + role]
    first = m[o[UNIT_START] + request]
    shared = min((m[o[UNIT_START] + request + 1] - first) * per_unit, m[o[ISL] + request] // m[o[BLOCK] + role])
    if index < shared:
        return m[o[UNITS] + first + index // per_unit] * per_unit + index % per_unit
    return m[o[FIRST_OWN] + role] + m[o[STREAM] + request] * m[o[STRIDE] + role] + index


@njit(cache=True, error_model="numpy")
def _home(m, o, rank, key):  # type: ignore[no-untyped-def]
    return int64((uint64(key) * uint64(0x9E3779B97F4A7C15)) >> uint64(64 - m[o[MAP_BITS] + rank]))


@njit(cache=True, error_model="numpy")
def find(m, o, rank, key):  # type: ignore[no-untyped-def]
    """The block that is found by a key, or NOTHING."""
    mask = (1 << m[o[MAP_BITS] + rank]) - 1
    base = m[o[MAP_BASE] + rank]
    at = _home(m, o, rank, key)
    while m[o[MAP_SLOT] + base + at] != NOTHING:
        if m[o[MAP_KEY] + base + at] == key:
            return m[o[MAP_SLOT] + base + at]
        at = (at + 1) & mask
    return NOTHING


@njit(cache=True, error_model="numpy")
def _forget(m, o, rank, slot):  # type: ignore[no-untyped-def]
    """Take a block out of the map; its twin, if there is one, is found from now on."""
    key = m[o[SLOT_KEY] + slot]
    mask = (1 << m[o[MAP_BITS] + rank]) - 1
    base = m[o[MAP_BASE] + rank]
    at = _home(m, o, rank, key)
    while m[o[MAP_KEY] + base + at] != key or m[o[MAP_SLOT] + base + at] == NOTHING:
        at = (at + 1) & mask
    first = m[o[MAP_SLOT] + base + at]
    if first != slot:
        while m[o[SLOT_TWIN] + first] != slot:
            first = m[o[SLOT_TWIN] + first]
        m[o[SLOT_TWIN] + first] = m[o[SLOT_TWIN] + slot]
        return
    if m[o[SLOT_TWIN] + slot] != NOTHING:
        m[o[MAP_SLOT] + base + at] = m[o[SLOT_TWIN] + slot]
        return
    hole = at
    at = (at + 1) & mask
    while m[o[MAP_SLOT] + base + at] != NOTHING:
        home = _home(m, o, rank, m[o[MAP_KEY] + base + at])
        if ((at - home) & mask) >= ((at - hole) & mask):
            m[o[MAP_KEY] + base + hole] = m[o[MAP_KEY] + base + at]
            m[o[MAP_SLOT] + base + hole] = m[o[MAP_SLOT] + base + at]
            hole = at
        at = (at + 1) & mask
    m[o[MAP_SLOT] + base + hole] = NOTHING


@njit(cache=True, error_model="numpy")
def publish(m, o, rank, slot, key):  # type: ignore[no-untyped-def]
    """Let a private block be found by its key."""
    m[o[SLOT_KEY] + slot] = key
    m[o[SLOT_TWIN] + slot] = NOTHING
    mask = (1 << m[o[MAP_BITS] + rank]) - 1
    base = m[o[MAP_BASE] + rank]
    at = _home(m, o, rank, key)
    while m[o[MAP_SLOT] + base + at] != NOTHING:
        if m[o[MAP_KEY] + base + at] == key:
            last = m[o[MAP_SLOT] + base + at]
            while m[o[SLOT_TWIN] + last] != NOTHING:
                last = m[o[SLOT_TWIN] + last]
            m[o[SLOT_TWIN] + last] = slot
            return
        at = (at + 1) & mask
    m[o[MAP_KEY] + base + at] = key
    m[o[MAP_SLOT] + base + at] = slot


@njit(cache=True, error_model="numpy")
def _unlink(m, o, rank, slot):  # type: ignore[no-untyped-def]
    before, after = m[o[SLOT_BEFORE] + slot], m[o[SLOT_AFTER] + slot]
    if before == NOTHING:
        m[o[IDLE_HEAD] + rank] = after
    else:
        m[o[SLOT_AFTER] + before] = after
    if after == NOTHING:
        m[o[IDLE_TAIL] + rank] = before
    else:
        m[o[SLOT_BEFORE] + after] = before


@njit(cache=True, error_model="numpy")
def take(m, o, rank, sequence, hits, fresh):  # type: ignore[no-untyped-def]
    """Give a sequence the first ``hits`` blocks of `State.hits` and fresh ones; False when there is no room."""
    role = m[o[RANK_ROLE] + rank]
    blocks = m[o[BLOCKS] + role]
    evict = max(0, fresh - m[o[FREE] + rank])
    at = m[o[TABLE_START] + sequence] + m[o[HELD_BLOCKS] + sequence]
    if m[EXACT]:
        idle = blocks - m[o[USED] + rank] - m[o[FREE] + rank]
        idle_hits = 0
        for one in range(hits):
            idle_hits += m[o[SLOT_USERS] + m[o[HITS] + one]] == 0
        if evict > idle - idle_hits:
            return False
        for one in range(hits):
            slot = m[o[HITS] + one]
            if m[o[SLOT_USERS] + slot] == 0:
                _unlink(m, o, rank, slot)
            m[o[SLOT_USERS] + slot] += 1
            m[o[TABLE] + at] = slot
            at += 1
        m[o[USED] + rank] += idle_hits
        base = m[o[SLOT_BASE] + rank]
        for _ in range(fresh):
            if m[o[FREE] + rank] > 0:
                m[o[FREE] + rank] -= 1
                slot = m[o[FREE_SLOTS] + base + m[o[FREE] + rank]]
            else:
                slot = m[o[IDLE_HEAD] + rank]
                _unlink(m, o, rank, slot)
                _forget(m, o, rank, slot)
            m[o[SLOT_USERS] + slot] = 1
            m[o[SLOT_KEY] + slot] = NOTHING
            m[o[TABLE] + at] = slot
            at += 1
    else:
        if evict > blocks - m[o[USED] + rank] - m[o[FREE] + rank]:
            return False
        m[o[FREE] + rank] -= fresh - evict
    m[o[USED] + rank] += fresh
    m[o[HELD_BLOCKS] + sequence] += hits + fresh
    m[o[PEAK] + role * 4 + 2] = max(m[o[PEAK] + role * 4 + 2], m[o[USED] + rank])
    m[o[PEAK] + role * 4 + 3] += evict
    return True


@njit(cache=True, error_model="numpy")
def release(m, o, rank, sequence, caching):  # type: ignore[no-untyped-def]
    """Give a sequence's blocks back, the last one first."""
    count = m[o[HELD_BLOCKS] + sequence]
    m[o[GENERATION] + rank] += 1
    m[o[HELD_BLOCKS] + sequence] = 0
    if not m[EXACT]:
        whole = m[o[COMPUTED] + sequence] // m[o[BLOCK] + m[o[RANK_ROLE] + rank]] if caching else 0
        m[o[USED] + rank] -= count
        m[o[FREE] + rank] += count - whole
        return
    base = m[o[SLOT_BASE] + rank]
    start = m[o[TABLE_START] + sequence]
    for index in range(count - 1, -1, -1):
        slot = m[o[TABLE] + start + index]
        m[o[SLOT_USERS] + slot] -= 1
        if m[o[SLOT_USERS] + slot]:
            continue
        m[o[USED] + rank] -= 1
        if m[o[SLOT_KEY] + slot] == NOTHING:
            m[o[FREE_SLOTS] + base + m[o[FREE] + rank]] = slot
            m[o[FREE] + rank] += 1
        else:
            tail = m[o[IDLE_TAIL] + rank]
            m[o[SLOT_BEFORE] + slot] = tail
            m[o[SLOT_AFTER] + slot] = NOTHING
            m[o[IDLE_TAIL] + rank] = slot
            if tail == NOTHING:
                m[o[IDLE_HEAD] + rank] = slot
            else:
                m[o[SLOT_AFTER] + tail] = slot


@njit(cache=True, error_model="numpy")
def find_prefix(m, o, rank, role, request, tokens):  # type: ignore[no-untyped-def]
    """Put the blocks of the longest cached prefix of so many tokens into `State.hits`.

    Returns their number, and how many of them are in use.
    """
    count = 0
    in_use = 0
    for index in range(tokens // m[o[BLOCK] + role]):
        slot = find(m, o, rank, key_of(m, o, role, request, index))
        if slot == NOTHING:
            break
        m[o[HITS] + count] = slot
        count += 1
        in_use += m[o[SLOT_USERS] + slot] > 0
    return count, in_use


@njit(cache=True, error_model="numpy")
def in_use_of_first(m, o, count):  # type: ignore[no-untyped-def]
    """How many of the first blocks in `State.hits` are in use."""
    total = 0
    for one in range(count):
        total += m[o[SLOT_USERS] + m[o[HITS] + one]] > 0
    return total
