"""Random small deployments and workloads, with pressure and without."""

import numpy as np
from dgdr_api.terms import RoleKind
from dgdr_job.replay.pass_times import FIXED, PERFORMANCE, POLYNOMIAL, TABLE, PassTimes
from dgdr_job.replay.plan import Plan, RolePlan, RouterPlan, TransferPlan
from dgdr_job.replay.requests import Requests
from hypothesis import strategies as st

TABLE_TIMES = PassTimes(
    TABLE,
    prefill_tokens=np.array([1.0, 64.0, 500.0]),
    prefill_table_ms=np.array([2.5, 4.25, 9.0]),
    decode_batch=np.array([1.0, 2.0, 8.0]),
    decode_context=np.array([1.0, 100.0, 1000.0]),
    decode_table_ms=np.array([[1.0, 2.0, 4.5], [0.9, 2.5, 5.0], [3.0, 3.5, 9.0]]),
    host_overhead_ns=17,
)
PERFORMANCE_TIMES = PassTimes(
    PERFORMANCE,
    prefill_tokens=np.array([1.0, 2.0, 3.0, 16.0, 90.0]),
    prefill_table_ms=np.array([0.7, 0.9, 0.8, 2.0, 5.123456789]),
    decode_batch=np.array([1.0, 2.0, 3.0, 8.0]),
    decode_context=np.array([1.0, 33.0, 400.0]),
    decode_table_ms=np.array([[1.0, 1.5, 2.0], [0.9, 1.6, 2.2], [1.1, 1.7, 3.1], [2.0, 2.7, 4.4]]),
    prompt_counts=np.array([1.0, 2.0, 4.0]),
    new_tokens=np.array([1.0, 8.0, 64.0]),
    cached_tokens=np.array([0.0, 16.0, 128.0]),
    prompt_table_ms=np.array([[0.1, 0.2, 0.7], [0.3, 0.45, 1.1], [1.3, 2.5, 3.3333333]])
    / np.array([1.0, 1.25, 2.0])[:, None, None],
    attention_table_ms=np.array([[0.1, 0.3, 0.6], [0.11, 0.4, 0.8], [0.2, 0.5, 1.0], [0.35, 0.9, 2.0]]),
    host_overhead_ns=3,
)
TIMES = [
    PassTimes(FIXED, 10.0, 1.0),
    PassTimes(FIXED, 7.3, 2.1, host_overhead_ns=100),
    PassTimes(FIXED, 0.0, 1.0),
    PassTimes(POLYNOMIAL),
    TABLE_TIMES,
    PERFORMANCE_TIMES,
]


@st.composite
def plans(draw: st.DrawFn, backends: tuple[str, ...], routers: tuple[bool, ...] = (False,)) -> Plan:
    """A deployment with narrow limits."""
    backend = draw(st.sampled_from(backends))
    kinds: list[RoleKind] = draw(st.sampled_from([["agg"], ["agg"], ["prefill", "decode"]]))
    block = draw(st.sampled_from([1, 4, 16]))
    blocks = draw(st.integers(2, 40))
    roles = tuple(
        RolePlan(
            kind=kind,
            backend=backend,  # type: ignore[arg-type]
            workers=draw(st.integers(1, 3)),
            ranks=draw(st.sampled_from([1, 1, 1, 2])),
            gpus_per_worker=1,
            max_num_seqs=draw(st.integers(1, 8)),
            max_num_batched_tokens=draw(st.sampled_from([3, 16, 64, 512])),
            block_size=block,
            num_blocks=blocks,
            prefix_caching=draw(st.booleans()),
            chunked_prefill=draw(st.sampled_from([True, True, False])),
            preempt_oldest=draw(st.booleans()),
            times=draw(st.sampled_from(TIMES)),
        )
        for kind in kinds
    )
    transfer = TransferPlan(
        ms_per_token=draw(st.sampled_from([0.0, 0.0, 0.5, 0.013])),
        latency_ms=draw(st.sampled_from([0.0, 0.0, 1.5])),
        only_missing=draw(st.booleans()),
        contention=draw(st.booleans()),
    )
    return Plan(roles=roles, transfer=transfer, router=RouterPlan(kv=draw(st.sampled_from(routers))))


@st.composite
def workloads(draw: st.DrawFn, unit: int = 16) -> Requests:
    """Up to forty requests; some share what their prompts begin with, some are turns."""
    n = draw(st.integers(1, 40))
    seed = draw(st.integers(0, 2**32 - 1))
    random = np.random.default_rng(seed)
    isl = random.integers(1, draw(st.sampled_from([8, 60, 300])), n, endpoint=True)
    osl = random.integers(1, draw(st.sampled_from([3, 40, 100])), n, endpoint=True)
    turns = draw(st.sampled_from([1, 1, 3]))
    accumulate = draw(st.booleans())
    at = np.arange(n)
    turn = at % turns
    next_turn = np.where((turn < turns - 1) & (at < n - 1), at + 1, -1)
    if turns > 1 and accumulate:
        for index in range(1, n):
            if turn[index]:
                isl[index] += isl[index - 1] + osl[index - 1]
    concurrency = draw(st.sampled_from([0, 1, 4]))
    gaps = random.integers(0, draw(st.sampled_from([1, 3, 20])), n, endpoint=True) * 1_000_000
    arrival = np.cumsum(gaps) - gaps[0]
    shared = np.array([random.integers(0, length // unit + 1) for length in isl])
    if not draw(st.booleans()):
        shared[:] = 0
    starts = np.concatenate([[0], np.cumsum(shared)])
    family = random.integers(0, 3, n)
    units = np.concatenate([family[one] * 1000 + np.arange(shared[one]) for one in range(n)]) if n else np.zeros(0)
    return Requests(
        isl=isl,
        osl=osl,
        arrival_ns=arrival,
        concurrency=concurrency,
        next_turn=next_turn,
        think_ns=draw(st.sampled_from([0, 3_000_000])),
        images=np.zeros(n, dtype=np.int64),
        stream=at // turns if accumulate else at,
        unit_tokens=unit,
        unit_start=starts,
        units=units.astype(np.int64),
        warmup=draw(st.sampled_from([0, 0, n // 2])),
    )
