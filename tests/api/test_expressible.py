from dataclasses import replace

import pytest
from dgdr_api import expressible
from dgdr_api.expressible import (
    RoleForm,
    encoder_problems,
    gpus_per_pod,
    knob_problems,
    least_token_budget,
    model_revision_problem,
    node_count,
    pair_problem,
    sglang_max_running_requests,
    shape_problems,
    topology_problem,
    unrendered_backend,
    unrendered_shape,
)
from dgdr_api.shape import Shape
from dgdr_api.terms import BACKENDS, Backend, RoleKind
from dgdr_api.versions import VersionTable, table


def problems(
    backend: Backend, shape: Shape, *, kind: RoleKind = "agg", is_moe: bool = True, per_node: int = 8
) -> list[str]:
    return shape_problems(
        RoleForm(backend=backend, engine_version="1", kind=kind, shape=shape, is_moe=is_moe, gpus_per_node=per_node)
    )


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "shape",
    [
        Shape(tp=4, moe_ep=4),
        Shape(attention_dp=4, moe_ep=4),
        Shape(tp=4, moe_tp=4),
        Shape(attention_dp=4, moe_tp=4),
        Shape(),
    ],
)
def test_the_pure_patterns_are_expressible_everywhere(backend: Backend, shape: Shape) -> None:
    assert problems(backend, shape) == []


def test_finding_8576_trtllm_splits_attention_one_way() -> None:
    mixed = Shape(tp=2, attention_dp=4, moe_ep=8)

    assert "tp 2 with attentionDp 4" in problems("trtllm", mixed)[0]
    assert problems("vllm", mixed) == problems("sglang", mixed) == []


def test_vllm_splits_experts_one_way() -> None:
    mixed = Shape(attention_dp=8, moe_tp=2, moe_ep=4)

    assert "moeTp 2 with moeEp 4" in problems("vllm", mixed)[0]
    assert problems("sglang", mixed) == problems("trtllm", mixed) == []


def test_context_parallelism() -> None:
    assert "only sglang" in problems("vllm", Shape(cp=2), is_moe=False)[0]
    assert "only sglang" in problems("trtllm", Shape(cp=2), is_moe=False)[0]
    assert "decode" in problems("sglang", Shape(cp=2), kind="decode", is_moe=False)[0]
    assert "tp 1" in problems("sglang", Shape(tp=2, cp=2), kind="prefill", is_moe=False)[0]
    assert problems("sglang", Shape(cp=2), kind="prefill", is_moe=False) == []


def test_a_dense_model_has_no_experts_and_a_mixture_fills_the_worker() -> None:
    assert "dense" in problems("vllm", Shape(attention_dp=2), is_moe=False)[0]
    assert "moeTp * moeEp = 1" in problems("vllm", Shape(tp=2), is_moe=True)[0]


def test_wide_workers_take_whole_nodes_in_powers_of_two() -> None:
    assert problems("sglang", Shape(tp=16), is_moe=False) == []
    assert "no whole number of nodes" in problems("sglang", Shape(tp=12), is_moe=False)[0]
    assert "power of two" in problems("sglang", Shape(tp=24), is_moe=False)[0]
    assert problems("sglang", Shape(tp=6), is_moe=False) == []


def test_vllm_shares_its_ranks_evenly_over_nodes() -> None:
    assert problems("vllm", Shape(attention_dp=16, moe_ep=16)) == []
    assert problems("vllm", Shape(tp=16, moe_ep=16)) == []
    assert (
        "2 data-parallel ranks cannot be shared by 4 nodes"
        in problems("vllm", Shape(tp=8, attention_dp=2, moe_ep=16), per_node=4)[0]
    )


def test_finding_8567_eight_gpus_are_one_node() -> None:
    shape = Shape(attention_dp=8, moe_tp=2, moe_ep=4)

    assert (shape.gpus, node_count(shape, 8), gpus_per_pod(shape, 8)) == (8, 1, 8)


