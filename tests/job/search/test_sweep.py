"""Whole searches on real data: what is found, what is refused, what is told."""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from dgdr_api.candidate import EvaluatedCandidate
from dgdr_api.expressible import RoleForm, shape_problems
from dgdr_job.catalog.cache import DiskCache
from dgdr_job.catalog.catalog import Catalog
from dgdr_job.catalog.errors import Reason, Unsupported
from dgdr_job.catalog.identity import PerfIdentity
from dgdr_job.matching.match import best_deployments
from dgdr_job.matching.tuples import Pool, Tuples
from dgdr_job.search import refused, static
from dgdr_job.search.branches import plan_branch
from dgdr_job.search.mapper import search_config
from dgdr_job.search.resolved import version_chains
from dgdr_job.search.role_rows import RoleInput
from dgdr_job.search.role_table import RoleTable, role_table
from dgdr_job.space.limits import Limits

from tests.job.search.runs import Events, deployment, run, search, unbound

DISAGG: dict[str, Any] = {"search": {"topologies": ["disagg"]}}
GPT_OSS = {"name": "openai/gpt-oss-120b"}
DEEPSEEK = {"name": "deepseek-ai/DeepSeek-R1"}


@pytest.fixture(scope="module")
def qwen(catalog: Catalog) -> Events:
    return search(run(), catalog)


def load(**how: Any) -> dict[str, Any]:
    return {"static": {"saturated": None, **how}}


def tables_of(catalog: Catalog) -> tuple[RoleTable, ...]:
    spec = run(**DISAGG)
    chains = version_chains(spec)
    config = search_config(spec, {"vllm": "0.24.0"})
    branch = plan_branch(catalog, config, "vllm", "disagg", chains["vllm"])
    return tuple(
        role_table(
            catalog,
            RoleInput(role.kind, role.identity, role.gated.kept, role.knobs, branch.max_sequence_tokens),
            config.workload,
            config.rate_matching,
        )
        for role in branch.roles
    )


class TestQwenOnSixteenGpus:
    def test_the_best_disaggregated_deployment(self, catalog: Catalog) -> None:
        best = search(run(**DISAGG), catalog).reserve[0]
        assert [(kind, workers, label) for kind, workers, label, _ in deployment(best)] == [
            ("prefill", 11, "tp1"),
            ("decode", 2, "tp2"),
        ]
        assert (best.evaluation.used_gpus, round(best.evaluation.score, 2)) == (15, 654.47)

    def test_the_peer_s_best_row(self, catalog: Catalog) -> None:
        """12 prefill tp1 b1 + 2 decode tp2 b216 serves 638.87 tok/s/GPU; its counts are not the best of these rows."""
        prefill, decode = tables_of(catalog)
        p = [k for k in range(len(prefill)) if (prefill.gpus[k], prefill.batch[k]) == (1, 1)]
        d = [k for k in range(len(decode)) if (decode.gpus[k], decode.batch[k]) == (2, 216)]
        assert (len(p), len(d)) == (1, 1)
        served = min(12 * float(prefill.rate[p[0]]), 2 * float(decode.rate[d[0]]))
        assert served * 300 / 16 == pytest.approx(638.877, abs=0.001)
        pairs = Tuples(
            (Pool("prefill", prefill.rate[p], prefill.gpus[p]), Pool("decode", decode.rate[d], decode.gpus[d])),
            decode.rate[d] * float("inf"),
            decode.rate[d] * 0,
        )
        best = best_deployments(pairs, Limits(gpu_budget=16), "rate_per_gpu")
        assert (best.prefill_workers[0], best.decode_workers[0]) == (11, 2)
        assert round(float(best.rate[0]) * 300 / 15, 2) == 654.47

    def test_pools_and_counters(self, qwen: Events) -> None:
        assert {plan.name: plan.pool for plan in qwen.resolved.branches} == {"vllm/agg": 31, "vllm/disagg": 367}
        counters = qwen.completed.counters
        assert counters.scheduled == 398
        assert counters.remaining == 0
        assert [each.counters.remaining for each in qwen.rounds] == [367, 0]
        assert (qwen.completed.outcome, qwen.completed.proven_best) == ("SearchSucceeded", True)

    def test_every_candidate_keeps_bounds_and_budget(self, qwen: Events) -> None:
        assert len(qwen.reserve) == 20
        for each in qwen.reserve:
            assert each.evaluation.used_gpus == each.candidate.used_gpus <= 16
            assert each.evaluation.metrics["ttftMs"] <= 1000
            assert each.evaluation.metrics["tpotMs"] <= 40
            for role in each.candidate.roles:
                assert role.engine.max_sequence_length == 3300
                assert role.engine.num_gpu_blocks is not None
                assert role.engine.num_gpu_blocks * role.engine.block_size > 3300

    def test_the_reserve_is_in_order(self, qwen: Events) -> None:
        order = [(-each.evaluation.score, each.evaluation.used_gpus) for each in qwen.reserve]
        for before, after in pairwise(order):
            tied = abs(before[0] - after[0]) <= 1e-12 * abs(before[0])
            assert before[1] <= after[1] if tied else before[0] < after[0]

    def test_price_changes_no_order_on_one_sku(self, catalog: Catalog, qwen: Events) -> None:
        priced = search(run(objective={"metric": "throughputPerCost", "gpuHourCost": {"H200": 2.5}}), catalog)
        assert [deployment(each) for each in priced.reserve] == [deployment(each) for each in qwen.reserve]
        ratio = priced.reserve[0].evaluation.score / qwen.reserve[0].evaluation.score
        assert ratio == pytest.approx(3600 / 2.5)


