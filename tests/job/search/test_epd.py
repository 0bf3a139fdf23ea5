"""Encode workers in a search: the peer's best, three pools on GPU types of their own, refusals, both placements."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from dgdr_api.base import wire
from dgdr_api.terms import Topology
from dgdr_job.catalog.catalog import Catalog
from dgdr_job.catalog.errors import Reason, Unsupported
from dgdr_job.search import static
from dgdr_job.search.branches import Branch, limits_of, plan_branch
from dgdr_job.search.config import Sla, Workload
from dgdr_job.search.mapper import search_config
from dgdr_job.search.question import Question
from dgdr_job.search.resolved import version_chains
from dgdr_job.search.space_report import space_report
from dgdr_job.search.visual import images_of, visual_tokens
from dgdr_job.space.limits import Limits, SharedCap

from tests.job.search.runs import Events, deployment, run, search
from tests.job.search.synthetic import table

MODEL = {"name": "Qwen/Qwen3-VL-32B-Instruct"}
IMAGES = {"height": 1024, "width": 1024}
EPD = {"encoder": "Disaggregated"}
TRTLLM: dict[str, Any] = {"hardware": {}, "runtime": {"performanceDataVersion": {"trtllm": "1.3.0rc20"}}}


def epd_run(backend: str = "vllm", **changes: Any) -> Any:
    """Qwen3-VL-32B on H200, decode on B200, 16 GPUs, 2000/300 and one image of 1024 x 1024; encode workers."""
    changes = {"hardware": {"gpu": {"decodeSku": "b200_sxm"}}, **changes}
    search = EPD | changes.pop("search", {})
    objective = {"sla": {"ttftMs": 2000, "itlMs": 40}} | changes.pop("objective", {})
    load = {"static": {"isl": 2000, "osl": 300, "images": IMAGES} | changes.pop("load", {})}
    return run(backend, modelRef=MODEL, workload=load, objective=objective, search=search, **changes)


def plan(catalog: Catalog, spec: Any, topology: Topology) -> Branch:
    chains = version_chains(spec)
    tokens = visual_tokens(catalog, spec.model_ref.name, images_of(spec))
    config = search_config(spec, {name: each.performance_data for name, each in chains.items()}, tokens)
    (backend,) = spec.backends
    return plan_branch(catalog, config, backend, topology, chains[backend], encoder="Disaggregated")


@pytest.fixture(scope="module")
def told(catalog: Catalog) -> Events:
    return search(epd_run(), catalog)


@pytest.fixture(scope="module")
def both(catalog: Catalog) -> Events:
    return search(epd_run(search={"encoder": "Both"}), catalog)


class TestPeersRequest:
    """aiconfigurator 0.12.0 with --enable-epd: best 667.44 tok/s/GPU, 12 prefill, 3 decode b116, 1 encode b1."""

    def test_the_best_is_at_least_the_peers(self, told: Events) -> None:
        best = told.reserve[0].evaluation
        assert best.score >= 667.44
        assert best.score == pytest.approx(667.44, rel=1e-3)

    def test_the_peers_deployment_is_found_with_its_figures(self, told: Events) -> None:
        rows = [(deployment(each), each.evaluation) for each in told.reserve]
        shapes = [[(kind, workers, label) for kind, workers, label, _ in roles] for roles, _ in rows]
        peers = [("prefill", 12, "tp1"), ("decode", 3, "tp1"), ("encode", 1, "tp1")]
        found = rows[shapes.index(peers)][1]
        assert found.used_gpus == 16
        assert found.metrics["requestThroughputPerS"] == pytest.approx(35.597, rel=1e-4)
        assert found.metrics["ttftMs"] == pytest.approx(569.846, rel=1e-4)

    def test_the_peers_inline_deployment_is_found_with_its_figures(self, both: Events) -> None:
        """Without --enable-epd: 690.154 tok/s/GPU, 13 prefill and 3 decode b120; it counts 1.1 on the encoder too."""
        found = {tuple(deployment(each)): each.evaluation for each in both.reserve}
        mine = found[("prefill", 13, "tp1", 1), ("decode", 3, "tp1", 120)]
        assert mine.score == pytest.approx(690.154, rel=1e-3)
        assert mine.metrics["tpotMs"] == pytest.approx(30.091, rel=1e-4)
        assert mine.metrics["ttftMs"] == pytest.approx(572.22 - 1.8 * 0.1 * 13.192, rel=1e-4)

    def test_larger_batches_are_no_better_here(self, catalog: Catalog, told: Events) -> None:
        """One encode worker serves 68 requests/s at batch 1, all prefill workers 36: its batch does not bind."""
        keys = {"parameters": {"search_space": {"encode": {"free_batch": True}}}}
        free = search(epd_run(search=keys), catalog)
        assert free.reserve[0].evaluation.score == told.reserve[0].evaluation.score
        assert told.completed.counters.scheduled == free.completed.counters.scheduled

    def test_the_inline_encoder_beats_a_worker_of_its_own(self, both: Events, told: Events) -> None:
        best = both.reserve[0]
        assert best.candidate.encoder == "Inline"
        assert best.evaluation.score > told.reserve[0].evaluation.score
        scores = [each.evaluation.score for each in both.reserve]
        assert all(better >= worse * (1 - 1e-12) for better, worse in pairwise(scores))
        assert {each.candidate.encoder for each in both.reserve} == {"Inline", "Disaggregated"}

    def test_both_placements_are_branches_of_one_search(self, both: Events) -> None:
        names = ["vllm/agg", "vllm/agg+epd", "vllm/disagg", "vllm/disagg+epd"]
        assert [branch.name for branch in both.resolved.branches] == names
        assert [each.name for each in both.resolved.coverage] == names
        assert [each.branch for each in both.rounds] == names
        assert {row["branch"] for row in both.rows} == set(names)

    def test_every_deployment_is_counted(self, both: Events) -> None:
        counters = both.completed.counters
        assert counters.scheduled == sum(branch.pool for branch in both.resolved.branches)
        assert counters.remaining == 0
        sums = counters.feasible + counters.infeasible + counters.unsupported + counters.failed + counters.pruned
        assert sums == counters.scheduled


class TestCandidate:
    def test_the_encode_role(self, told: Events) -> None:
        best = told.reserve[0]
        *_, encode = best.candidate.roles
        document = wire(encode)
        assert (encode.kind, encode.sku, encode.encoder_split) == ("encode", "h200_sxm", "tensor")
        assert document["engine"]["maxNumSeqs"] == 1
        assert document["engine"]["maxNumBatchedTokens"] == 1024
        assert document["engine"]["maxSequenceLength"] == 1024
        assert document["engine"]["numGpuBlocks"] == 0
        assert document["quantization"]["gemm"] == "bfloat16"
        assert best.evaluation.memory["encode"].weights_gib == pytest.approx(1.0997, abs=1e-4)
        assert best.evaluation.memory["encode"].kv_tokens == 0

    def test_the_other_workers_are_language_only(self, told: Events) -> None:
        """No encoder in them, but its tokens in every length."""
        prefill, decode, _ = told.reserve[0].candidate.roles
        assert (prefill.encoder_split, decode.encoder_split) == (None, None)
        assert prefill.engine.max_sequence_length == decode.engine.max_sequence_length == 3324
        assert prefill.engine.max_num_batched_tokens == 8192

    def test_language_only_workers_hold_more_kv_tokens(self, both: Events) -> None:
        def prefill_tokens(encoder: str) -> int:
            found = [each for each in both.reserve if each.candidate.encoder == encoder]
            first = next(each for each in found if each.candidate.topology == "disagg")
            return first.evaluation.memory["prefill"].kv_tokens

        assert prefill_tokens("Disaggregated") > prefill_tokens("Inline")

    def test_every_candidate_keeps_the_budget_with_its_encode_workers(self, told: Events) -> None:
        for each in told.reserve:
            used = sum(role.workers * role.gpus_per_worker for role in each.candidate.roles)
            assert used == each.evaluation.used_gpus <= 16

    def test_a_search_tells_the_same_bytes_twice(self, catalog: Catalog, told: Events) -> None:
        assert [wire(each) for each in search(epd_run(), catalog).data] == [wire(each) for each in told.data]


class TestGpuTypes:
    def test_an_encoder_on_gpus_of_its_own(self, catalog: Catalog) -> None:
        gpu = {"gpu": {"encoderSku": "l40s", "decodeSku": None, "budgetBySku": {"L40S": 2, "H200": 8}}}
        found = search(epd_run(hardware=gpu), catalog)
        assert {link.sku for link in found.resolved.versions} == {"h200_sxm", "l40s"}
        for each in found.reserve:
            used = {"h200_sxm": 0, "l40s": 0}
            for role in each.candidate.roles:
                used[role.sku] += role.workers * role.gpus_per_worker
            assert 1 <= used["l40s"] <= 2
            assert used["h200_sxm"] <= 8

    def test_an_override_equal_to_the_default_gives_the_same_bytes(self, catalog: Catalog, told: Events) -> None:
        named = epd_run(hardware={"gpu": {"decodeSku": "b200_sxm", "encoderSku": "H200"}})
        assert [wire(each) for each in search(named, catalog).data] == [wire(each) for each in told.data]

    def test_caps_bind_the_roles_of_a_type_together(self) -> None:
        gpu = {"gpu": {"decodeSku": "b200_sxm", "budgetBySku": {"H200": 10, "B200": 4}}}
        config = search_config(epd_run(hardware=gpu), {"vllm": "0.24.0"}, 1024)
        disagg = limits_of(config.search_space, "disagg", "Disaggregated")
        shared = SharedCap(frozenset({"prefill", "encode"}), 10, "budgetBySku of h200_sxm")
        assert (disagg.gpu_budget, disagg.max_decode_gpus, disagg.shared) == (16, 4, (shared,))
        agg = limits_of(config.search_space, "agg", "Disaggregated")
        assert (agg.gpu_budget, agg.budget_name, agg.shared) == (10, "budgetBySku of h200_sxm", ())

    def test_a_type_without_data_refuses_the_branches_that_need_it(self, catalog: Catalog) -> None:
        gpu = {"gpu": {"decodeSku": None, "encoderSku": "a100_sxm"}}
        spec = epd_run("sglang", search={"encoder": "Both"}, hardware=gpu)
        verdicts = {each.name: each.reason for each in search(spec, catalog).resolved.coverage}
        assert verdicts == {
            "sglang/agg": "Supported",
            "sglang/agg+epd": "NoData",
            "sglang/disagg": "Supported",
            "sglang/disagg+epd": "NoData",
        }


class TestRefusals:
    def test_trtllm_has_no_encode_workers_beside_aggregated_ones(self, catalog: Catalog) -> None:
        with pytest.raises(Unsupported, match="an encoder of its own needs topology disagg") as no:
            plan(catalog, epd_run("trtllm", **TRTLLM), "agg")
        assert no.value.reason is Reason.UNSUPPORTED_TOPOLOGY

    def test_trtllm_takes_batches(self, catalog: Catalog) -> None:
        keys = {"parameters": {"search_space": {"encode": {"batch_size": [4]}}}}
        found = search(epd_run("trtllm", **TRTLLM, search={"topologies": ["disagg"], **keys}), catalog)
        assert found.completed.outcome == "SearchSucceeded"
        batches = {role[3] for each in found.reserve for role in deployment(each) if role[0] == "encode"}
        assert batches == {4}

    def test_every_encode_choice_misses_the_bound(self, catalog: Catalog) -> None:
        found = search(epd_run(objective={"sla": {"ttftMs": 10, "itlMs": 40}}), catalog)
        assert found.completed.outcome == "NoFeasibleCandidate"
        assert "sla_constraint" in found.completed.message
        assert "least latencies: vllm/agg+epd TTFT" in found.completed.message
        rows = [row for row in found.rows if row["branch"] == "vllm/disagg+epd"]
        assert rows
        assert {row["reason"] for row in rows} <= {"sla_constraint", "backend_topology", "gpu_budget"}
        missed = next(row for row in rows if row["reason"] == "sla_constraint")
        assert "least TTFT" in missed["detail"]
        assert "of which encode workers take" in missed["detail"]

    def test_batches_without_any_flag_are_no_legal_shape(self, catalog: Catalog) -> None:
        keys = {"parameters": {"search_space": {"encode": {"batch_size": [2, 4]}}}}
        found = search(epd_run(search=keys), catalog)
        assert found.completed.outcome == "Unsupported"
        assert (
            "NoLegalShape: encode of Qwen/Qwen3-VL-32B-Instruct on vllm: vllm: no flag sets an encoder batch of 2"
            in (found.completed.message)
        )

    def test_a_split_that_the_encoder_does_not_have(self, catalog: Catalog) -> None:
        keys = {"parameters": {"search_space": {"encode": {"tp": [1, 3, 32]}}}}
        branch = plan(catalog, epd_run(search=keys), "disagg")
        refused = {out.shape.tp: out.reason for out in branch.roles[-1].shapes.refused}
        assert refused == {
            3: "16 heads of the encoder do not split over tp 3",
            32: "16 heads of the encoder do not split over tp 32",
        }

    def test_a_budget_below_one_worker_of_each_role(self, catalog: Catalog) -> None:
        with pytest.raises(Unsupported, match=r"takes 3 GPUs, hardware\.gpu\.budget is 2") as no:
            plan(catalog, epd_run(hardware={"gpu": {"budget": 2}}), "disagg")
        assert no.value.reason is Reason.BUDGET_TOO_SMALL

    def test_implausible_data_is_flagged(self, catalog: Catalog) -> None:
        only = {"topologies": ["agg"]}
        gpu = {"gpu": {"sku": "h200_sxm", "decodeSku": None, "encoderSku": "b300_sxm"}}
        found = search(epd_run("sglang", hardware=gpu, search=only), catalog)
        (coverage,) = found.resolved.coverage
        assert "implausible data: encode encoder pass 36.4 ms, roofline 3.5 ms" in coverage.message
        for each in found.reserve:
            flagged = "implausible: encode encoder pass" in each.evaluation.flags
            assert flagged or each.candidate.roles[-1].shape.tp > 1


def test_the_space_report_lists_encode_workers(catalog: Catalog) -> None:
    report = space_report(catalog, epd_run(), kv_gated=True)
    agg, disagg = report["branches"]
    assert [agg["name"], disagg["name"]] == ["vllm/agg+epd", "vllm/disagg+epd"]
    assert agg["shapeLabels"]["encode"] == ["tp1", "tp2", "tp4", "tp8"]
    assert agg["knobs"]["encode"] == {"batchSize": [1]}
    assert agg["pool"] == agg["pairs"] * 9


def ask(limits: Limits, ttft_ms: float, tpot_ms: float, osl: int) -> Question:
    load = Workload(isl=1000, osl=osl, saturated=True)
    return Question(load, Sla(ttft_ms=ttft_ms, itl_ms=tpot_ms), limits, ("throughputPerGpu",), pareto=False)


def test_w1_three_pools() -> None:
    """Engine.md W1: (4, 3, 1) workers on 42 GPUs, 60/s, TTFT 198 ms, 142.857 tok/s/GPU, request latency 990 ms."""
    tables = (
        table("prefill", {4: [(1, 1000 / 60, 1.8 * 60, 0.0)]}),
        table("decode", {8: [(1, 20.0, 0.0, 8.0)]}),
        table("encode", {2: [(4, 0.9 * 80, 1.8 * 50, 0.0)]}),
    )
    limits = Limits(64, max_prefill_workers=4, max_decode_workers=4, max_encode_workers=4)
    points = static.evaluate_pools(tables, ask(limits, 200, 10, 100)).points
    best = points.take(np.array([int(np.argmax(points.rate / points.gpus))]))
    workers = best.prefill_workers[0], best.decode_workers[0], best.encode_workers[0]
    assert (*workers, best.gpus[0]) == (4, 3, 1, 42)
    assert best.rate == pytest.approx([60.0])
    assert best.ttft_ms == pytest.approx([198.0])
    assert best.rate * 100 / best.gpus == pytest.approx([142.857], abs=5e-4)
    assert best.ttft_ms + 99 * best.tpot_ms == pytest.approx([990.0])


def test_w4_aggregated_workers_beside_encode_workers() -> None:
    """Engine.md W4: the frontier starts (6 GPUs, 10/s) (10, 20) (14, 30) (18, 40); best 7 agg + 1 encode at 150 ms."""
    tables = (table("agg", {4: [(1, 10.0, 100.0, 8.0)]}), table("encode", {2: [(1, 0.9 * 80, 50.0, 0.0)]}))
    question = ask(Limits(30), 200, 10, 100)
    points = static.evaluate_pools(tables, question).points
    best = points.take(np.array([int(np.argmax(points.rate / points.gpus))]))
    assert (best.decode_workers[0], best.encode_workers[0], best.gpus[0]) == (7, 1, 30)
    assert best.rate[0] == pytest.approx(70.0)
    assert best.ttft_ms[0] == 150.0
    throughput = Question(question.workload, question.sla, question.limits, ("throughput",), pareto=False)
    staircase = static.evaluate_pools(tables, throughput).points
    found = sorted(zip(staircase.gpus.tolist(), staircase.rate.round(9).tolist(), strict=True))
    assert found[:4] == [(6, 10.0), (10, 20.0), (14, 30.0), (18, 40.0)]
