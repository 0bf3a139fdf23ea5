"""From a plan and requests to the kernel's array, and back to an outcome."""

from typing import Any

import numpy as np

from dgdr_job.replay.errors import InvalidTiming, StalledReplay
from dgdr_job.replay.gaps import BINS
from dgdr_job.replay.kernel import state as st
from dgdr_job.replay.kernel.cluster import run
from dgdr_job.replay.kernel.times import TABLES, Times
from dgdr_job.replay.outcome import STATUS, Outcome
from dgdr_job.replay.pass_times import PassTimes
from dgdr_job.replay.plan import Plan, RolePlan
from dgdr_job.replay.requests import BlockKeys, Ints, Requests

Rows = dict[int, "int | tuple[int, Ints | int]"]
"""Of each row its length, or its length and what it holds; zeros where nothing is said."""


def supports(plan: Plan) -> bool:
    """Whether the kernel replays this plan; the reference replays all."""
    return plan.encode is None and not plan.router.kv and all(role.backend in ("vllm", "trtllm") for role in plan.roles)


def replay(plan: Plan, requests: Requests) -> Outcome:
    """Replay the requests on the deployment; equal to `reference.cluster.replay`.

    Raises:
        InvalidTiming: a pass has no time.
        StalledReplay: requests are left and nothing can move them.
    """
    exact = _shares_blocks(requests) and any(role.prefix_caching for role in plan.roles)
    code, memory, offsets = _attempt(plan, requests, exact=exact)
    if code == st.NEEDS_BLOCKS:
        code, memory, offsets = _attempt(plan, requests, exact=True)
    if code == st.BAD_PASS_TIME:
        raise InvalidTiming("a pass would take a negative or endless time")
    if code == st.STALLED:
        raise StalledReplay(f"{int(memory[st.LEFT])} requests are left and nothing can move them")
    return _outcome(len(requests), len(plan.roles), memory, offsets)


def _shares_blocks(requests: Requests) -> bool:
    """Whether a prompt can be found in the cache at all."""
    if len(requests.units) and int(np.bincount(requests.units).max()) > 1:
        return True
    return bool(np.any(requests.stream != np.arange(len(requests))))


def _attempt(plan: Plan, requests: Requests, *, exact: bool) -> tuple[int, Ints, Ints]:
    memory, offsets = _memory(plan, requests, exact=exact)
    times = [_times(role.times, plan.transfer.ms_per_token) for role in plan.roles]
    return int(run(memory, offsets, len(plan.roles), times[0], times[-1])), memory, offsets


def _times(times: PassTimes, link_ms_per_token: float) -> Times:
    return Times(
        kind=times.kind,
        prefill_ms=float(times.prefill_ms),
        decode_ms=float(times.decode_ms),
        **{name: np.ascontiguousarray(getattr(times, name), dtype=np.float64) for name in TABLES},
        overhead_ns=times.host_overhead_ns,
        link_ms_per_token=float(link_ms_per_token),
    )


def _outputs(role: RolePlan, requests: Requests) -> Ints:
    return np.ones_like(requests.osl) if role.kind == "prefill" else requests.osl


def _memory(plan: Plan, requests: Requests, *, exact: bool) -> tuple[Ints, Ints]:
    """The array of a replay, and where each row begins."""
    n, roles = len(requests), plan.roles
    workers = [role.workers for role in roles]
    worker_role = np.repeat(np.arange(len(roles)), workers)
    rank_role = np.repeat(np.arange(len(roles)), [role.workers * role.ranks for role in roles])
    longest = min(st.LONGEST_SPAN, int(requests.osl.max())) if n else 1
    rows = _role_rows(plan, requests) | _request_rows(plan, requests) | _sequence_rows(plan, requests, exact=exact)
    rows |= (
        _rank_rows(plan, rank_role, n) | _worker_rows(worker_role) | _block_rows(plan, rank_role, requests, exact=exact)
    )
    rows |= {
        st.FIRST_TURNS: (len(requests.first_turns), requests.first_turns),
        st.UNIT_START: (n + 1, requests.unit_start),
        st.UNITS: (len(requests.units), requests.units),
        st.GAP_BINS: BINS,
        st.PEAK: 4 * len(roles),
        st.SPAN_NS: len(worker_role) * longest,
        st.POOL_TURN: len(roles),
        st.ACTIONS: n + 1,
    }
    memory, offsets = _laid_out(rows)
    transfer = plan.transfer
    for place, number in {
        st.LEFT: n,
        st.GAP_MIN: st.NEVER,
        st.EXACT: int(exact),
        st.REQUESTS: n,
        st.WORKER_COUNT: len(worker_role),
        st.FIRST_TURN_COUNT: len(requests.first_turns),
        st.SPAN_WIDTH: longest,
        st.CONCURRENCY: requests.concurrency,
        st.THINK_NS: requests.think_ns,
        st.WARMUP: requests.warmup,
        st.CONTENTION: int(transfer.contention),
        st.ONLY_MISSING: int(transfer.only_missing),
        st.LATENCY_NS: transfer.latency_ns,
        st.PHASE_WIDTH: max(role.block_size for role in plan.roles),
    }.items():
        memory[place] = number
    return memory, offsets


