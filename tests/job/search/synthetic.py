"""Role tables made of a few numbers, and the slow, obvious evaluation of them: every row pair, every count."""

import itertools
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
from dgdr_job.matching import reference
from dgdr_job.matching.arrays import ONE_PRICE, Prices
from dgdr_job.search.config import Sla, Workload
from dgdr_job.search.question import Question
from dgdr_job.search.role_rows import Rows, ShapeData
from dgdr_job.search.role_table import RoleTable, table_of
from dgdr_job.space.limits import POOL_OF_ROLE, Limits, PoolName, SharedCap
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
    aggregated: bool = False

    def e2e(self, osl: int) -> float:
        return self.ttft + self.tpot * (osl - 1)

    @property
    def fewest(self) -> tuple[int, ...]:
        """Workers in the order in which fewer of them decide a tie: decode (or aggregated), prefill, encode."""
        swapped = self.workers[1::-1] if len(self.workers) == 3 or not self.aggregated else self.workers[:1]
        return (*swapped, *self.workers[len(swapped) :])

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
    """Every feasible deployment, by plain loops: every row of each role, every number of workers."""
    workload, sla = question.workload, question.sla
    serving = next(at for at, each in enumerate(tables) if each.kind in ("decode", "agg"))
    for rows in itertools.product(*(range(len(each)) for each in tables)):
        ttft = sum(float(t.ttft_ms[row]) for t, row in zip(tables, rows, strict=True))
        tpot = sum(float(t.tpot_ms[row]) for t, row in zip(tables, rows, strict=True))
        e2e = ttft + tpot * max(workload.osl - 1, 0)
        if sla.strict and (
            (sla.ttft_ms is not None and ttft > sla.ttft_ms)
            or (sla.itl_ms is not None and tpot > sla.itl_ms)
            or (sla.e2e_ms is not None and e2e > sla.e2e_ms)
        ):
            continue
        for workers, gpus in _counts(tables, rows, question.limits):
            capacity = min(n * float(t.rate[row]) for t, row, n in zip(tables, rows, workers, strict=True))
            slots = workers[serving] * int(tables[serving].slots[rows[serving]])
            concurrency = workload.concurrency
            if question.kv_load_ratio is not None:
                held = int(tables[serving].held[rows[serving]]) * workers[serving]
                at_once = held // (workload.isl + workload.osl // 2)
                if at_once < 1:
                    continue
                concurrency = max(1, math.floor(Fraction(str(question.kv_load_ratio)) * at_once))
            served = _served(question, concurrency, (capacity, slots), ttft, e2e)
            if served is not None:
                rate, wait = served
                yield Deployment(
                    shapes=tuple(int(t.gpus[row]) for t, row in zip(tables, rows, strict=True)),
                    rows=rows,
                    workers=workers,
                    gpus=gpus,
                    cost=sum(
                        n * int(t.gpus[row]) * question.prices.of(POOL_OF_ROLE[t.kind])
                        for t, row, n in zip(tables, rows, workers, strict=True)
                    ),
                    rate=rate,
                    ttft=ttft + wait,
                    tpot=tpot,
                    concurrency=concurrency or 0,
                    aggregated=tables[0].kind == "agg",
                )


def _counts(
    tables: tuple[RoleTable, ...], rows: tuple[int, ...], limits: Limits
) -> Iterator[tuple[tuple[int, ...], int]]:
    """Workers of each role, and all GPUs; caps of a role bind only where there are several."""
    gpus = {POOL_OF_ROLE[t.kind]: int(t.gpus[row]) for t, row in zip(tables, rows, strict=True)}
    bounds = limits if len(tables) > 1 else Limits(limits.gpu_budget, limits.min_gpu_budget)
    for counts, total in reference.deployments(gpus, bounds):
        yield tuple(counts[pool] for pool in gpus), total


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


# Few distinct values: ties between rows, bounds that are met exactly, and equal rates all occur.
rates = st.one_of(st.integers(1, 6).map(float), st.integers(1, 20).map(lambda n: n / 7))
latencies = st.sampled_from([10.0, 20.0, 25.0, 40.0])
widths = st.lists(st.sampled_from([1, 2, 3, 4]), min_size=1, max_size=2, unique=True)


@st.composite
def tables(draw: st.DrawFn, kind: RoleKind, most_rows: int = 3) -> RoleTable:
    """A small table: one or two shapes of one to three rows."""
    rows: dict[int, list[Row]] = {}
    for width in draw(widths):
        rows[width] = [
            (
                draw(st.integers(1, 4)),
                draw(rates),
                0.0 if kind == "decode" else 10 * draw(latencies),
                0.0 if kind in ("prefill", "encode") else draw(latencies),
            )
            for _ in range(draw(st.integers(1, most_rows)))
        ]
    return table(kind, rows, draw(st.sampled_from([90, 300, 700, 2000])))


SHARING: list[frozenset[PoolName]] = [
    frozenset(),
    frozenset(),
    frozenset({"prefill", "encode"}),
    frozenset({"decode", "encode"}),
]


@st.composite
def limits(draw: st.DrawFn) -> Limits:
    budget = draw(st.integers(1, 12))
    caps = st.none() | st.integers(1, 8)
    shared = draw(st.sampled_from(SHARING))
    return Limits(
        budget,
        draw(st.integers(1, budget)),
        draw(caps),
        draw(caps),
        draw(caps),
        draw(caps),
        max_encode_gpus=draw(caps),
        max_encode_workers=draw(caps),
        shared=(SharedCap(shared, draw(st.integers(1, 8))),) if shared else (),
    )


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
            st.sampled_from(
                [
                    ONE_PRICE,
                    Prices(2.5, 2.5),
                    Prices(1.0, 3.0),
                    Prices(2.5, 0.5),
                    Prices(1.0, 1.25),
                    Prices(1.0, 1.0, 0.5),
                    Prices(2.5, 0.5, 1.0),
                ]
            )
        ),
        kv_load_ratio=ratio,
    )
