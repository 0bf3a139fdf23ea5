"""Whole searches equal the slow, obvious one over every shape, row and worker count."""

from contextlib import suppress
from random import Random
from typing import Any

import pytest
from dgdr_api.candidate import Candidate
from dgdr_api.defaults import run_spec
from dgdr_api.errors import InvalidRequest
from dgdr_api.request import RequestSpec
from dgdr_job.search import static

from tests.job.search.oracle import LOWER_IS_BETTER, Oracle, Served, Split, closely, front, pick
from tests.job.search.runs import IMAGES, Events, search
from tests.job.search.silicon import DrawnCatalog, DrawnSilicon, split_of

METRICS = ("throughput", "throughputPerGpu", "throughputPerCost", "throughputPerUser", "ttft", "e2eLatency", "minGpus")
SKUS = ("h100_sxm", "h200_sxm")
PRICES = ((2.0, 2.0), (1.0, 3.0), (2.5, 0.5), (1.0, 1.25))
Name = tuple[tuple[str, Split, int, int, int | None], ...]
CASES = 30
"""Questions of one test, times the number of tests."""


def drawn_load(draw: Random, *, pareto: bool, needed: bool) -> dict[str, Any]:
    loads: list[dict[str, Any]] = [
        {"concurrency": draw.choice([1, 2, 3, 5, 8, 13])},
        {"requestRate": draw.choice([0.5, 2.0, 10.0, 30.0, 60.0])},
        {"kvLoadRatio": draw.choice([0.05, 0.29, 0.5, 0.7, 1.0, 1.5])},
    ]
    if pareto:
        loads.append({"kvLoadRatioRange": {"min": draw.choice([0.05, 0.3]), "max": draw.choice([0.4, 1.2])}})
    if not needed:
        loads.append({"saturated": True})
    return draw.choice(loads)


def drawn_sla(draw: Random, *, needed: bool) -> dict[str, Any] | None:
    # 1.8 * 1.1 * 12.5 = 24.75 and its likes are TTFTs that rows have exactly
    ttft = draw.choice([24.75, 39.6, 49.5, 66.0, 100.0, 300.0])
    itl = draw.choice([2.16, 2.7, 5.4, 8.1, 10.8, 20.0])
    bounds = draw.choice([{"ttftMs": ttft, "itlMs": itl}, {"e2eMs": draw.choice([60.0, 120.0, 250.0, 500.0])}])
    return {**bounds, "strict": draw.random() < 0.75} if needed or draw.random() < 0.6 else None


def drawn_objective(draw: Random, osl: int, *, pareto: bool) -> dict[str, Any]:
    metrics = [metric for metric in METRICS if osl > 1 or metric != "throughputPerUser"]
    chosen = draw.sample(metrics, draw.choice([2, 2, 3, 4]) if pareto else 1)
    objective: dict[str, Any] = (
        {"mode": "pareto", "metrics": chosen} if pareto else {"mode": "optimize", "metric": chosen[0]}
    )
    sla = drawn_sla(draw, needed="minGpus" in chosen)
    if sla:
        objective["sla"] = sla
    if "throughputPerCost" in chosen:
        objective["gpuHourCost"] = dict(zip(SKUS, draw.choice(PRICES), strict=True))
    return objective


def drawn_gpus(draw: Random, topologies: list[str]) -> dict[str, Any]:
    budget = draw.randint(2, 11)
    gpu: dict[str, Any] = {"sku": draw.choice(SKUS), "budget": budget}
    if "disagg" in topologies:
        gpu |= draw.choice([{}, {"prefillSku": draw.choice(SKUS)}, {"decodeSku": draw.choice(SKUS)}])
    if draw.random() < 0.5:
        gpu["minBudget"] = draw.randint(1, budget)
    if draw.random() < 0.4:
        used = {gpu["sku"], *(gpu[name] for name in ("prefillSku", "decodeSku") if name in gpu)}
        if topologies == ["disagg"] and {"prefillSku", "decodeSku"} <= gpu.keys():
            used.remove(gpu["sku"])
        gpu["budgetBySku"] = {sku: draw.randint(1, budget) for sku in sorted(used)}
    return gpu