def test_nodes_and_gpus_per_pod() -> None:
    assert (node_count(Shape(tp=16), 8), gpus_per_pod(Shape(tp=16), 8)) == (2, 8)
    assert (node_count(Shape(tp=2), 8), gpus_per_pod(Shape(tp=2), 8)) == (1, 2)
    with pytest.raises(ValueError, match="12 GPUs"):
        node_count(Shape(tp=12), 8)


def test_knobs() -> None:
    shape = Shape(attention_dp=8, moe_ep=8)
    limits = {"max_num_batched_tokens": 8200, "block_size": 32, "max_num_seqs": 256}

    assert "multiple of tokens_per_block 32" in knob_problems("trtllm", shape=shape, **limits)[0]
    assert knob_problems("vllm", shape=shape, **limits) == []
    assert knob_problems("trtllm", shape=shape, **limits | {"max_num_batched_tokens": 8192}) == []
    assert least_token_budget("trtllm", 8200, 32) == 8224
    assert least_token_budget("trtllm", 8192, 32) == 8192
    assert least_token_budget("vllm", 8200, 32) == 8200
    assert sglang_max_running_requests(256, shape) == 2048
    assert "32-bit" in knob_problems("sglang", shape=shape, **limits | {"max_num_seqs": 2**29})[0]


def test_revision_encoder_and_topology() -> None:
    assert "local snapshot" in (model_revision_problem("trtllm", revision="abc", local_snapshot=False) or "")
    assert model_revision_problem("trtllm", revision="abc", local_snapshot=True) is None
    assert model_revision_problem("vllm", revision="abc", local_snapshot=False) is None
    assert topology_problem("trtllm", frozenset({"agg", "encode"})) is not None
    assert topology_problem("trtllm", frozenset({"prefill", "decode", "encode"})) is None
    assert topology_problem("vllm", frozenset({"agg", "encode"})) is None
    assert encoder_problems("trtllm", tp=2, batch_size=8) == []
    assert "only 1" in encoder_problems("vllm", tp=1, batch_size=2)[0]
    assert "power of two" in encoder_problems("vllm", tp=3, batch_size=1)[0]


def test_unequal_tensor_parallelism_is_a_fact_of_each_engine_version(monkeypatch: pytest.MonkeyPatch) -> None:
    unequal = Shape(tp=2), Shape(tp=4)
    for backend, versions in table().templates.items():
        assert all(pair_problem(backend, version, *unequal) is None for version in versions)

    def listed() -> VersionTable:
        return replace(table(), equal_tp={"sglang": ("0.5.14",)})

    monkeypatch.setattr(expressible, "table", listed)
    assert pair_problem("sglang", "0.5.14", *unequal) == (
        "sglang 0.5.14: prefill tp 2 with decode tp 4; they must be equal"
    )
    assert pair_problem("sglang", "0.5.14", Shape(tp=4), Shape(tp=4)) is None
    assert pair_problem("sglang", "0.5.16", *unequal) is None
    assert pair_problem("vllm", "0.26.0", *unequal) is None


def test_what_no_template_renders_yet() -> None:
    assert unrendered_backend("vllm") is None
    assert unrendered_backend("trtllm") == ("no template renders TensorRT-LLM yet; there are templates of sglang, vllm")
    assert unrendered_shape(Shape(tp=16), sku="h200_sxm", gpus_per_node=8) is None
    assert "context parallelism" in (unrendered_shape(Shape(cp=2), sku="h200_sxm", gpus_per_node=8) or "")
    assert unrendered_shape(Shape(tp=4), sku="gb200", gpus_per_node=4) is None
    assert unrendered_shape(Shape(tp=8), sku="gb200", gpus_per_node=4) == (
        "a worker over 2 nodes of gb200 needs a ComputeDomain, an object beside the deployment"
    )


def test_a_vllm_rank_of_several_does_not_span_pods() -> None:
    wide = Shape(tp=16, attention_dp=2, moe_ep=32)
    assert "a rank takes 16 GPUs, a pod has 8" in problems("vllm", wide)[-1]
    assert problems("vllm", Shape(tp=8, attention_dp=2, moe_ep=16)) == []
    assert problems("vllm", Shape(tp=16, moe_ep=16)) == []
