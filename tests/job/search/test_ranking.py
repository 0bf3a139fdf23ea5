"""The order of the reserve, over branches, ties included; the front against brute force."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
from dgdr_api.candidate import EvaluatedCandidate
from dgdr_api.terms import Backend, Metric
from dgdr_job.catalog.catalog import Catalog
from dgdr_job.search.branches import Branch
from dgdr_job.search.candidates import BranchResult
from dgdr_job.search.config import Goal, Sla
from dgdr_job.search.points import Points, metrics, objective, rank_keys
from dgdr_job.search.ranking import Reserve, reserve
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.job.search.runs import run, search

OSL = 10
Deployment = tuple[int, float, float, float]
"""(GPUs, rate, ttft, tpot)."""


def result(deployments: list[Deployment], names: tuple[Metric, ...], backend: Backend = "vllm") -> BranchResult:
    count = len(deployments)
    columns = list(zip(*deployments, strict=True))
    points = Points(
        prefill_row=np.full(count, -1),
        decode_row=np.arange(count),
        prefill_workers=np.zeros(count, dtype=np.int64),
        decode_workers=np.ones(count, dtype=np.int64),
        encode_row=np.full(count, -1),
        encode_workers=np.zeros(count, dtype=np.int64),
        gpus=np.array(columns[0], dtype=np.int64),
        cost=np.array(columns[0]) * 2.0,
        rate=np.array(columns[1]),
        ttft_ms=np.array(columns[2]),
        tpot_ms=np.array(columns[3]),
        concurrency=np.zeros(count, dtype=np.int64),
    )
    found = metrics(points, OSL)
    objectives = {name: objective(points, found, name) for name in names}
    return BranchResult(
        cast("Branch", SimpleNamespace(encoder="Inline", backend=backend, roles=())), (), points, found, objectives
    )


class Named:
    """Stands for a candidate: only what the ranking looks at."""

    def __init__(self, name: str, score: float, backend: Backend) -> None:
        self.name, self.score, self.id, self.backend = name, score, name, backend
        self.candidate = self
        self.evaluation = self

    def model_dump(self, *, mode: str) -> dict[str, str]:
        return {"name": self.name, "mode": mode}


def order(results: list[BranchResult], goal: Goal, size: int = 100) -> tuple[Reserve, list[str]]:
    """The reserve and the names of its candidates: branch, then the point counted from the end."""

    def build(of: BranchResult, point: int, score: float) -> EvaluatedCandidate:
        index = next(k for k, each in enumerate(results) if each is of)
        return cast("EvaluatedCandidate", Named(f"{'ab'[index]}{9 - point}", score, of.branch.backend))

    found = reserve(results, goal, OSL, size, build)
    return found, [cast("Any", each).name for each in found.candidates]


def one(metric: Metric, sla: Sla | None = None) -> Goal:
    return Goal(metrics=(metric,), sla=sla or Sla())


def test_score_then_fewer_gpus_then_throughput_then_canonical_json() -> None:
    a = result([(4, 2.0, 50.0, 5.0), (2, 1.0, 50.0, 5.0), (2, 1.5, 50.0, 5.0)], ("ttft",))
    b = result([(2, 1.5, 50.0, 5.0), (9, 1.0, 10.0, 5.0), (2, 1.5, 50.0, 5.0)], ("ttft",))
    _, names = order([a, b], one("ttft"))
    # b8 has the least ttft; then 2 GPUs before 4, 1.5/s before 1/s, and equal ones by their JSON.
    assert names == ["b8", "a7", "b7", "b9", "a8", "a9"]


def test_values_within_the_tie_are_equal() -> None:
    a = result([(4, 8.0 * (1 + 1e-14), 50.0, 5.0), (2, 4.0, 50.0, 5.0)], ("throughputPerGpu",))
    assert order([a], one("throughputPerGpu"))[1] == ["a8", "a9"]


def test_fewest_gpus_then_goodput_then_lower_latency() -> None:
    rows = [(2, 1.0, 50.0, 5.0), (2, 3.0, 50.0, 9.0), (2, 3.0, 50.0, 6.0), (1, 0.5, 90.0, 9.0)]
    bounded = Sla(ttft_ms=60, itl_ms=10)
    assert order([result(rows, ("minGpus",))], one("minGpus", bounded))[1] == ["a6", "a7", "a8", "a9"]


def test_a_point_that_misses_a_loose_bound_has_no_goodput() -> None:
    rows = [(2, 9.0, 99.0, 5.0), (2, 1.0, 50.0, 5.0)]
    loose = Sla(ttft_ms=60, itl_ms=10, strict=False)
    assert order([result(rows, ("minGpus",))], one("minGpus", loose))[1] == ["a8", "a9"]


def test_the_reserve_is_cut_to_its_size_and_its_best_is_the_first() -> None:
    a = result([(1, float(rate), 50.0, 5.0) for rate in (3, 1, 2)], ("throughput",))
    found, names = order([a], one("throughput"), size=2)
    assert names == ["a9", "a7"]
    assert cast("Any", found.best).name == "a9"


def test_nothing_found_is_an_empty_reserve() -> None:
    assert reserve([], one("ttft"), OSL, 5, cast("Any", None)) == Reserve((), 0)


def test_latency_decides_for_no_metric_but_the_fewest_gpus() -> None:
    found = result([(1, 1.0, 50.0, 5.0)], ("throughput", "minGpus"))
    assert len(rank_keys(found.points, found.objectives["throughput"], "throughput", Sla(), OSL)) == 3
    assert len(rank_keys(found.points, found.objectives["minGpus"], "minGpus", Sla(), OSL)) == 4


NAMES: tuple[Metric, ...] = ("throughput", "throughputPerGpu", "throughputPerUser", "ttft", "minGpus", "e2eLatency")
small = st.integers(1, 4)


@settings(max_examples=200, deadline=None)
@given(
    rows=st.lists(
        st.tuples(small, small.map(float), small.map(lambda n: 10.0 * n), small.map(float)), min_size=1, max_size=9
    ),
    names=st.lists(st.sampled_from(NAMES), min_size=2, max_size=4, unique=True).map(tuple),
    split=st.integers(0, 9),
    size=st.integers(1, 9),
)
def test_a_front_is_exact_bounded_and_its_knee_the_greatest_product(
    rows: list[Deployment], names: tuple[Metric, ...], split: int, size: int
) -> None:
    parts = [part for part in (rows[:split], rows[split:]) if part]
    results = [result(part, names) for part in parts]
    goal = Goal(metrics=names, pareto=True)
    whole, chosen = order(results, goal)
    sign = {"ttft": -1, "e2eLatency": -1, "minGpus": -1}
    values = {
        f"{'ab'[k]}{9 - i}": tuple(sign.get(name, 1) * float(each.objectives[name][i]) for name in names)
        for k, each in enumerate(results)
        for i in range(len(each.points))
    }
    front = {
        mine
        for mine in values.values()
        if not any(all(a >= b for a, b in zip(o, mine, strict=True)) and o != mine for o in values.values())
    }
    assert {values[name] for name in chosen} == front
    assert len(chosen) == len(front) == whole.pareto_front
    low = [min(point[k] for point in front) for k in range(len(names))]
    high = [max(point[k] for point in front) for k in range(len(names))]

    def product(point: tuple[float, ...]) -> float:
        return float(
            np.prod([1.0 if h == lo else (v - lo) / (h - lo) for v, lo, h in zip(point, low, high, strict=True)])
        )

    for each, name in zip(whole.candidates, chosen, strict=True):
        assert abs(each.evaluation.score - product(values[name])) < 1e-9
    assert abs(whole.best.evaluation.score - max(map(product, front))) < 1e-9
    bounded, first = order(results, goal, size)
    assert first == chosen[:size]
    assert bounded.pareto_front == len(front)


def test_the_same_deployment_with_other_engine_limits_is_sent_once(catalog: Catalog) -> None:
    told = search(run(), catalog)
    deployments = [
        tuple((role.kind, role.workers, role.shape.key) for role in each.candidate.roles) for each in told.reserve
    ]
    assert len(set(deployments)) == len(deployments)


def test_a_result_keeps_its_refusals_when_points_are_taken() -> None:
    whole = result([(1, 1.0, 50.0, 5.0), (2, 3.0, 50.0, 5.0)], ("throughput",))
    part = replace(whole, refused=()).take(np.array([1]))
    assert (part.points.gpus.tolist(), part.objectives["throughput"].tolist()) == ([2], [30.0])


def test_what_no_template_renders_keeps_its_rank_and_takes_no_place() -> None:
    slow, fast = [(2, rate, 50.0, 5.0) for rate in (1.0, 2.0, 1.5)], [(2, rate, 50.0, 5.0) for rate in (4.0, 3.0, 0.5)]
    a, b = result(slow, ("throughput",)), result(fast, ("throughput",), "trtllm")
    found, names = order([a, b], one("throughput"), size=2)
    assert names == ["b9", "b8", "a8", "a7"]
    assert cast("Any", found.best).name == "a8"
    assert order([a, b], one("throughput"), size=4)[1] == ["b9", "b8", "a8", "a7", "a9"]
    assert order([b], one("throughput"), size=2)[1] == ["a9", "a8"]
    assert order([a], one("throughput"), size=2)[1] == ["a8", "a7"]


def test_a_front_that_cannot_be_rendered_is_followed_by_the_one_that_can() -> None:
    names: tuple[Metric, ...] = ("throughput", "ttft")
    a = result([(2, 1.0, 60.0, 5.0), (2, 2.0, 80.0, 5.0), (2, 2.0, 90.0, 5.0)], names)
    b = result([(2, 4.0, 40.0, 5.0), (2, 3.0, 30.0, 5.0)], names, "trtllm")
    found, order_ = order([a, b], Goal(metrics=names, pareto=True))
    assert found.pareto_front == 2
    assert set(order_[:2]) == {"b9", "b8"}
    assert set(order_[2:]) == {"a9", "a8"}
    assert cast("Any", found.best).name.startswith("a")
