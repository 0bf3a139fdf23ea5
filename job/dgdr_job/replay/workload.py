"""A workload as requests: drawn with the seed, or recorded."""

import math
from pathlib import Path

import numpy as np
from dgdr_api.replay_spec import ReplaySpec, ReplayStaticWorkload, ReplayTraceWorkload

from dgdr_job.replay.errors import InvalidReplay
from dgdr_job.replay.requests import Ints, Requests
from dgdr_job.replay.trace import Progress, read_trace

MAX_REQUESTS = 100_000_000


def requests_of(spec: ReplaySpec, folder: Path, progress: Progress | None = None) -> Requests:
    """The requests of a document's workload.

    Args:
        spec: the document.
        folder: where a relative path of a trace begins.
        progress: told the lines of a trace read so far.

    Raises:
        InvalidReplay: the workload cannot be replayed; the message names the field.
        InvalidTrace: the trace is wrong.
    """
    blocks = [role.engine.block_size for role in spec.roles if role.kind != "encode"]
    if spec.workload.static is not None:
        return _drawn(spec.workload.static, blocks, spec.seed)
    assert spec.workload.trace is not None
    return _recorded(spec.workload.trace, blocks, folder, progress)


def _recorded(trace: ReplayTraceWorkload, blocks: list[int], folder: Path, progress: Progress | None) -> Requests:
    if trace.format != "mooncake":
        raise InvalidReplay(f"workload.trace.format = {trace.format}; known is mooncake")
    for block in blocks:
        if trace.block_size % block:
            raise InvalidReplay(
                f"roles.engine.blockSize = {block} does not divide workload.trace.blockSize = {trace.block_size}; "
                f"choose a divisor, e.g. {math.gcd(block, trace.block_size)}"
            )
    read = read_trace(folder / trace.path, trace.block_size, trace.arrival_speedup_ratio, progress)
    count = len(read.isl)
    return Requests(
        isl=read.isl,
        osl=read.osl,
        arrival_ns=read.arrival_ns,
        concurrency=trace.concurrency or 0,
        next_turn=np.full(count, -1, dtype=np.int64),
        think_ns=0,
        images=np.zeros(count, dtype=np.int64),
        stream=np.arange(count, dtype=np.int64),
        unit_tokens=trace.block_size,
        unit_start=read.unit_start,
        units=read.units,
    )


def _drawn(static: ReplayStaticWorkload, blocks: list[int], seed: int) -> Requests:
    count = _count(static)
    random = np.random.Generator(np.random.PCG64(seed))
    isl = _lengths(random, static.isl, static.length_spread, count)
    isl += static.images.visual_tokens if static.images else 0
    osl = _lengths(random, static.osl, static.length_spread, count)
    groups = random.integers(0, max(1, static.prefix_groups), count)
    turns = static.turns_per_session
    sessions = -(-count // turns)
    turn = np.arange(count) % turns
    next_turn = np.where((turn < turns - 1) & (np.arange(count) < count - 1), np.arange(count) + 1, -1)
    if static.turn_history == "accumulate":
        isl = _accumulated(isl, osl, turn)
    arrival = np.full(count, -1, dtype=np.int64)
    arrival[::turns] = _arrivals(random, static, sessions)
    unit = math.lcm(*blocks)
    unit_start, units = _shared_units(static, isl, groups, blocks[0], unit)
    own = np.arange(count) // turns if static.turn_history == "accumulate" else np.arange(count)
    return Requests(
        isl=isl,
        osl=osl,
        arrival_ns=arrival,
        concurrency=static.concurrency or 0,
        next_turn=next_turn.astype(np.int64),
        think_ns=round(static.inter_turn_delay_ms * 1e6),
        images=np.full(count, static.images.count if static.images else 0, dtype=np.int64),
        stream=own.astype(np.int64),
        unit_tokens=unit,
        unit_start=unit_start,
        units=units,
        warmup=static.warmup_requests,
    )


def _count(static: ReplayStaticWorkload) -> int:
    if static.saturated or (static.concurrency is None) == (static.request_rate is None):
        raise InvalidReplay("workload.static: give exactly one of concurrency and requestRate; a replay needs a load")
    if static.requests is None:
        raise InvalidReplay("workload.static.requests is missing; a replay needs a number of requests, e.g. 1000")
    if static.requests > MAX_REQUESTS:
        raise InvalidReplay(f"workload.static.requests = {static.requests}; at most {MAX_REQUESTS} are replayed")
    if static.warmup_requests >= static.requests:
        raise InvalidReplay(
            f"workload.static.warmupRequests = {static.warmup_requests} must be below requests = {static.requests}"
        )
    if static.shared_prefix_ratio > 0 and static.prefix_groups < 1:
        raise InvalidReplay(
            f"workload.static.sharedPrefixRatio = {static.shared_prefix_ratio} needs prefixGroups of at least 1"
        )
    return static.requests


def _lengths(random: np.random.Generator, longest: int, spread: float, count: int) -> Ints:
    """Uniform whole numbers from spread * longest, rounded up, to longest."""
    least = max(1, math.ceil(spread * longest))
    return random.integers(least, longest, count, endpoint=True, dtype=np.int64)


def _arrivals(random: np.random.Generator, static: ReplayStaticWorkload, sessions: int) -> Ints:
    """Nanoseconds of the first turns; -1 in a closed loop."""
    if static.request_rate is None:
        return np.full(sessions, -1, dtype=np.int64)
    gap_ns = 1e9 / static.request_rate
    if static.arrival == "constant":
        at = np.arange(sessions) * gap_ns
    else:
        at = np.concatenate([[0.0], np.cumsum(random.exponential(gap_ns, sessions - 1))])
    if not at[-1] < 2**62:
        raise InvalidReplay(
            f"workload.static.requestRate = {static.request_rate} with {sessions} arrivals lasts more than a century"
        )
    return np.round(at).astype(np.int64)


def _accumulated(isl: Ints, osl: Ints, turn: Ints) -> Ints:
    """Prompt lengths when each turn follows all that was said before in its session."""
    said = np.cumsum(isl + osl)
    before = said - (isl + osl)
    firsts = np.flatnonzero(turn == 0)
    start = np.repeat(before[firsts], np.diff(np.append(firsts, len(isl))))
    return np.asarray(before - start + isl, dtype=np.int64)


def _shared_units(static: ReplayStaticWorkload, isl: Ints, groups: Ints, block: int, unit: int) -> tuple[Ints, Ints]:
    """Identities of the shared prefixes: round(ratio * blocks of the prompt) blocks, one text for each group."""
    shared = np.round(static.shared_prefix_ratio * (-(-isl // block))).astype(np.int64) * block // unit
    unit_start = np.concatenate([[0], np.cumsum(shared)])
    longest = int(shared.max()) if len(shared) else 0
    index = np.arange(int(unit_start[-1])) - np.repeat(unit_start[:-1], shared)
    return unit_start, np.repeat(groups.astype(np.int64), shared) * longest + index
