"""The static estimate equals trying every row and every worker count, for every metric, load and bound."""

import itertools
from collections import defaultdict

import numpy as np
import pytest
from dgdr_api.terms import Metric
from dgdr_job.search import static
from dgdr_job.search.config import Sla, Workload
from dgdr_job.search.points import metrics, objective, score
from dgdr_job.search.question import Question
from dgdr_job.search.role_table import RoleTable
from dgdr_job.space.limits import Limits
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.job.search import synthetic
from tests.job.search.synthetic import Deployment, everything, questions, table, tables

METRICS: tuple[Metric, ...] = (
    "throughput",
    "throughputPerGpu",
    "throughputPerUser",
    "throughputPerCost",
    "ttft",
    "e2eLatency",
    "minGpus",
)
OSL = 10
SATURATED = Workload(isl=100, osl=OSL, saturated=True)


def evaluate(given_tables: tuple[RoleTable, ...], question: Question) -> static.Evaluated:
    if len(given_tables) == 1:
        return static.evaluate_agg(given_tables[0], question)
    return static.evaluate_pools(given_tables, question)


def deployments(given_tables: tuple[RoleTable, ...], found: static.Evaluated) -> list[Deployment]:
    points = found.points
    result = []
    for k in range(len(points)):
        rows = tuple(int(points.row_of(t.kind)[k]) for t in given_tables)
        result.append(
            Deployment(
                shapes=tuple(int(t.gpus[row]) for t, row in zip(given_tables, rows, strict=True)),
                rows=rows,
                workers=tuple(int(points.workers_of(t.kind)[k]) for t in given_tables),
                gpus=int(points.gpus[k]),
                cost=float(points.cost[k]),
                rate=float(points.rate[k]),
                ttft=float(points.ttft_ms[k]),
                tpot=float(points.tpot_ms[k]),
                concurrency=int(points.concurrency[k]),
                aggregated=given_tables[0].kind == "agg",
            )
        )
    return result


def key(deployment: Deployment, metric: Metric, sla: Sla) -> tuple[float, ...]:
    """What ranks deployments, lower first; values within the tie are made equal."""
    late = (
        (sla.ttft_ms is not None and deployment.ttft > sla.ttft_ms * (1 + 1e-9))
        or (sla.itl_ms is not None and deployment.tpot > sla.itl_ms)
        or (sla.e2e_ms is not None and deployment.e2e(OSL) > sla.e2e_ms * (1 + 1e-9))
    )
    served = 0.0 if metric == "minGpus" and late else deployment.rate
    values = (-deployment.value(metric, OSL), float(deployment.gpus), -served, deployment.e2e(OSL))
    return tuple(float(f"{value:.9g}") for value in values)


both = st.one_of(
    tables("agg").map(lambda agg: (agg,)),
    st.tuples(tables("prefill"), tables("decode")),
    st.tuples(tables("agg"), tables("encode", most_rows=2)),
    st.tuples(*(tables(kind, most_rows=2) for kind in ("prefill", "decode", "encode"))),
)


@settings(max_examples=500, deadline=None)
@given(given_tables=both, metric=st.sampled_from(METRICS), data=st.data())
def test_what_is_found_is_worth_its_gpus_and_has_the_best_limits(
    given_tables: tuple[RoleTable, ...], metric: Metric, data: st.DataObject
) -> None:
    """Every row and count is tried: of each shape and number of GPUs the best, of those what fewer do not equal."""
    question = data.draw(questions((metric,)))
    best: dict[tuple[tuple[int, ...], int], tuple[float, ...]] = {}
    for each in everything(given_tables, question):
        name = (each.shapes, each.gpus)
        mine = (*key(each, metric, question.sla), *map(float, each.fewest))
        best[name] = min(best.get(name, (float("inf"),)), mine)
    worth = {
        (shapes, gpus): mine
        for (shapes, gpus), mine in best.items()
        if not any(other == shapes and fewer < gpus and theirs[0] <= mine[0] for (other, fewer), theirs in best.items())
    }
    found = deployments(given_tables, evaluate(given_tables, question))
    assert len({(each.shapes, each.gpus) for each in found}) == len(found)
    assert {
        (each.shapes, each.gpus): (*key(each, metric, question.sla), *map(float, each.fewest)) for each in found
    } == worth
    loads = {(each.rows, each.workers): each.concurrency for each in everything(given_tables, question)}
    assert all(each.concurrency == loads[each.rows, each.workers] for each in found)