def _laid_out(rows: Rows) -> tuple[Ints, Ints]:
    sizes = np.zeros(st.ROWS, dtype=np.int64)
    for row, given in rows.items():
        sizes[row] = given if isinstance(given, int) else given[0]
    offsets = st.NUMBERS + np.cumsum(sizes) - sizes
    memory = np.zeros(st.NUMBERS + int(sizes.sum()), dtype=np.int64)
    for row, given in rows.items():
        if not isinstance(given, int):
            memory[offsets[row] : offsets[row] + given[0]] = given[1]
    return memory, offsets


def _role_rows(plan: Plan, requests: Requests) -> Rows:
    count = len(plan.roles)
    kinds = {"agg": st.AGG, "prefill": st.PREFILL, "decode": st.DECODE}
    keys = [BlockKeys(requests, role.block_size) for role in plan.roles]
    ranks = np.array([role.workers * role.ranks for role in plan.roles])
    workers = np.array([role.workers for role in plan.roles])
    columns: dict[int, Any] = {
        st.KIND: [kinds[role.kind] for role in plan.roles],
        st.NO_EVICTION: [role.backend == "trtllm" for role in plan.roles],
        st.MAX_SEQS: [role.max_num_seqs for role in plan.roles],
        st.MAX_TOKENS: [role.max_num_batched_tokens for role in plan.roles],
        st.BLOCK: [role.block_size for role in plan.roles],
        st.BLOCKS: [role.num_blocks for role in plan.roles],
        st.CACHING: [role.prefix_caching for role in plan.roles],
        st.CHUNKED: [role.chunked_prefill for role in plan.roles],
        st.OLDEST: [role.preempt_oldest for role in plan.roles],
        st.CAPACITY: [role.capacity_tokens for role in plan.roles],
        st.RANKS: [role.ranks for role in plan.roles],
        st.WORKERS: workers,
        st.FIRST_WORKER: np.cumsum(workers) - workers,
        st.FIRST_RANK: np.cumsum(ranks) - ranks,
        st.PER_UNIT: [one.blocks_per_unit for one in keys],
        st.FIRST_OWN: [one.first_own for one in keys],
        st.STRIDE: [one.stride for one in keys],
    }
    return {row: (count, np.asarray(values, dtype=np.int64)) for row, values in columns.items()}


