"""Faults that users of earlier systems hit (docs and issue numbers of ai-dynamo/dynamo unless said)."""

import re

import pytest
from dgdr_api.shape import Shape, total_gpus
from dgdr_job.catalog.catalog import Catalog
from dgdr_job.search import static
from dgdr_job.search.config import Sla, Workload
from dgdr_job.search.question import Question
from dgdr_job.search.role_table import RoleTable
from dgdr_job.space.limits import Limits
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.job.search.runs import Events, run, search, unbound
from tests.job.search.synthetic import questions, table, tables


def gpus_of(told: Events) -> list[tuple[int, int]]:
    """(GPUs as counted, GPUs by the one definition) of each candidate."""
    return [
        (
            each.evaluation.used_gpus,
            sum(
                role.workers * role.shape.tp * role.shape.pp * role.shape.attention_dp * role.shape.cp
                for role in each.candidate.roles
            ),
        )
        for each in told.reserve
    ]


def test_finding_8273_shapes_keep_their_moe_fields(catalog: Catalog) -> None:
    """A mixture of experts on 4 GPUs: tp4 moe_tp1 moe_ep4 reaches candidate, replay spec and timing as it is."""
    spec = unbound(
        modelRef={"name": "Qwen/Qwen3-30B-A3B"},
        hardware={"gpu": {"budget": 8}},
        search={"parameters": {"search_space": {"gpus_per_worker": [4]}}},
    )
    seen = set()
    for each in search(spec, catalog).reserve:
        for role, replayed in zip(each.candidate.roles, each.replay_spec.roles, strict=True):
            shape = role.shape
            assert shape.tp * shape.attention_dp == shape.moe_tp * shape.moe_ep == 4
            assert replayed.shape == shape
            assert replayed.timing.type == "performanceData"
            assert replayed.timing.shape == shape
            seen.add((shape.tp, shape.attention_dp, shape.moe_tp, shape.moe_ep))
    assert (4, 1, 1, 4) in seen
    assert seen <= {(4, 1, 1, 4), (1, 4, 1, 4), (4, 1, 4, 1), (1, 4, 4, 1)}


def test_finding_8571_deepseek_on_32_h100_tries_nothing_without_room(catalog: Catalog) -> None:
    told = search(
        unbound(modelRef={"name": "deepseek-ai/DeepSeek-R1"}, hardware={"gpu": {"sku": "h100_sxm", "budget": 32}}),
        catalog,
    )
    assert told.completed.outcome == "SearchSucceeded"
    without_room = [row for row in told.rows if row["reason"] == "kv_capacity"]
    assert {row["used_gpus"] for row in without_room} >= {1, 2, 4, 8}
    assert all("KV tokens per rank" in row["detail"] for row in without_room)
    for counted, defined in gpus_of(told):
        assert counted == defined <= 32


def test_finding_8576_tp8_dp8_is_64_gpus_and_not_enumerated(catalog: Catalog) -> None:
    assert Shape(tp=8, attention_dp=8, moe_ep=64).gpus == 64
    with pytest.raises(ValueError, match="moeTp \\* moeEp = 8, but tp \\* attentionDp \\* cp = 64"):
        Shape(tp=8, attention_dp=8, moe_ep=8)
    told = search(unbound(modelRef={"name": "openai/gpt-oss-120b"}), catalog)
    for each in told.reserve:
        for role in each.candidate.roles:
            assert 1 in (role.shape.tp, role.shape.attention_dp)


def test_finding_8579_qwen3_235b_fp8_disaggregated_on_h100_is_searched(catalog: Catalog) -> None:
    for backend in ("vllm", "sglang", "trtllm"):
        spec = run(
            backend,
            modelRef={"name": "Qwen/Qwen3-235B-A22B-FP8"},
            hardware={"gpu": {"sku": "h100_sxm", "budget": 32}},
            objective={"sla": {"ttftMs": 5000, "itlMs": 200}},
            search={"topologies": ["disagg"]},
            runtime={"performanceDataVersion": {"vllm": "0.24.0", "trtllm": "1.3.0rc20"}},
        )
        told = search(spec, catalog)
        assert told.completed.outcome == "SearchSucceeded", told.completed.message
        assert {role.kind for each in told.reserve for role in each.candidate.roles} == {"prefill", "decode"}


@pytest.mark.parametrize("budget", [1, 2, 3, 7, 8, 12, 32])
def test_finding_8583_budget_is_hard(budget: int, catalog: Catalog) -> None:
    """gpt-oss-120b, budget 32, became a deployment of 50 GPUs."""
    told = search(unbound(modelRef={"name": "openai/gpt-oss-120b"}, hardware={"gpu": {"budget": budget}}), catalog)
    assert told.reserve
    for counted, defined in gpus_of(told):
        assert counted == defined <= budget
    assert all(row["used_gpus"] <= budget for row in told.rows if row["status"] == "feasible")


@settings(max_examples=150, deadline=None)
@given(prefill=tables("prefill"), decode=tables("decode"), data=st.data())
def test_finding_8583_no_deployment_is_ever_above_the_budget(
    prefill: RoleTable, decode: RoleTable, data: st.DataObject
) -> None:
    question = data.draw(questions(("throughput", "minGpus"), pareto=data.draw(st.booleans())))
    points = static.evaluate_pools((prefill, decode), question).points
    for p, d, pw, dw, gpus in zip(
        points.prefill_row.tolist(),
        points.decode_row.tolist(),
        points.prefill_workers.tolist(),
        points.decode_workers.tolist(),
        points.gpus.tolist(),
        strict=True,
    ):
        shapes = prefill.shapes[prefill.shape[p]].shape, decode.shapes[decode.shape[d]].shape
        assert gpus == total_gpus(zip((pw, dw), shapes, strict=True))
        assert question.limits.min_gpu_budget <= gpus <= question.limits.gpu_budget