@settings(max_examples=500, deadline=None)
@given(given_tables=both, metric=st.sampled_from(METRICS), data=st.data())
def test_each_shape_is_served_or_refused_with_a_true_reason(
    given_tables: tuple[RoleTable, ...], metric: Metric, data: st.DataObject
) -> None:
    question = data.draw(questions((metric,)))
    feasible = {each.shapes for each in everything(given_tables, question)}
    found = evaluate(given_tables, question)
    refused = {tuple(shape.gpus for shape in refusal.shapes): refusal for refusal in found.refusals}
    assert len(refused) == len(found.refusals)
    served = {each.shapes for each in deployments(given_tables, found)}
    every = set(itertools.product(*([known.shape.gpus for known in each.shapes] for each in given_tables)))
    assert served == feasible
    assert refused.keys() == every - feasible

    no_load = Question(SATURATED, question.sla, question.limits, question.metrics, pareto=False)
    no_limit = Question(SATURATED, question.sla, Limits(gpu_budget=12), question.metrics, pareto=False)
    with_counts = {each.shapes for each in everything(given_tables, no_load)}
    with_rows = {each.shapes for each in everything(given_tables, no_limit)}
    at, serving = next((at, each) for at, each in enumerate(given_tables) if each.kind in ("agg", "decode"))
    with_one_request = {
        each.shapes
        for each in everything(given_tables, no_load)
        if int(serving.held[each.rows[at]]) * each.workers[at] >= 105  # isl 100, half of osl 10
    }
    counts: dict[tuple[int, ...], set[tuple[int, ...]]] = defaultdict(set)
    anything = Question(SATURATED, Sla(), question.limits, question.metrics, pareto=False)
    for each in everything(given_tables, anything):
        counts[each.shapes].add(each.workers)
    for shapes, refusal in refused.items():
        expected = (
            "sla_constraint"
            if shapes not in with_rows
            else "gpu_budget"
            if shapes not in with_counts
            else "kv_capacity"
            if question.kv_load_ratio is not None and shapes not in with_one_request
            else "load_constraint"
        )
        assert (refusal.status, refusal.reason) == ("infeasible", expected), refusal.detail
        assert refusal.detail
        assert refusal.deployments == len(counts[shapes])


PARETO = st.lists(st.sampled_from(METRICS), min_size=2, max_size=4, unique=True).map(tuple)


@settings(max_examples=400, deadline=None)
@given(given_tables=both, chosen=PARETO, data=st.data())
def test_the_points_hold_the_whole_front(
    given_tables: tuple[RoleTable, ...], chosen: tuple[Metric, ...], data: st.DataObject
) -> None:
    """Brute force over all rows and counts: nothing dominates what is found, and nothing that is left out is new."""
    question = data.draw(questions(chosen, pareto=True))
    assume(question.workload.osl == OSL)
    every = list(everything(given_tables, question))
    values = [tuple(float(f"{each.value(metric, OSL):.9g}") for metric in chosen) for each in every]
    front = {
        mine
        for mine in values
        if not any(all(a >= b for a, b in zip(other, mine, strict=True)) and other != mine for other in values)
    }
    points = evaluate(given_tables, question).points
    columns = metrics(points, OSL)
    scores = [score(objective(points, columns, metric), metric).tolist() for metric in chosen]
    found = {tuple(float(f"{value:.9g}") for value in row) for row in zip(*scores, strict=True)}
    assert front <= found
    assert found <= set(values)
    fewest = {
        mine: min(each.gpus for each, other in zip(every, values, strict=True) if other == mine) for mine in front
    }
    for row, gpus in zip(zip(*scores, strict=True), points.gpus.tolist(), strict=True):
        mine = tuple(float(f"{value:.9g}") for value in row)
        assert gpus >= fewest.get(mine, 0)
    least: dict[tuple[float, ...], int] = defaultdict(lambda: 10**9)
    for row, gpus in zip(zip(*scores, strict=True), points.gpus.tolist(), strict=True):
        mine = tuple(float(f"{value:.9g}") for value in row)
        least[mine] = min(least[mine], gpus)
    assert {mine: least[mine] for mine in front} == fewest