def test_a_branch_lists_the_first_points_and_the_best_of_each_combination_of_shapes(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = search(run(), catalog)
    monkeypatch.setattr(static, "MOST_POINTS", 7)
    monkeypatch.setattr(refused, "MOST_POINTS", 7)
    told = search(run(), catalog)
    check_counters(told)
    assert any("ranks before it" in row["detail"] for row in told.rows)
    feasible, every = (
        [row["id"] for row in each.rows if row["status"] == "feasible" and row["branch"] == "vllm/disagg"]
        for each in (told, whole)
    )
    assert 7 < len(feasible) < len(every)
    assert feasible[:7] == every[:7]
    assert shapes_of(told) == shapes_of(whole)
    assert deployment(told.reserve[0]) == deployment(whole.reserve[0])


def shapes_of(told: Events) -> set[str]:
    """The combinations of shapes that have a feasible point."""
    return {re.sub(r"\d+ x | b\d+", "", row["summary"]) for row in told.rows if row["status"] == "feasible"}


def check_counters(told: Events) -> None:
    """Scheduled deployments are all accounted for, and the rows say the same."""
    counters = told.completed.counters
    assert counters.scheduled == (
        counters.feasible
        + counters.infeasible
        + counters.unsupported
        + counters.failed
        + counters.timed_out
        + counters.pruned
        + counters.remaining
    )
    assert counters.scheduled == sum(plan.pool for plan in told.resolved.branches)
    ids = [row["id"] for row in told.rows]
    assert len(set(ids)) == len(ids)
    for row in told.rows:
        assert (row["status"] in ("feasible", "pruned")) == (row["reason"] is None)
        assert row["status"] == "feasible" or row["detail"]
    pruned = [row["detail"] for row in told.rows if row["status"] == "pruned"]
    assert sum(int(detail.split(" of ")[0]) for detail in pruned) == counters.pruned
    told_feasible = {row["id"] for row in told.rows if row["status"] == "feasible"}
    assert set(told.candidates) <= told_feasible


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"modelRef": GPT_OSS, "hardware": {"gpu": {"budget": 8}}},
        {"modelRef": {"name": "Qwen/Qwen3-235B-A22B-FP8"}},
        {"modelRef": DEEPSEEK, "hardware": {"gpu": {"budget": 32}}},
        {"objective": {"mode": "pareto", "metrics": ["throughput", "minGpus"]}, "workload": load(concurrency=64)},
        {"workload": load(requestRate=20.0)},
        {"hardware": {"gpu": {"minBudget": 16}}},
    ],
    ids=["dense", "moe", "fp8-block", "deepseek", "pareto", "rate", "exactly-16"],
)
def test_every_deployment_is_accounted_for(changes: dict[str, Any], catalog: Catalog) -> None:
    if changes.get("objective"):
        changes = {**changes, "objective": {"mode": "pareto", "metrics": ["throughput", "minGpus"]}}
    told = search(run(**changes), catalog)
    check_counters(told)
    budget = changes.get("hardware", {}).get("gpu", {}).get("budget", 16)
    least = changes.get("hardware", {}).get("gpu", {}).get("minBudget", 1)
    for row in told.rows:
        if row["status"] == "feasible":
            assert least <= row["used_gpus"] <= budget


