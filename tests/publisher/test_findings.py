"""Faults that users of earlier systems hit in rendering, by their public issue number (ai-dynamo/dynamo)."""

from typing import Any

import pytest
from dgdr_api.candidate import EvaluatedCandidate
from dgdr_api.identity import dgd_name_problems
from dgdr_api.run import RunSpec
from dgdr_api.shape import Shape
from dgdr_publisher.errors import NotRenderableError
from dgdr_publisher.rendering import render_candidate, verify_dgd
from dgdr_publisher.selection import select
from dgdr_publisher.verify import vllm
from dgdr_publisher.verify.arguments import ArgumentsError
from pydantic import ValidationError

from tests.publisher.cases import CASES
from tests.publisher.samples import AGG, REFUSED, evaluated, role, spec


def component(candidate: EvaluatedCandidate, request: RunSpec, index: int = 1) -> dict[str, Any]:
    found: dict[str, Any] = render_candidate(candidate, request, "qwen").dgd["spec"]["components"][index]
    return found


def arguments(one: dict[str, Any]) -> list[str]:
    found: list[str] = one["podTemplate"]["spec"]["containers"][0]["args"]
    return found


def value(one: dict[str, Any], flag: str) -> str:
    return arguments(one)[arguments(one).index(flag) + 1]


def gpus(one: dict[str, Any]) -> str:
    return str(one["podTemplate"]["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"])


def sglang(shape: dict[str, int]) -> tuple[EvaluatedCandidate, RunSpec]:
    return evaluated(role("agg", shape, backend="sglang", version="0.5.16")), spec("sglang", "0.5.16")


def test_finding_8273_moe_fields_reach_the_deployment() -> None:
    for shape, width, ep in (({"tp": 4, "moeEp": 4}, "4", "4"), ({"tp": 4, "moeTp": 2, "moeEp": 2}, "4", "2")):
        one = component(*sglang(shape))
        assert (value(one, "--tensor-parallel-size"), value(one, "--expert-parallel-size")) == (width, ep)
    one = component(evaluated(role("agg", {"tp": 4, "moeEp": 4})), spec())
    assert "--enable-expert-parallel" in arguments(one)
    one = component(evaluated(role("agg", {"tp": 4, "moeTp": 4})), spec())
    assert "--enable-expert-parallel" not in arguments(one)


@pytest.mark.parametrize("name", CASES)
def test_finding_8480_8566_component_names_fit_the_operator(name: str) -> None:
    components = render_candidate(*CASES[name], "q" * 22).dgd["spec"]["components"]
    named = [(one["name"], "multinode" in one) for one in components]
    assert dgd_name_problems("default", "q" * 22, named) == []


def test_finding_8567_nodes_only_when_a_worker_is_wider_than_one() -> None:
    one = component(*sglang({"tp": 1, "attentionDp": 8, "moeTp": 2, "moeEp": 4}))
    assert "multinode" not in one
    assert gpus(one) == "8"


def test_finding_8568_a_claim_without_a_path_is_no_doubled_path() -> None:
    one = component(AGG, spec(model={"cache": {"pvc": {"name": "models"}}}))
    assert "/opt/model-cache/opt/model-cache" not in str(one)
    assert value(one, "--model") == "Qwen/Qwen3-32B"


def test_finding_8576_experts_take_no_more_gpus() -> None:
    candidate, request = sglang({"tp": 1, "attentionDp": 8, "moeEp": 8})
    assert gpus(component(candidate, request)) == "8"
    with pytest.raises(ValidationError, match="moeTp \\* moeEp = 8, but tp \\* attentionDp \\* cp = 64"):
        Shape(tp=8, attention_dp=8, moe_ep=8)
    mixed = evaluated(role("agg", {"tp": 8, "attentionDp": 8, "moeEp": 64}))
    assert mixed.candidate.used_gpus == 64
    one = component(mixed, spec(gpu={"budget": 64}))
    assert (one["multinode"]["nodeCount"], gpus(one)) == (8, "8")


def test_finding_8583_a_deployment_is_never_resized() -> None:
    candidate, request = evaluated(role("agg", {"tp": 2}, workers=1)), spec(gpu={"budget": 16, "minBudget": 8})
    one = component(candidate, request)
    assert (one["replicas"], gpus(one)) == (1, "2")
    one["replicas"] = 8
    dgd = render_candidate(candidate, request, "qwen").dgd
    dgd["spec"]["components"][1] = one
    assert "gpus: expected 2, found 16" in [str(difference) for difference in verify_dgd(dgd, candidate)]


def test_finding_8659_one_source_of_engine_options() -> None:
    for more in (["--max-num-seqs", "1"], ["--override-engine-args", "{}"], ["--trtllm.max_batch_size", "1"]):
        with pytest.raises(ArgumentsError):
            vllm.read_engine([*arguments(component(AGG, spec())), *more])


@pytest.mark.parametrize("name", CASES)
def test_finding_9848_each_argument_stands_once(name: str) -> None:
    for one in render_candidate(*CASES[name], "qwen").dgd["spec"]["components"]:
        flags = [item for item in arguments(one) if item.startswith("--")]
        assert len(flags) == len(set(flags))


def test_finding_6947_tolerations_reach_every_worker() -> None:
    for index in (1, 2):
        one = component(*CASES["vllm_disagg"], index)
        assert one["podTemplate"]["spec"]["tolerations"] == [
            {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
        ]


def test_finding_13906_model_replicas_and_limits_are_the_candidates_own() -> None:
    one = component(evaluated(role("agg", workers=7, maxNumSeqs=33), model="a/b"), spec(model={"name": "a/b"}))
    assert (value(one, "--model"), one["replicas"], value(one, "--max-num-seqs")) == ("a/b", 7, "33")


@pytest.mark.parametrize("name", [name for name in CASES if "disagg" in name])
def test_finding_11684_13238_disaggregated_workers_have_role_and_transfer(name: str) -> None:
    candidate, request = CASES[name]
    transfer = {"vllm": "--kv-transfer-config", "sglang": "--disaggregation-transfer-backend"}
    for index, mode in ((1, "prefill"), (2, "decode")):
        one = component(candidate, request, index)
        assert value(one, "--disaggregation-mode") == one["type"] == mode
        assert "nixl" in value(one, transfer[candidate.candidate.backend]).lower()


def test_finding_10104_a_length_without_kv_room_is_refused() -> None:
    candidate = evaluated(role("prefill", numGpuBlocks=51), role("decode"))
    with pytest.raises(NotRenderableError, match=r"maxSequenceLength = 3300 .* 3264 tokens \(51 blocks of 64\)"):
        render_candidate(candidate, spec(), "qwen")


def test_finding_14538_one_that_cannot_be_rendered_keeps_the_others_and_its_cause() -> None:
    known = {one.id: one for one in (REFUSED, AGG)}
    found = select(known, known, spec=spec(), request_name="qwen", namespace="default", limit=2)
    assert [one.evaluated.id for one in found.chosen] == [AGG.id]
    assert "preemption" in found.unrenderable[REFUSED.id]
    assert select([], {}, spec=spec(), request_name="qwen", namespace="default", limit=2).chosen == ()


def test_finding_aiconfigurator_1476_context_parallelism_is_counted_or_refused() -> None:
    candidate = evaluated(
        role("prefill", {"cp": 4}, backend="sglang", version="0.5.16"),
        role("decode", backend="sglang", version="0.5.16"),
    )
    assert candidate.candidate.used_gpus == 5
    with pytest.raises(NotRenderableError, match=r"shape\.cp"):
        render_candidate(candidate, spec("sglang", "0.5.16"), "qwen")