def ask(metric: Metric = "throughputPerGpu", sla: Sla | None = None, **load: float) -> Question:
    workload = Workload(isl=100, osl=OSL, **(load or {"saturated": True}))
    return Question(workload, sla or Sla(), Limits(gpu_budget=8), (metric,), pareto=False)


AGG = table("agg", {1: [(4, 10.0, 100.0, 20.0)]})
PREFILL = table("prefill", {1: [(1, 10.0, 100.0, 0.0)]})
DECODE = table("decode", {1: [(4, 10.0, 0.0, 20.0)]})
BELOW = 1 - 1e-11
"""Just beyond the tie of 1e-12 within which means are equal."""


@pytest.mark.parametrize(
    ("met", "missed"),
    [
        (Sla(ttft_ms=100, itl_ms=20), Sla(ttft_ms=100 * BELOW, itl_ms=20)),
        (Sla(ttft_ms=100, itl_ms=20), Sla(ttft_ms=100, itl_ms=20 * BELOW)),
        (Sla(ttft_ms=float(np.nextafter(100.0, 0)), itl_ms=20), Sla(ttft_ms=100 * BELOW, itl_ms=20)),
        (Sla(e2e_ms=280), Sla(e2e_ms=280 * BELOW)),
    ],
)
def test_bounds_are_inclusive(met: Sla, missed: Sla) -> None:
    assert len(static.evaluate_agg(AGG, ask(sla=met)).points) == 1
    assert len(static.evaluate_pools((PREFILL, DECODE), ask(sla=met)).points) == 1
    for found in (static.evaluate_agg(AGG, ask(sla=missed)), static.evaluate_pools((PREFILL, DECODE), ask(sla=missed))):
        assert len(found.points) == 0
        assert [refusal.reason for refusal in found.refusals] == ["sla_constraint"]


@pytest.mark.parametrize("metric", ["throughput", "throughputPerGpu", "minGpus"])
def test_a_rate_that_is_reached_but_for_rounding_is_carried(metric: Metric) -> None:
    """49 times 1/49 is a little less than 1 in floats; 49 workers of a 49th of a request per second serve 1/s."""
    assert 49 * (1 / 49) < 1
    slow, fast = {1: [(4, 1 / 49, 100.0, 20.0)]}, {1: [(64, 50.0, 100.0, 20.0)]}
    workload = Workload(isl=100, osl=OSL, request_rate=1.0)
    question = Question(workload, Sla(ttft_ms=200, itl_ms=40), Limits(gpu_budget=50), (metric,), pareto=False)
    for points, workers in (
        (static.evaluate_agg(table("agg", slow), question).points, (0, 49)),
        (static.evaluate_pools((table("prefill", slow), table("decode", fast)), question).points, (49, 1)),
        (static.evaluate_pools((table("prefill", fast), table("decode", slow)), question).points, (1, 49)),
    ):
        assert (points.prefill_workers[0], points.decode_workers[0]) == workers


def test_a_bound_that_is_not_strict_gates_nothing() -> None:
    assert len(static.evaluate_agg(AGG, ask(sla=Sla(ttft_ms=1, itl_ms=1, strict=False))).points) == 1


