"""Whole searches equal the slow, obvious one over every shape, row and worker count."""

from collections import Counter
from random import Random
from typing import Any

import pytest
from dgdr_api.defaults import run_spec
from dgdr_api.request import RequestSpec

from tests.job.search.oracle import Oracle, Served, closely, front, pick
from tests.job.search.runs import IMAGES, Events, search
from tests.job.search.silicon import DrawnCatalog, DrawnSilicon, split_of

METRICS = ("throughput", "throughputPerGpu", "throughputPerCost", "throughputPerUser", "ttft", "e2eLatency", "minGpus")
SKUS = ("h100_sxm", "h200_sxm")
CASES = 40
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


def drawn_request(seed: int, *, pareto: bool) -> dict[str, Any]:
    """A request with every field that the static search weighs."""
    draw = Random(seed)  # noqa: S311 - test data
    osl = draw.choice([1, 2, 10, 11, 64])
    metrics = [metric for metric in METRICS if osl > 1 or metric != "throughputPerUser"]
    objective: dict[str, Any] = (
        {"mode": "pareto", "metrics": draw.sample(metrics, draw.choice([2, 2, 3, 4]))}
        if pareto
        else {"mode": "optimize", "metric": draw.choice(metrics)}
    )
    chosen = objective.get("metrics", [objective.get("metric")])
    sla = drawn_sla(draw, needed="minGpus" in chosen)
    if sla:
        objective["sla"] = sla
    if "throughputPerCost" in chosen:
        objective["gpuHourCost"] = dict(zip(SKUS, draw.choice([(2.0, 2.0), (1.0, 3.0), (2.5, 0.5), (1.0, 1.25)])))  # noqa: B905
    budget = draw.randint(2, 11)
    gpu: dict[str, Any] = {"sku": draw.choice(SKUS), "budget": budget}
    topologies = draw.choice([["agg"], ["disagg"], ["disagg"], ["agg", "disagg"]])
    if "disagg" in topologies:
        gpu |= draw.choice([{}, {}, {"prefillSku": draw.choice(SKUS)}, {"decodeSku": draw.choice(SKUS)}])
    used = {gpu["sku"], *(gpu[name] for name in ("prefillSku", "decodeSku") if name in gpu)}
    if draw.random() < 0.4:
        gpu["minBudget"] = draw.randint(1, budget)
    if draw.random() < 0.4:
        gpu["budgetBySku"] = {sku: draw.randint(1, budget) for sku in sorted(used)}
    space: dict[str, Any] = {"gpus_per_worker": draw.choice([[1], [1, 2], [1, 2, 4], [2, 1], [1, 3], [2]])}
    for name in ("max_prefill_workers", "max_decode_workers", "max_prefill_gpus", "max_decode_gpus"):
        if draw.random() < 0.15:
            space[name] = draw.randint(1, 5)
    if draw.random() < 0.2:
        space["decode_max_num_batched_tokens"] = draw.choice([[2, 8192], [3], [4096, 8]])
    if draw.random() < 0.2:
        space["agg_max_num_batched_tokens"] = draw.choice([[1024], [700, 8192], [300, 150]])
    if draw.random() < 0.15:
        space["decode_max_num_seqs"] = draw.choice([[1], [2, 4]])
    parameters: dict[str, Any] = {"search_space": space}
    if draw.random() < 0.3:
        parameters["rate_matching"] = {"prefill_batches": draw.choice([[1, 2], [2], [1, 4]])}
    backend = draw.choice(["vllm", "vllm", "sglang"])
    pins = {"performanceDataVersion": {"vllm": "0.24.0"}} if backend == "vllm" else {}
    longest = {"maxSequenceLength": 1200} if draw.random() < 0.2 else {}
    return {
        "modelRef": {"name": "Qwen/Qwen3-32B"},
        "backends": [backend],
        "runtime": {"image": IMAGES[backend], **pins},
        "hardware": {"gpu": gpu},
        "workload": {"static": {"isl": draw.choice([100, 333, 1000]), "osl": osl} | drawn_load(draw, pareto=pareto, needed="minGpus" in chosen)}
        | longest,
        "objective": objective,
        "search": {"fidelity": "static", "topologies": topologies, "parameters": parameters},
        "recommendation": {"maxCandidates": 50},
    }