def test_shapes_that_never_were_scheduled_have_rows_with_reasons(catalog: Catalog) -> None:
    rows = search(run(modelRef={"name": "Qwen/Qwen3-235B-A22B-FP8"}), catalog).rows
    agg = {row["summary"]: row for row in rows if row["branch"] == "vllm/agg" and row["status"] != "feasible"}
    assert (agg["agg tp1"]["status"], agg["agg tp1"]["reason"]) == ("infeasible", "kv_capacity")
    assert agg["agg tp1"]["detail"] == ("tp1: 0 KV tokens per rank, more than 3,300 are needed for the longest request")
    assert (agg["agg tp8-moetp8"]["status"], agg["agg tp8-moetp8"]["reason"]) == ("infeasible", "backend_topology")
    assert "no multiple of the fp8 block of 128" in agg["agg tp8-moetp8"]["detail"]


class WithoutData(Catalog):
    """No data for two GPUs, and a latency that is no number for four."""

    def recall(self, kind: str, identity: PerfIdentity, inputs: dict[str, Any], *rest: Any) -> Any:
        tp = inputs.get("shape", [0])[0]
        if tp == 2:
            raise Unsupported(Reason.MISSING_OPERATOR_DATA, "table gemm has no row for tp 2")
        if tp == 4:
            raise Unsupported(Reason.INVALID_DATA, "decode of tp 4 takes nan ms")
        return super().recall(kind, identity, inputs, *rest)


def test_shapes_without_data_are_rows_and_counted(catalog: Catalog) -> None:
    told = search(run(), WithoutData(catalog.cache))
    check_counters(told)
    refused = {row["summary"]: row for row in told.rows if row["branch"] == "vllm/agg" and row["status"] != "feasible"}
    assert (refused["agg tp2"]["status"], refused["agg tp2"]["reason"]) == ("unsupported", "no_samples")
    assert refused["agg tp2"]["detail"] == "MissingOperatorData: table gemm has no row for tp 2 (8 worker counts)"
    assert (refused["agg tp4"]["status"], refused["agg tp4"]["reason"]) == ("failed", "invalid_metrics")
    counters = told.rounds[0].counters
    assert (counters.unsupported, counters.failed) == (8, 4)
    final = told.completed.counters
    in_rows = Counter(
        {
            status: sum(
                int(row["detail"].rsplit("(", 1)[1].split()[0])
                for row in told.rows
                if row["status"] == status and row["detail"].endswith("worker counts)")
            )
            for status in ("unsupported", "failed")
        }
    )
    assert (in_rows["unsupported"], in_rows["failed"]) == (final.unsupported, final.failed)


class TestNothingToFind:
    def test_a_budget_that_no_deployment_fits_names_the_gpus_needed(self, catalog: Catalog) -> None:
        told = search(run(modelRef=DEEPSEEK, hardware={"gpu": {"budget": 4}}), catalog)
        assert told.completed.outcome == "Unsupported"
        assert told.completed.message == (
            "vllm/agg BudgetTooSmall: the smallest agg deployment takes 8 GPUs, hardware.gpu.budget is 4; "
            "vllm/disagg BudgetTooSmall: the smallest disagg deployment takes 16 GPUs, hardware.gpu.budget is 4"
        )
        assert told.candidates == {}

    def test_bounds_that_nothing_meets_show_the_least_latencies(self, catalog: Catalog) -> None:
        told = search(run(objective={"sla": {"ttftMs": 5, "itlMs": 1}}), catalog)
        assert (told.completed.outcome, told.completed.proven_best) == ("NoFeasibleCandidate", False)
        assert "least latencies: vllm/agg TTFT " in told.completed.message
        assert "vllm/disagg TTFT 121.848 ms" in told.completed.message
        assert "sla_constraint: 398 deployments" in told.completed.message
        assert told.completed.counters.infeasible == 398
        assert told.completed.reserve == ()

    def test_an_unknown_model_is_answered_with_near_names(self, catalog: Catalog) -> None:
        told = search(run(modelRef={"name": "Qwen/Qwen3-33B"}), catalog)
        assert told.completed.outcome == "Unsupported"
        assert "vllm/agg, vllm/disagg UnknownModel" in told.completed.message
        assert "did you mean Qwen/Qwen3-32B" in told.completed.message
        assert [each.reason for each in told.resolved.coverage] == ["UnknownModel", "UnknownModel"]

    def test_a_least_budget_that_no_worker_counts_make(self, catalog: Catalog) -> None:
        told = search(
            run(
                hardware={"gpu": {"budget": 15, "minBudget": 15}},
                search={"parameters": {"search_space": {"gpus_per_worker": [4]}}},
            ),
            catalog,
        )
        assert told.completed.outcome == "NoFeasibleCandidate"
        assert "no counts of workers of 4 GPUs make at least 15 (hardware.gpu.minBudget)" in told.completed.message
        assert told.completed.counters.scheduled == 0

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            (
                {"workload": {"static": {"isl": 50_000}}},
                "isl 50,000 + osl 300 = 50,300 tokens, but Qwen/Qwen3-32B takes sequences of at most 40,960 tokens",
            ),
            (
                {"workload": {"static": {"isl": 2**31 - 1}}},
                "isl 2,147,483,647 + osl 300 = 2,147,483,947 tokens, but Qwen/Qwen3-32B takes",
            ),
            ({"workload": {"maxSequenceLength": 40_961}}, "workload.maxSequenceLength = 40,961 tokens, but"),
        ],
    )
    def test_sequences_longer_than_the_model_s_context(
        self, changes: dict[str, Any], message: str, catalog: Catalog
    ) -> None:
        told = search(run(**changes), catalog)
        assert told.completed.outcome == "Unsupported"
        assert message in told.completed.message
        assert [each.reason for each in told.resolved.coverage] == ["UnsupportedFeature"] * 2


