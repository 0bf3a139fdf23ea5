"""Role tables made of a few numbers, and the slow, obvious evaluation of them: every row pair, every count."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from dgdr_api.shape import Shape
from dgdr_api.terms import Metric, RoleKind
from dgdr_job.catalog.kv import KvEstimate
from dgdr_job.catalog.provenance import SourceShares
from dgdr_job.matching.arrays import ONE_PRICE, Prices
from dgdr_job.search.config import Sla, Workload
from dgdr_job.search.question import Question
from dgdr_job.search.role_rows import Rows, ShapeData
from dgdr_job.search.role_table import RoleTable, table_of
from dgdr_job.space.limits import Limits
from dgdr_job.timing.plausibility import Plausibility
from hypothesis import strategies as st

TIE = 1e-12
ESTIMATE = KvEstimate(100_000, 0.9, "of_total", 8192, 141.0, 61.0, 1.0, 1.0, 1.0, 1000)

Row = tuple[int, float, float, float]
"""(batch, rate, ttft, tpot)."""


def table(kind: RoleKind, rows_of_shape: dict[int, list[Row]], kv_tokens: int = 100_000) -> RoleTable:
    """A table with one tensor-parallel shape per key, KV blocks of 64 tokens."""
    estimate = replace(ESTIMATE, tokens_per_rank=kv_tokens)
    known = tuple(
        ShapeData(Shape(tp=tp), SourceShares(1.0, 0.0, 0.0, 0.0), Plausibility(2.0, 1.0, is_implausible=False))
        for tp in rows_of_shape
    )
    parts = [
        Rows(
            batch=np.array([row[0] for row in rows], dtype=np.int64),
            batched_tokens=np.full(len(rows), 8192),
            rate=np.array([row[1] for row in rows]),
            ttft_ms=np.array([row[2] for row in rows]),
            tpot_ms=np.array([row[3] for row in rows]),
            estimates=(estimate,) * len(rows),
        )
        for rows in rows_of_shape.values()
    ]
    return table_of(kind, known, (), parts, block_tokens=64)


@dataclass(frozen=True)
class Deployment:
    """One deployment and what it would do."""

    shapes: tuple[int, ...]
    """tp of each role."""
    rows: tuple[int, ...]
    workers: tuple[int, ...]
    gpus: int
    cost: float
    rate: float
    ttft: float
    tpot: float
    concurrency: int

    def e2e(self, osl: int) -> float:
        return self.ttft + self.tpot * (osl - 1)

    def value(self, metric: Metric, osl: int) -> float:
        """Higher is better."""
        return {
            "throughput": lambda: self.rate * osl,
            "throughputPerGpu": lambda: self.rate * osl / self.gpus,
            "throughputPerCost": lambda: self.rate * osl * 3600 / self.cost,
            "throughputPerUser": lambda: 1000 / self.tpot,
            "ttft": lambda: -self.ttft,
            "e2eLatency": lambda: -self.e2e(osl),
            "minGpus": lambda: -float(self.gpus),
        }[metric]()


def everything(tables: tuple[RoleTable, ...], question: Question) -> Iterator[Deployment]:
    """Every feasible deployment, by plain loops."""
    limits, workload, sla = question.limits, question.workload, question.sla
    first, last = tables[0], tables[-1]
    for i in range(len(first)):
        for j in range(len(last)):
            if len(tables) == 1 and i != j:
                continue
            ttft, tpot = float(first.ttft_ms[i]), float(last.tpot_ms[j])
            e2e = ttft + tpot * max(workload.osl - 1, 0)
            if sla.strict and (
                (sla.ttft_ms is not None and ttft > sla.ttft_ms)
                or (sla.itl_ms is not None and tpot > sla.itl_ms)
                or (sla.e2e_ms is not None and e2e > sla.e2e_ms)
            ):
                continue
            for workers, gpus, capacity, slots in _counts(tables, i, j, limits):
                concurrency = workload.concurrency
                if question.kv_load_ratio is not None:
                    at_once = int(last.held[j]) * workers[-1] // (workload.isl + workload.osl // 2)
                    if at_once < 1:
                        continue
                    concurrency = max(1, math.floor(Fraction(str(question.kv_load_ratio)) * at_once))
                served = _served(question, concurrency, (capacity, slots), ttft, e2e)
                if served is not None:
                    rate, wait = served
                    yield Deployment(
                        shapes=tuple(int(t.gpus[row]) for t, row in zip(tables, (i, j), strict=False)),
                        rows=(i, j)[: len(tables)],
                        workers=workers,
                        gpus=gpus,
                        cost=_cost(tables, (i, j), workers, question.prices),
                        rate=rate,
                        ttft=ttft + wait,
                        tpot=tpot,
                        concurrency=concurrency or 0,
                    )


def _cost(tables: tuple[RoleTable, ...], rows: tuple[int, int], workers: tuple[int, ...], prices: Prices) -> float:
    each = (prices.prefill, prices.decode)[2 - len(tables) :]
    return sum(n * int(t.gpus[row]) * price for t, row, n, price in zip(tables, rows, workers, each, strict=False))


def _served(
    question: Question, concurrency: int | None, has: tuple[float, int], ttft: float, e2e: float
) -> tuple[float, float] | None:
    """Requests per second under the load, and milliseconds that they wait; None where the load is not carried."""
    workload, sla, (capacity, slots) = question.workload, question.sla, has
    if workload.request_rate is not None:
        return None if capacity < workload.request_rate * (1 - TIE) else (workload.request_rate, 0.0)
    if concurrency is None:
        return capacity, 0.0
    if slots < concurrency:
        return None
    rate = min(capacity, 1000 * concurrency / e2e)
    # Little's law: requests stay C / rate seconds; what exceeds the latency of their rows is a wait
    stay = 1000 * concurrency / rate
    wait = stay - e2e if stay > e2e * (1 + TIE) else 0.0
    late = (sla.ttft_ms is not None and ttft + wait > sla.ttft_ms * (1 + TIE)) or (
        sla.e2e_ms is not None and e2e + wait > sla.e2e_ms * (1 + TIE)
    )
    return None if sla.strict and late else (rate, wait)


def _counts(
    tables: tuple[RoleTable, ...], i: int, j: int, limits: Limits
) -> Iterator[tuple[tuple[int, ...], int, float, int]]:
    if len(tables) == 1:
        agg = tables[0]
        for n in range(1, limits.gpu_budget + 1):
            gpus = n * int(agg.gpus[i])
            if limits.min_gpu_budget <= gpus <= limits.gpu_budget:
                yield (n,), gpus, n * float(agg.rate[i]), n * int(agg.slots[i])
        return
    prefill, decode = tables
    for p in range(1, limits.gpu_budget + 1):
        for d in range(1, limits.gpu_budget + 1):
            gpus_p, gpus_d = p * int(prefill.gpus[i]), d * int(decode.gpus[j])
            if not limits.min_gpu_budget <= gpus_p + gpus_d <= limits.gpu_budget:
                continue
            if gpus_p > (limits.max_prefill_gpus or gpus_p) or gpus_d > (limits.max_decode_gpus or gpus_d):
                continue
            if p > (limits.max_prefill_workers or p) or d > (limits.max_decode_workers or d):
                continue
            capacity = min(p * float(prefill.rate[i]), d * float(decode.rate[j]))
            yield (p, d), gpus_p + gpus_d, capacity, d * int(decode.slots[j])


# Few distinct values: ties between rows, bounds that are met exactly, and equal rates all occur.
rates = st.one_of(st.integers(1, 6).map(float), st.integers(1, 20).map(lambda n: n / 7))
latencies = st.sampled_from([10.0, 20.0, 25.0, 40.0])
widths = st.lists(st.sampled_from([1, 2, 3, 4]), min_size=1, max_size=2, unique=True)


@st.composite
def tables(draw: st.DrawFn, kind: RoleKind) -> RoleTable:
    """A small table: one or two shapes of one to three rows."""
    rows: dict[int, list[Row]] = {}
    for width in draw(widths):
        rows[width] = [
            (
                draw(st.integers(1, 4)),
                draw(rates),
                0.0 if kind == "decode" else 10 * draw(latencies),
                0.0 if kind == "prefill" else draw(latencies),
            )
            for _ in range(draw(st.integers(1, 3)))
        ]
    return table(kind, rows, draw(st.sampled_from([90, 300, 700, 2000])))


@st.composite
def limits(draw: st.DrawFn) -> Limits:
    budget = draw(st.integers(1, 12))
    caps = st.none() | st.integers(1, 8)
    return Limits(budget, draw(st.integers(1, budget)), draw(caps), draw(caps), draw(caps), draw(caps))


@st.composite
def questions(draw: st.DrawFn, metrics: tuple[Metric, ...], *, pareto: bool = False) -> Question:
    """A load, bounds and limits; the objective as given."""
    load: dict[str, Any] = draw(
        st.one_of(
            st.just({"saturated": True}),
            st.integers(1, 12).map(lambda n: {"concurrency": n}),
            rates.map(lambda rate: {"request_rate": 2 * rate}),
            st.just({}),
        )
    )
    ratio = None if load else draw(st.sampled_from([0.05, 0.29, 0.3, 0.5, 0.7, 1.0, 1.5]))
    bounds: dict[str, Any] = draw(
        st.one_of(
            st.just({}),
            st.tuples(latencies, latencies).map(lambda pair: {"ttft_ms": 10 * pair[0], "itl_ms": pair[1]}),
            st.sampled_from([190.0, 280.0, 400.0, 560.0]).map(lambda e2e: {"e2e_ms": e2e}),
        )
    )
    return Question(
        workload=Workload(isl=100, osl=10, **load),
        sla=Sla(**bounds, strict=draw(st.sampled_from([True, True, True, False]))),
        limits=draw(limits()),
        metrics=metrics,
        pareto=pareto,
        prices=draw(
            st.sampled_from([ONE_PRICE, Prices(2.5, 2.5), Prices(1.0, 3.0), Prices(2.5, 0.5), Prices(1.0, 1.25)])
        ),
        kv_load_ratio=ratio,
    )