def both(seed: int, *, pareto: bool = False) -> tuple[dict[str, Any], Events, list[Served]]:
    """A drawn request, what the engine tells of it, and every deployment that the oracle finds."""
    request = drawn_request(seed, pareto=pareto)
    silicon = DrawnSilicon(seed, is_moe=pick(seed, ("moe",), (False, False, True)))
    told = search(run_spec(RequestSpec.model_validate(request)), DrawnCatalog(silicon))
    return request, told, list(Oracle(request, silicon).served())


@pytest.mark.parametrize("part", range(6))
def test_the_best_deployment_is_the_best_of_all(part: int) -> None:
    outcomes: Counter[str] = Counter()
    for seed in range(part * CASES, (part + 1) * CASES):
        request, told, every = both(seed)
        metric = request["objective"]["metric"]
        outcomes[told.completed.outcome] += 1
        assert bool(told.reserve) == bool(every), (seed, told.completed.message)
        if not every:
            continue
        assert told.completed.proven_best
        # scores that differ by rounding only are ties, which fewer GPUs decide
        best = max(each.score(metric) for each in every)
        tied = [each for each in every if closely(each.score(metric), best)]
        fewest = min(each.gpus for each in tied)
        rank = min(each.rank(metric)[2:] for each in tied if each.gpus == fewest)
        first = told.reserve[0].evaluation
        assert closely(first.score, best), (seed, first.score, best)
        assert first.used_gpus == fewest, (seed, first.score)
        if metric != "minGpus":
            assert closely(first.metrics["requestThroughputPerS"], -rank[0]), seed
        elif rank[0] < 0:
            assert closely(first.metrics["requestThroughputPerS"], -rank[0]), seed
        if metric == "minGpus":
            latencies = [each.e2e for each in tied if each.gpus == fewest and closely(each.rank(metric)[2], rank[0])]
            assert closely(first.metrics["e2eMs"], min(latencies)), seed
    assert outcomes["SearchSucceeded"] > CASES / 3


@pytest.mark.parametrize("part", range(4))
def test_the_front_is_that_of_all_deployments(part: int) -> None:
    for seed in range(1000 + part * CASES, 1000 + (part + 1) * CASES):
        request, told, every = both(seed, pareto=True)
        metrics = request["objective"]["metrics"]
        expected = front({tuple(float(f"{each.score(m):.9g}") for m in metrics) for each in every})
        found = {
            tuple(
                float(f"{-value if m in ('ttft', 'e2eLatency', 'minGpus') else value:.9g}")
                for m, value in ((m, each.evaluation.objectives[m]) for m in metrics)
            )
            for each in told.reserve
        }
        assert found == expected, (seed, found ^ expected)
        assert told.completed.pareto_front == len(told.reserve)


@pytest.mark.parametrize("part", range(2))
def test_every_candidate_is_a_deployment_that_does_what_is_said(part: int) -> None:
    """Each candidate of the reserve is one that the oracle knows, with the same numbers."""
    for seed in range(2000 + part * CASES, 2000 + (part + 1) * CASES):
        _, told, every = both(seed)
        known = {
            tuple((r.sku, r.split, n, r.batch, r.batched_tokens) for r, n in zip(e.rows, e.workers, strict=True)): e
            for e in every
        }
        for each in told.reserve:
            name = tuple(
                (r.sku, split_of(r.shape), r.workers, r.engine.max_num_seqs, r.engine.max_num_batched_tokens)
                for r in each.candidate.roles
            )
            assert name in known, (seed, name)
            mine, values = known[name], each.evaluation.metrics
            assert closely(values["requestThroughputPerS"], mine.rate), seed
            assert closely(values["ttftMs"], mine.ttft), seed
            assert closely(values["tpotMs"], mine.tpot), seed
            assert each.evaluation.used_gpus == mine.gpus, seed
            for role, row in zip(each.replay_spec.roles, mine.rows, strict=True):
                block = {"vllm": 64, "sglang": 1}[role.backend]
                assert role.engine.num_gpu_blocks == row.kv_tokens // block, seed