class TestLoads:
    def test_one_request_at_a_time(self, catalog: Catalog) -> None:
        best = search(unbound(workload=load(concurrency=1), objective={"metric": "throughput"}), catalog).reserve[0]
        metrics = best.evaluation.metrics
        assert metrics["requestThroughputPerS"] * metrics["e2eMs"] == pytest.approx(1000)

    @pytest.mark.parametrize("concurrency", [7, 64, 1000])
    def test_a_concurrency_is_held_and_never_exceeded(self, concurrency: int, catalog: Catalog) -> None:
        told = search(unbound(workload=load(concurrency=concurrency)), catalog)
        assert told.reserve
        for each in told.reserve:
            last = each.candidate.roles[-1]
            assert last.workers * last.engine.max_num_seqs * last.shape.attention_dp >= concurrency
            in_flight = each.evaluation.metrics["requestThroughputPerS"] * each.evaluation.metrics["e2eMs"] / 1000
            assert in_flight <= concurrency * (1 + 1e-9)

    def test_a_rate_is_served_exactly_with_the_fewest_gpus(self, catalog: Catalog) -> None:
        told = search(run(workload=load(requestRate=20.0), objective={"metric": "minGpus"}), catalog)
        assert {round(each.evaluation.metrics["requestThroughputPerS"], 9) for each in told.reserve} == {20.0}
        gpus = [each.evaluation.used_gpus for each in told.reserve]
        assert gpus == sorted(gpus)
        for before, after in pairwise(told.reserve):
            if before.evaluation.used_gpus == after.evaluation.used_gpus:
                assert before.evaluation.metrics["e2eMs"] <= after.evaluation.metrics["e2eMs"]

    @pytest.mark.parametrize(
        ("how", "text"),
        [
            ({"concurrency": 2**31 - 1}, "2,147,483,647 requests are in flight, 16 GPUs hold at most"),
            ({"requestRate": 1e15}, "1e+15 requests/s are asked for, 16 GPUs serve at most"),
        ],
    )
    def test_a_load_beyond_every_deployment(self, how: dict[str, Any], text: str, catalog: Catalog) -> None:
        told = search(run(workload=load(**how)), catalog)
        assert told.completed.outcome == "NoFeasibleCandidate"
        assert "load_constraint: 398 deployments" in told.completed.message
        assert text in told.completed.message

    def test_one_output_token(self, catalog: Catalog) -> None:
        told = search(unbound(workload={"static": {"osl": 1}}), catalog)
        check_counters(told)
        for each in told.reserve:
            metrics = each.evaluation.metrics
            assert (metrics["tpotMs"], metrics["e2eMs"]) == (0.0, metrics["ttftMs"])
            if each.candidate.topology == "agg":  # Little's law; disaggregated TTFT holds queueing too
                (role,) = each.candidate.roles
                slots = role.workers * role.engine.max_num_seqs * role.shape.attention_dp
                assert metrics["requestThroughputPerS"] * metrics["ttftMs"] / 1000 <= slots * (1 + 1e-9)

    def test_one_input_token(self, catalog: Catalog) -> None:
        told = search(unbound(workload={"static": {"isl": 1}}), catalog)
        check_counters(told)
        assert told.reserve
        for each in told.reserve:
            for role in each.candidate.roles:
                assert role.engine.max_num_batched_tokens >= role.engine.max_num_seqs