def drawn_parameters(draw: Random, topologies: list[str]) -> dict[str, Any]:
    space: dict[str, Any] = {"gpus_per_worker": draw.choice([[1], [1, 2], [1, 2, 4], [2, 1], [1, 3], [2]])}
    lists = {
        "decode_max_num_batched_tokens": [[2, 8192], [3], [4096, 8]],
        "agg_max_num_batched_tokens": [[1024], [700, 8192], [300, 150]],
        "decode_max_num_seqs": [[1], [2, 4]],
    }
    space |= {name: draw.choice(values) for name, values in lists.items() if draw.random() < 0.2}
    caps = ("max_prefill_workers", "max_decode_workers", "max_prefill_gpus", "max_decode_gpus")
    space |= {name: draw.randint(1, 5) for name in caps if draw.random() < 0.25 and "disagg" in topologies}
    batches = {"prefill_batches": draw.choice([[1, 2], [2], [1, 4]])}
    return {"search_space": space, **({"rate_matching": batches} if draw.random() < 0.3 else {})}


def drawn_request(seed: int, *, pareto: bool) -> dict[str, Any]:
    """A request with every field that the static search weighs."""
    draw = Random(seed)  # noqa: S311 - test data
    osl = draw.choice([1, 2, 10, 11, 64])
    objective = drawn_objective(draw, osl, pareto=pareto)
    topologies = draw.choice([["agg"], ["disagg"], ["disagg"], ["agg", "disagg"]])
    backend = draw.choice(["vllm", "vllm", "sglang"])
    pins = {"performanceDataVersion": {"vllm": "0.24.0"}} if backend == "vllm" else {}
    longest = {"maxSequenceLength": 1200} if draw.random() < 0.2 else {}
    needed = "minGpus" in objective.get("metrics", [objective.get("metric")])
    load = {"isl": draw.choice([100, 333, 1000]), "osl": osl} | drawn_load(draw, pareto=pareto, needed=needed)
    return {
        "modelRef": {"name": "Qwen/Qwen3-32B"},
        "backends": [backend],
        "runtime": {"image": IMAGES[backend], **pins},
        "hardware": {"gpu": drawn_gpus(draw, topologies)},
        "workload": {"static": load} | longest,
        "objective": objective,
        "search": {"fidelity": "static", "topologies": topologies, "parameters": drawn_parameters(draw, topologies)},
        "recommendation": {"maxCandidates": 50},
    }


def both(seed: int, *, pareto: bool = False) -> tuple[dict[str, Any], Events | None, list[Served]]:
    """A drawn request, what the engine tells of it, and every deployment that the oracle finds.

    Limits that contradict each other are refused before a search: nothing is told, and there is no deployment.
    """
    request = drawn_request(seed, pareto=pareto)
    every = list(Oracle(request, drawn_silicon(seed)).served())
    told = None
    with suppress(InvalidRequest):
        told = searched(request, seed)
    assert told is not None or not every, seed
    return request, told, every


def searched(request: dict[str, Any], seed: int) -> Events:
    """What the engine tells of a request."""
    return search(run_spec(RequestSpec.model_validate(request)), DrawnCatalog(drawn_silicon(seed)))


def drawn_silicon(seed: int) -> DrawnSilicon:
    return DrawnSilicon(seed, is_moe=pick(seed, ("moe",), (False, False, True)))


@pytest.mark.parametrize("part", range(6))
def test_the_best_deployment_is_the_best_of_all(part: int) -> None:
    found = 0
    for seed in range(part * CASES, (part + 1) * CASES):
        request, told, every = both(seed)
        if told is None:
            continue
        assert bool(told.reserve) == bool(every), (seed, told.completed.message)
        if not every:
            continue
        found += 1
        first, metric = told.reserve[0].evaluation, request["objective"]["metric"]
        best = best_of(every, metric)
        assert told.completed.proven_best
        assert closely(first.score, best.score(metric)), (seed, first.score, best)
        assert first.used_gpus == best.gpus, (seed, best)
        if metric == "minGpus":
            assert closely(first.metrics["e2eMs"], best.e2e), (seed, best)
        if metric != "minGpus" or not best.late:
            assert closely(first.metrics["requestThroughputPerS"], best.rate), (seed, best)
    assert found > CASES / 3