def _rejected(plan: Plan, requests: Requests) -> Ints:
    """Status of the requests that no worker can hold; 0 for the others. As `Plan.cause_of_rejection`."""
    status = np.zeros(len(requests), dtype=np.int64)
    for role in reversed(plan.roles):
        if not role.chunked_prefill and role.kind != "decode":
            status[requests.isl > role.max_num_batched_tokens] = STATUS["batched_tokens"]
        blocks = -(-(requests.isl + _outputs(role, requests)) // role.block_size)
        status[blocks > role.num_blocks] = STATUS["kv_capacity"]
    return status


def _request_rows(plan: Plan, requests: Requests) -> Rows:
    n = len(requests)
    rows: Rows = dict.fromkeys(range(st.ISL, st.TRANSFER_SEQ + 1), n)
    unset = (st.OUT_ARRIVAL, st.OUT_ADMITTED, st.OUT_DECODE_ADMITTED, st.OUT_FIRST, st.OUT_LAST)
    places = (st.OUT_WORKER, st.OUT_DECODE_WORKER, st.SOURCE_RANK, st.TARGET_RANK, st.DEFERRED_NEXT)
    rows |= dict.fromkeys(unset + places, (n, -1))
    given = {st.ISL: requests.isl, st.OSL: requests.osl, st.ARRIVAL: requests.arrival_ns}
    given |= {st.NEXT_TURN: requests.next_turn, st.STREAM: requests.stream, st.REJECTED: _rejected(plan, requests)}
    return rows | {row: (n, values) for row, values in given.items()}


def _sequence_rows(plan: Plan, requests: Requests, *, exact: bool) -> Rows:
    count = len(requests) * len(plan.roles)
    rows: Rows = dict.fromkeys(range(st.GENERATED, st.TABLE_START + 1), count)
    rows |= dict.fromkeys((st.ATTEMPT, st.FOLLOWING, st.PRECEDING, st.PART_PASS), (count, -1))
    if not exact:
        return rows | {st.TABLE: 1}
    sizes = np.concatenate([-(-(requests.isl + _outputs(role, requests)) // role.block_size) for role in plan.roles])
    return rows | {st.TABLE_START: (count, np.cumsum(sizes) - sizes), st.TABLE: int(sizes.sum())}


def _rank_rows(plan: Plan, rank_role: Ints, n: int) -> Rows:
    ranks = len(rank_role)
    rows: Rows = dict.fromkeys(range(st.RANK_ROLE, st.MAP_BITS + 1), ranks)
    unset = (st.WAIT_HEAD, st.WAIT_TAIL, st.PENDING_HEAD, st.PENDING_TAIL, st.IDLE_HEAD, st.IDLE_TAIL)
    rows |= dict.fromkeys(unset, (ranks, -1))
    batch = np.array([min(role.max_num_seqs, n) for role in plan.roles], dtype=np.int64)[rank_role]
    per_worker = np.array([role.ranks for role in plan.roles])[
        np.repeat(np.arange(len(plan.roles)), [r.workers for r in plan.roles])
    ]
    return rows | {
        st.RANK_ROLE: (ranks, rank_role),
        st.RANK_WORKER: (ranks, np.repeat(np.arange(len(per_worker)), per_worker)),
        st.RUNNING_START: (ranks, np.cumsum(batch) - batch),
        st.FREE: (ranks, np.array([role.num_blocks for role in plan.roles])[rank_role]),
        st.RUNNING: int(batch.sum()),
        st.EMITTED: int(batch.sum()),
        st.PROMPTS: int(batch.sum()),
        st.ENDS: int(batch.sum()),
        st.NEXT_END: (ranks, st.NEVER),
        st.PHASES: ranks * max(role.block_size for role in plan.roles),
        st.BY_PHASE: max(role.block_size for role in plan.roles),
        st.AFTER_IN_PHASE: int(batch.max()),
        st.PASS_PARTS: 8 * ranks,
    }


def _worker_rows(worker_role: Ints) -> Rows:
    workers = len(worker_role)
    rows: Rows = dict.fromkeys(range(st.WORKER_ROLE, st.RANK_TURN + 1), workers)
    rows |= {st.WORKER_ROLE: (workers, worker_role), st.END_NS: (workers, st.NEVER)}
    rows |= {row: (workers, np.arange(workers)) for row in (st.HEAP, st.HEAP_PLACE)}
    return rows | dict.fromkeys((st.DEFERRED_HEAD, st.DEFERRED_TAIL), (workers, -1))


def _block_rows(plan: Plan, rank_role: Ints, requests: Requests, *, exact: bool) -> Rows:
    """Block lists of the ranks; none where nothing is ever found in a cache."""
    if not exact or not len(requests):
        return {}
    blocks = np.array([role.num_blocks for role in plan.roles], dtype=np.int64)[rank_role]
    bits = np.array([max(2, int(2 * one).bit_length()) for one in blocks], dtype=np.int64)
    slots, size, ranks = int(blocks.sum()), int((1 << bits).sum()), len(rank_role)
    most = int((requests.isl + requests.osl).max()) // min(role.block_size for role in plan.roles) + 2
    rows: Rows = dict.fromkeys((st.SLOT_BEFORE, st.SLOT_AFTER, st.SLOT_TWIN, st.SLOT_KEY), (slots, -1))
    return rows | {
        st.FREE_SLOTS: (slots, np.arange(slots)),
        st.SLOT_USERS: slots,
        st.SLOT_BASE: (ranks, np.cumsum(blocks) - blocks),
        st.MAP_BASE: (ranks, np.cumsum(1 << bits) - (1 << bits)),
        st.MAP_BITS: (ranks, bits),
        st.MAP_KEY: (size, -1),
        st.MAP_SLOT: (size, -1),
        st.HITS: most,
    }


def _outcome(n: int, roles: int, memory: Ints, offsets: Ints) -> Outcome:
    made = Outcome(n)
    for row, name in (
        (st.OUT_ARRIVAL, "arrival_ns"),
        (st.OUT_ADMITTED, "admitted_ns"),
        (st.OUT_DECODE_ADMITTED, "decode_admitted_ns"),
        (st.OUT_FIRST, "first_token_ns"),
        (st.OUT_LAST, "last_token_ns"),
        (st.OUT_REUSED, "reused_tokens"),
        (st.OUT_WORKER, "worker"),
        (st.OUT_DECODE_WORKER, "decode_worker"),
        (st.OUT_PREEMPTIONS, "preemptions"),
        (st.OUT_STATUS, "status"),
    ):
        setattr(made, name, memory[offsets[row] : offsets[row] + n].copy())
    peak = memory[offsets[st.PEAK] : offsets[st.PEAK] + 4 * roles].reshape(roles, 4)
    for at, name in enumerate(("peak_running", "peak_pass_tokens", "peak_blocks", "evictions")):
        setattr(made, name, [int(one) for one in peak[:, at]])
    made.passes = int(memory[st.PASSES])
    made.gaps.bins = memory[offsets[st.GAP_BINS] : offsets[st.GAP_BINS] + BINS].copy()
    made.gaps.count, made.gaps.total_ns = int(memory[st.GAP_COUNT]), int(memory[st.GAP_SUM])
    if made.gaps.count:
        made.gaps.least_ns, made.gaps.most_ns = int(memory[st.GAP_MIN]), int(memory[st.GAP_MAX])
    return made