def test_a_longer_bound_is_gated_and_rendered(catalog: Catalog) -> None:
    told = search(unbound(workload={"maxSequenceLength": 40_960}), catalog)
    assert told.resolved.limits["maxSequenceLength"] == 40_960
    for each in told.reserve:
        for role in each.candidate.roles:
            assert role.engine.max_sequence_length == 40_960
            assert each.evaluation.memory[role.kind].kv_tokens > 40_960


def test_listed_sequences_bound_the_batch(catalog: Catalog) -> None:
    spec = unbound(search={"parameters": {"search_space": {"decode_max_num_seqs": [32], "agg_max_num_seqs": [16, 8]}}})
    most = {"agg": 16, "prefill": 256, "decode": 32}
    for each in search(spec, catalog).reserve:
        for role in each.candidate.roles:
            assert role.engine.max_num_seqs <= most[role.kind]


class TestSglang:
    def test_its_best_deployments(self, catalog: Catalog) -> None:
        told = search(run("sglang"), catalog)
        assert told.completed.outcome == "SearchSucceeded"
        assert told.completed.counters.scheduled == 398
        disagg = next(each for each in told.reserve if each.candidate.topology == "disagg")
        assert [(kind, workers, label) for kind, workers, label, _ in deployment(disagg)] == [
            ("prefill", 6, "tp1"),
            ("decode", 1, "tp2"),
        ]
        assert round(disagg.evaluation.score, 2) == 614.58
        assert {role.engine.block_size for each in told.reserve for role in each.candidate.roles} == {1}


class TestMixtureOfExperts:
    def test_gpt_oss_on_eight_gpus(self, catalog: Catalog) -> None:
        told = search(run(modelRef=GPT_OSS, hardware={"gpu": {"budget": 8}}), catalog)
        assert {plan.name: plan.pool for plan in told.resolved.branches} == {"vllm/agg": 36, "vllm/disagg": 332}
        for each in told.reserve:
            for role in each.candidate.roles:
                shape = role.shape
                assert shape.moe_tp * shape.moe_ep == shape.tp * shape.attention_dp
                form = RoleForm(
                    backend="vllm",
                    engine_version=role.engine_version,
                    kind=role.kind,
                    shape=shape,
                    is_moe=True,
                    gpus_per_node=8,
                )
                assert shape_problems(form) == []


@pytest.fixture(scope="module")
def front(catalog: Catalog) -> Events:
    return search(run(objective={"mode": "pareto"}), catalog)


class TestFront:
    def test_nothing_dominates_a_published_point(self, front: Events) -> None:
        batches = [each for each in front.data if hasattr(each, "objectives")]
        names = ("throughputPerGpu", "throughputPerUser")
        points = [
            point
            for batch in batches
            for point in zip(*(batch.objectives[name] for name in names), strict=True)
            if None not in point
        ]
        best = {mine for mine in points if not any(a >= mine[0] and b >= mine[1] and (a, b) != mine for a, b in points)}
        assert front.completed.pareto_front == len(best)
        chosen = [tuple(each.evaluation.objectives[name] for name in names) for each in front.reserve]
        assert len(chosen) == len(set(chosen)) == 20
        assert set(chosen) <= best

    def test_a_point_whose_score_changes_with_the_front_is_sent_again(self, catalog: Catalog) -> None:
        """The last one counts: else the knee of the first branch would stay the knee of all."""
        front = search(run(backends=["vllm", "sglang"], objective={"mode": "pareto"}), catalog)
        sent = [each.id for each in front.data if isinstance(each, EvaluatedCandidate)]
        assert len(sent) > len(set(sent))
        names = ("throughputPerGpu", "throughputPerUser")
        values = [[each.evaluation.objectives[name] for name in names] for each in front.reserve]
        low = [min(column) for column in zip(*values, strict=True)]
        high = [max(column) for column in zip(*values, strict=True)]
        for each, (a, b) in zip(front.reserve, values, strict=True):
            scaled = (a - low[0]) / (high[0] - low[0]) * (b - low[1]) / (high[1] - low[1])
            assert each.evaluation.score == pytest.approx(scaled, abs=1e-12)

    def test_the_extremes_come_first_and_then_the_knee(self, front: Events) -> None:
        first, second, third = front.reserve[:3]
        every = front.reserve
        for index, name in ((0, "throughputPerGpu"), (1, "throughputPerUser")):
            assert every[index].evaluation.objectives[name] == max(e.evaluation.objectives[name] for e in every)
        assert (first.evaluation.score, second.evaluation.score) == (0.0, 0.0)
        assert third.evaluation.score == max(each.evaluation.score for each in every) > 0.25
        values = third.evaluation.objectives
        assert f"best throughputPerGpu {values['throughputPerGpu']:.2f}" in front.completed.message

    def test_publication_is_bounded(self, catalog: Catalog) -> None:
        told = search(run(objective={"mode": "pareto"}, recommendation={"maxCandidates": 1}), catalog)
        assert len(told.reserve) == 4