@pytest.mark.parametrize("part", range(2))
@pytest.mark.parametrize(("name", "most"), [("MOST_COUNTS", 0), ("MOST_POINTS", 2)])
def test_what_is_left_out_beyond_a_bound_is_not_the_best(
    part: int, name: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(static, name, most)
    for seed in range(4000 + part * CASES, 4000 + (part + 1) * CASES):
        request, told, every = both(seed)
        if told is None:
            continue
        assert bool(told.reserve) == bool(every), (seed, told.completed.message)
        if every:
            metric = request["objective"]["metric"]
            first, best = told.reserve[0].evaluation, best_of(every, metric)
            assert closely(first.score, best.score(metric)), (seed, first.score, best)
            assert first.used_gpus == best.gpus, (seed, best)


def best_of(every: list[Served], metric: str) -> Served:
    """What ranks first, one key after another; what differs by rounding only is equal."""
    for key in range(len(every[0].rank(metric))):
        least = min(each.rank(metric)[key] for each in every)
        every = [each for each in every if closely(each.rank(metric)[key], least)]
    return every[0]


@pytest.mark.parametrize("part", range(4))
def test_the_front_is_that_of_all_deployments(part: int) -> None:
    for seed in range(1000 + part * CASES, 1000 + (part + 1) * CASES):
        request, told, every = both(seed, pareto=True)
        if told is None:
            continue
        metrics = request["objective"]["metrics"]
        expected = front({tuple(rounded(each.score(metric)) for metric in metrics) for each in every})
        signs = [-1 if metric in LOWER_IS_BETTER else 1 for metric in metrics]
        found = {
            tuple(
                rounded(sign * each.evaluation.objectives[metric]) for sign, metric in zip(signs, metrics, strict=True)
            )
            for each in told.reserve
        }
        assert found == expected, (seed, found ^ expected)
        assert told.completed.pareto_front == len(told.reserve) == len(found)


def rounded(value: float) -> float:
    return float(f"{value:.9g}")


@pytest.mark.parametrize("part", range(2))
def test_every_candidate_is_a_deployment_that_does_what_is_said(part: int) -> None:
    """Each candidate of the reserve is one that the oracle knows, with the same numbers."""
    for seed in range(2000 + part * CASES, 2000 + (part + 1) * CASES):
        _, told, every = both(seed)
        if told is None:
            continue
        known: dict[Name, Served] = {
            tuple((r.sku, r.split, n, r.batch, r.batched_tokens) for r, n in zip(e.rows, e.workers, strict=True)): e
            for e in every
        }
        for each in told.reserve:
            mine, values = known[deployed(each.candidate)], each.evaluation.metrics
            assert each.evaluation.used_gpus == mine.gpus, seed
            assert closely(values["requestThroughputPerS"], mine.rate), seed
            assert closely(values["ttftMs"], mine.ttft), seed
            assert closely(values["tpotMs"], mine.tpot), seed
            load = each.replay_spec.workload.static
            assert load is not None
            assert load.concurrency == mine.concurrency, seed
            for role, row in zip(each.replay_spec.roles, mine.rows, strict=True):
                assert role.engine.num_gpu_blocks == row.kv_tokens // role.engine.block_size, seed


def deployed(candidate: Candidate) -> Name:
    """The oracle's name of a candidate: type, split, workers, batch and token budget of each role."""
    return tuple(
        (r.sku, split_of(r.shape), r.workers, r.engine.max_num_seqs, r.engine.max_num_batched_tokens)
        for r in candidate.roles
    )


@pytest.mark.parametrize("part", range(2))
def test_bounds_at_the_values_that_the_best_has_keep_it(part: int) -> None:
    """What a report says can be asked for: bounds are inclusive, of the wait of a fixed concurrency too."""
    for seed in range(3000 + part * CASES, 3000 + (part + 1) * CASES):
        request, told, _ = both(seed)
        if told is None:
            continue
        if not told.reserve:
            continue
        first = told.reserve[0].evaluation
        bounds: list[dict[str, Any]] = [{"e2eMs": first.metrics["e2eMs"]}]
        if first.metrics["tpotMs"] > 0:
            bounds.append({"ttftMs": first.metrics["ttftMs"], "itlMs": first.metrics["tpotMs"]})
        for sla in bounds:
            asked = {**request, "objective": {**request["objective"], "sla": sla}}
            again = searched(asked, seed)
            assert again.reserve, (seed, sla, again.completed.message)
            assert closely(again.reserve[0].evaluation.score, first.score), (seed, sla)