def test_refusals_carry_the_numbers_that_were_compared() -> None:
    sla = static.evaluate_pools((PREFILL, DECODE), ask(sla=Sla(ttft_ms=50, itl_ms=12.5)))
    assert sla.refusals[0].detail == "least TTFT 100 ms > 50 ms, least TPOT 20 ms > 12.5 ms"
    e2e = static.evaluate_agg(AGG, ask(sla=Sla(e2e_ms=279)))
    assert e2e.refusals[0].detail == "least e2e 280 ms > 279 ms"
    close = static.evaluate_agg(AGG, ask(sla=Sla(e2e_ms=279.99999)))
    assert close.refusals[0].detail == "least e2e 280.0 ms > 279.99999 ms"
    load = static.evaluate_agg(AGG, ask(concurrency=33))
    assert load.refusals[0].detail == "33 requests are in flight, 8 GPUs hold at most 32 within the bounds"
    rate = static.evaluate_pools((PREFILL, DECODE), ask(request_rate=41))
    assert rate.refusals[0].detail == "41 requests/s are asked for, 8 GPUs serve at most 40 within the bounds"
    wide = table("agg", {16: [(1, 1.0, 1.0, 1.0)]})
    assert static.evaluate_agg(wide, ask()).refusals[0].detail == (
        "one worker of each role takes 16 GPUs, the budget is 8"
    )
    odd = table("agg", {3: [(1, 1.0, 1.0, 1.0)]})
    seven = Question(SATURATED, Sla(), Limits(8, 7), ("throughput",), pareto=False)
    assert static.evaluate_agg(odd, seven).refusals[0].detail == (
        "no counts of workers of 3 GPUs make at least 7 (hardware.gpu.minBudget) and at most 8 GPUs (the budget)"
    )


def test_a_strict_bound_holds_for_the_wait_of_a_fixed_concurrency() -> None:
    """28 requests, each 280 ms without a wait; a worker prefills 10/s. Within a TTFT of 1 s they may stay 1.18 s."""
    wide = table("decode", {1: [(64, 100.0, 0.0, 20.0)]})
    found = static.evaluate_pools((PREFILL, wide), ask("minGpus", Sla(ttft_ms=1000, itl_ms=20), concurrency=28)).points
    assert (found.prefill_workers.tolist(), found.decode_workers.tolist(), found.rate.tolist()) == ([3], [1], [30.0])
    assert found.ttft_ms[0] == pytest.approx(100 + 28_000 / 30 - 280)
    free = static.evaluate_pools((PREFILL, wide), ask("minGpus", concurrency=28)).points
    assert (free.prefill_workers.tolist(), free.rate.tolist()) == ([1], [10.0])
    assert free.ttft_ms[0] == pytest.approx(100 + 2800 - 280)
    least = static.evaluate_pools((PREFILL, wide), ask("ttft", concurrency=28)).points
    # 70/s keep each for 400 ms, of which 280 are its latency
    assert (least.prefill_workers[0], least.ttft_ms[0]) == (7, 220.0)


def test_a_concurrency_that_would_wait_beyond_the_bounds_is_refused_with_the_rate() -> None:
    wide = table("decode", {1: [(64, 100.0, 0.0, 20.0)]})
    found = static.evaluate_pools((PREFILL, wide), ask(sla=Sla(ttft_ms=100, itl_ms=20), concurrency=28))
    assert found.refusals[0].reason == "load_constraint"
    assert found.refusals[0].detail == (
        "28 requests in flight must be served at 100 requests/s at least, else they wait beyond the bounds; "
        "8 GPUs serve at most 70 within the bounds"
    )


def test_bounds_that_no_one_row_meets_together_are_told_so() -> None:
    """Aggregated rows have both latencies: small batches decode fast, large passes prefill fast."""
    rows = table("agg", {1: [(1, 5.0, 100.0, 30.0), (2, 5.0, 200.0, 10.0)]})
    found = static.evaluate_agg(rows, ask(sla=Sla(ttft_ms=150, itl_ms=20)))
    assert found.refusals[0].detail == "least TTFT with a TPOT within 20 ms is 200 ms > 150 ms"


BROKEN = [float("nan"), float("inf"), 0.0, -1.0]