class TestTime:
    """A clock that moves by one second each time it is read."""

    @staticmethod
    def ticking() -> Any:
        now = iter(range(10_000))
        return lambda: float(next(now))

    def test_time_that_is_over_at_once_leaves_everything(self, catalog: Catalog) -> None:
        told = search(run(search={"budget": {"maxDuration": "1ms"}}), catalog, self.ticking())
        assert (told.completed.outcome, told.completed.proven_best) == ("BudgetExhausted", False)
        assert told.completed.counters.remaining == told.completed.counters.scheduled == 398
        assert told.completed.message.startswith("search.budget.maxDuration 1ms ended the search after 0 of 15 shapes")
        assert told.reserve == []

    @pytest.mark.parametrize("seconds", range(1, 19, 2))
    def test_what_is_known_is_kept(self, seconds: int, catalog: Catalog) -> None:
        told = search(run(search={"budget": {"maxDuration": f"{seconds}s"}}), catalog, self.ticking())
        check_counters(told)
        whole = told.completed.counters.remaining == 0
        assert (told.completed.outcome == "SearchSucceeded") == whole
        assert bool(told.reserve) == (told.completed.counters.feasible > 0)
        if seconds >= 3:
            assert told.reserve
        for each in told.reserve:
            assert each.evaluation.used_gpus <= 16

    def test_time_enough_changes_nothing(self, catalog: Catalog, qwen: Events) -> None:
        told = search(run(search={"budget": {"maxDuration": "1h"}}), catalog, self.ticking())
        assert told.completed == qwen.completed


SCRIPT = """
import sys
from pathlib import Path
from dgdr_api.run import RunSpec
from dgdr_job.catalog.cache import DiskCache
from dgdr_job.catalog.catalog import Catalog
from dgdr_job.main import sweep
told = []
sweep(RunSpec.model_validate_json(sys.stdin.read()), told.append, catalog=Catalog(DiskCache(Path(sys.argv[1]))))
print("\\n".join(f"{type(each).__name__} {each.model_dump_json()}" for each in told))
"""


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"objective": {"mode": "pareto"}},
        {"objective": {"metric": "ttft"}, "modelRef": GPT_OSS, "hardware": {"gpu": {"budget": 8}}},
    ],
    ids=["best", "front", "ties"],
)
def test_processes_tell_the_same_bytes(changes: dict[str, Any], catalog: Catalog, tmp_path: Path) -> None:
    """Two processes with different hash seeds, one over an empty cache."""
    spec = run(**changes)
    told = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT, str(cache)],
            input=spec.model_dump_json(by_alias=True, exclude_none=True),
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed, cache in (("1", tmp_path), ("2", tmp_path / "other"))
    ]
    assert told[0] == told[1]
    assert told[0].count("\n") > 20
    here = search(spec, catalog)
    assert told[0] == "".join(f"{type(each).__name__} {each.model_dump_json()}\n" for each in here.data)


def test_a_second_search_of_one_catalog_tells_the_same(catalog: Catalog, qwen: Events) -> None:
    assert search(run(), catalog).data == qwen.data


def test_events_survive_json(qwen: Events) -> None:
    for each in qwen.data:
        text = each.model_dump_json()
        assert type(each).model_validate_json(text) == each
        assert "NaN" not in text
        assert json.loads(text)


def test_a_catalog_of_its_own_is_not_needed(tmp_path: Path) -> None:
    """A cold search computes the same as a warm one."""
    cold = search(run(**DISAGG), Catalog(DiskCache(tmp_path)))
    assert round(cold.reserve[0].evaluation.score, 2) == 654.47