def test_finding_a_small_pick_is_never_resized_to_fill_the_budget(catalog: Catalog) -> None:
    """A 2-GPU pick became eight 2-GPU workers because a bridge refilled the budget."""
    small = search(run(search={"topologies": ["agg"]}), catalog).reserve[0]
    large = search(run(search={"topologies": ["agg"]}, hardware={"gpu": {"budget": 512}}), catalog).reserve[0]
    assert large.candidate == small.candidate
    assert large.evaluation.used_gpus == small.evaluation.used_gpus <= 4


def test_finding_9081_a_request_that_cannot_fit_names_the_gpus_needed(catalog: Catalog) -> None:
    told = search(run(modelRef={"name": "deepseek-ai/DeepSeek-R1"}, hardware={"gpu": {"budget": 7}}), catalog)
    assert told.completed.outcome == "Unsupported"
    assert "the smallest agg deployment takes 8 GPUs, hardware.gpu.budget is 7" in told.completed.message


def test_finding_11612_bounds_are_never_relaxed(catalog: Catalog) -> None:
    best = search(run(objective={"metric": "ttft"}), catalog).reserve[0]
    least = best.evaluation.metrics["ttftMs"]
    at = search(run(objective={"sla": {"ttftMs": least, "itlMs": 40}}), catalog)
    assert {each.evaluation.metrics["ttftMs"] for each in at.reserve} == {least}
    below = search(run(objective={"sla": {"ttftMs": least * (1 - 1e-9), "itlMs": 40}}), catalog)
    assert (below.completed.outcome, below.reserve) == ("NoFeasibleCandidate", [])


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 0.0])
def test_finding_8469_nan_rows_rank_nowhere_and_crash_nothing(value: float) -> None:
    question = Question(
        Workload(isl=10, osl=10, saturated=True), Sla(), Limits(gpu_budget=4), ("throughputPerGpu",), pareto=False
    )
    found = static.evaluate_agg(table("agg", {1: [(8, 3.0, value, 5.0)], 2: [(8, 1.0, 20.0, 5.0)]}), question)
    assert found.points.decode_row.tolist() == [1]
    assert [(each.shapes, each.status, each.reason) for each in found.refusals] == [
        ((Shape(),), "failed", "invalid_metrics")
    ]


def test_finding_aiconfigurator_1220_texts_state_the_bound_that_was_checked(catalog: Catalog) -> None:
    told = search(run(objective={"sla": {"ttftMs": 100.5, "itlMs": 3.25}}), catalog)
    rows = [row for row in told.rows if row["reason"] == "sla_constraint"]
    assert rows
    for row in rows:
        assert " ms > 100.5 ms" in row["detail"]
        assert " ms > 3.25 ms" in row["detail"]
        compared = re.findall(r"least \w+ ([0-9.]+) ms > ([0-9.]+) ms", row["detail"])
        assert len(compared) == 2
        assert all(float(least) > float(bound) for least, bound in compared)


@given(
    degrees=st.tuples(*[st.sampled_from([1, 2, 4, 8])] * 4),
    is_moe=st.booleans(),
)
def test_finding_aiconfigurator_1476_context_parallel_ranks_are_counted_once(
    degrees: tuple[int, int, int, int], *, is_moe: bool
) -> None:
    tp, pp, dp, cp = degrees
    shape = Shape(tp=tp, pp=pp, attention_dp=dp, cp=cp, moe_ep=tp * dp * cp if is_moe else 1)
    assert shape.gpus == tp * pp * dp * cp
    assert total_gpus([(3, shape), (2, Shape(tp=2))]) == 3 * tp * pp * dp * cp + 4


def test_finding_aiconfigurator_1396_no_batch_exceeds_the_kv_cache(catalog: Catalog) -> None:
    """A KV budget that was ignored predicted 4.6 times the rate."""
    for each in search(unbound(workload={"static": {"isl": 12_000, "osl": 2_000}}), catalog).reserve:
        for role in each.candidate.roles:
            tokens = 12_000 + (0 if role.kind == "prefill" else 2_000)
            assert role.engine.max_num_seqs * tokens <= each.evaluation.memory[role.kind].kv_tokens


def test_finding_10104_prefill_workers_hold_the_length_that_they_are_given(catalog: Catalog) -> None:
    told = search(unbound(workload={"maxSequenceLength": 30_000}), catalog)
    prefill = [(each, role) for each in told.reserve for role in each.candidate.roles if role.kind == "prefill"]
    assert prefill
    for each, role in prefill:
        assert role.engine.max_sequence_length == 30_000 < each.evaluation.memory["prefill"].kv_tokens


def test_finding_14538_an_empty_reserve_is_an_answer(catalog: Catalog) -> None:
    one_bound = {"ttftMs": None, "itlMs": None, "e2eMs": 1}
    for objective in ({"sla": {"ttftMs": 1, "itlMs": 1}}, {"mode": "pareto", "sla": one_bound}):
        told = search(run(objective=objective), catalog)
        assert (told.completed.outcome, told.completed.reserve) == ("NoFeasibleCandidate", ())