@pytest.mark.parametrize("value", BROKEN)
@pytest.mark.parametrize("column", [1, 2, 3])
@pytest.mark.parametrize("metric", METRICS)
def test_a_number_that_is_no_positive_finite_one_never_ranks(value: float, column: int, metric: Metric) -> None:
    broken = [4, 10.0, 100.0, 20.0]
    broken[column] = value
    row: synthetic.Row = (int(broken[0]), broken[1], broken[2], broken[3])
    alone = static.evaluate_agg(table("agg", {1: [row]}), ask(metric))
    assert len(alone.points) == 0
    assert [(r.status, r.reason, r.deployments) for r in alone.refusals] == [("failed", "invalid_metrics", 8)]
    beside = static.evaluate_agg(table("agg", {1: [row, (4, 10.0, 100.0, 20.0)]}), ask(metric))
    assert set(beside.points.decode_row.tolist()) == {1}
    assert [(r.status, r.reason, r.deployments) for r in beside.refusals] == [("failed", "invalid_metrics", 0)]
    assert "1 of 2 rows" in beside.refusals[0].detail


@pytest.mark.parametrize("value", BROKEN)
@pytest.mark.parametrize("metric", METRICS)
def test_the_same_holds_for_either_role(value: float, metric: Metric) -> None:
    for prefill, decode in (
        (table("prefill", {1: [(1, value, 100.0, 0.0)]}), DECODE),
        (table("prefill", {1: [(1, 10.0, value, 0.0)]}), DECODE),
        (PREFILL, table("decode", {1: [(4, 10.0, 0.0, value)]})),
        (PREFILL, table("decode", {1: [(4, value, 0.0, 20.0)]})),
    ):
        found = static.evaluate_pools((prefill, decode), ask(metric))
        assert len(found.points) == 0
        assert [(r.status, r.reason) for r in found.refusals] == [("failed", "invalid_metrics")]


def test_with_one_output_token_decoding_never_binds() -> None:
    decode = table("decode", {1: [(4, float("inf"), 0.0, 0.0)]})
    one = Question(Workload(isl=100, osl=1, saturated=True), Sla(), Limits(gpu_budget=8), ("throughput",), pareto=False)
    points = static.evaluate_pools((PREFILL, decode), one).points
    assert (points.prefill_workers[0], points.decode_workers[0], points.rate[0]) == (7, 1, 70.0)


@pytest.mark.parametrize(
    ("chosen", "goal"),
    [
        (("throughputPerGpu", "throughputPerUser"), "rate_per_gpu"),
        (("throughputPerGpu", "throughputPerCost"), "rate_per_gpu"),
        (("throughput", "ttft"), "rate"),
        (("minGpus", "ttft"), "fewest_gpus"),
        (("ttft", "throughputPerUser"), "fewest_gpus"),
        (("throughput", "throughputPerGpu"), None),
        (("minGpus", "throughputPerGpu", "ttft"), None),
    ],
)
def test_counts_of_a_front(chosen: tuple[Metric, ...], goal: str | None) -> None:
    assert Question(SATURATED, Sla(), Limits(8), chosen, pareto=True).goal == goal


@pytest.mark.parametrize(
    ("chosen", "goal"),
    [(("ttft", "throughputPerUser"), "rate"), (("throughputPerGpu", "ttft"), None), (("throughput", "ttft"), "rate")],
)
def test_counts_of_a_front_under_a_fixed_concurrency(chosen: tuple[Metric, ...], goal: str | None) -> None:
    """The TTFT holds the wait, which falls as the rate grows."""
    workload = Workload(isl=100, osl=OSL, concurrency=4)
    assert Question(workload, Sla(), Limits(8), chosen, pareto=True).goal == goal


def test_nothing_to_pair_is_nothing_found() -> None:
    empty = table("decode", {})
    found = static.evaluate_pools((PREFILL, empty), ask())
    assert (len(found.points), found.refusals) == (0, ())
    assert len(static.evaluate_agg(table("agg", {}), ask("throughput")).points) == 0
