"""Legal shapes per model and backend, laws that hold for all of them, and why the others are not."""

from dataclasses import replace
from itertools import product

import pytest
from dgdr_api.expressible import RoleForm, shape_problems
from dgdr_api.shape import Shape
from dgdr_api.terms import Backend, RoleKind
from dgdr_job.catalog.model import ModelFacts
from dgdr_job.space.shapes import RoleShapes, role_shapes
from hypothesis import given
from hypothesis import strategies as st

DENSE = ModelFacts(
    architecture="Qwen3ForCausalLM",
    layers=64,
    attention_heads=64,
    kv_heads=8,
    hidden_size=5120,
    is_moe=False,
    experts=0,
    experts_per_token=0,
    moe_intermediate_size=0,
    context_length=40_960,
    vision=None,
    quantization=None,
    quantization_block=None,
    nextn_predict_layers=0,
    config_sha256="0" * 64,
)
MOE = replace(DENSE, is_moe=True, experts=128, experts_per_token=8, moe_intermediate_size=1536)
FP8_BLOCK = replace(MOE, quantization="fp8_block", quantization_block=128)
"""Qwen3-235B-A22B-FP8's experts: 1,536 columns, scales in blocks of 128."""


def shapes(model: ModelFacts, backend: Backend = "vllm", kind: RoleKind = "prefill", per_node: int = 8) -> RoleShapes:
    return role_shapes(model, backend, kind, engine_version="0.24.0", gpus_per_node=per_node)


def test_a_dense_model_is_split_by_tensor_parallelism_alone() -> None:
    assert [shape.label for shape in shapes(DENSE).legal] == ["tp1", "tp2", "tp4", "tp8", "tp16"]


def test_the_four_pure_patterns_of_four_gpus() -> None:
    """Of engine.md section 3, as (tp, dp, moe_tp, moe_ep)."""
    four = [(s.tp, s.attention_dp, s.moe_tp, s.moe_ep) for s in shapes(MOE).legal if s.gpus == 4]
    assert four == [(4, 1, 1, 4), (1, 4, 1, 4), (4, 1, 4, 1), (1, 4, 4, 1)]


@pytest.mark.parametrize("backend", ["vllm", "sglang", "trtllm"])
def test_a_mixture_of_experts_has_seventeen_shapes_on_every_backend(backend: Backend) -> None:
    found = shapes(MOE, backend)
    assert len(found.legal) == 17
    assert found.refused == ()


def test_fp8_blocks_limit_the_tensor_split_of_experts() -> None:
    """1,536 / 4 = 384 = 3 blocks; 1,536 / 8 = 192 is none, 1,536 / 16 = 96 neither."""
    found = shapes(FP8_BLOCK)
    assert max(shape.moe_tp for shape in found.legal) == 4
    assert [(out.shape.label, out.reason) for out in found.refused] == [
        (
            f"{'tp' if attention == 'tp' else 'dp'}{n}-moetp{n}",
            f"an expert of 1536 columns over moeTp {n} is no multiple of the fp8 block of 128",
        )
        for n in (8, 16)
        for attention in ("tp", "dp")
    ]


def test_heads_that_do_not_split_are_refused_with_the_numbers() -> None:
    found = shapes(replace(DENSE, attention_heads=12))
    assert [shape.tp for shape in found.legal] == [1, 2, 4]
    assert [out.reason for out in found.refused] == [
        "12 attention heads do not split over tp 8",
        "12 attention heads do not split over tp 16",
    ]


def test_more_ranks_than_experts_are_refused() -> None:
    found = shapes(replace(MOE, experts=4))
    assert max(shape.moe_ep for shape in found.legal) == 4
    assert {out.reason for out in found.refused} == {
        "4 experts are fewer than moeEp 8",
        "4 experts are fewer than moeEp 16",
    }


def test_a_worker_wider_than_a_node_fills_whole_nodes() -> None:
    found = role_shapes(DENSE, "vllm", "agg", engine_version="0.24.0", gpus_per_node=8, ladder=(8, 32, 12, 16, 8))
    assert [shape.tp for shape in found.legal] == [8, 16, 32]
    assert [out.shape.tp for out in found.refused] == [12]


models = st.builds(
    lambda heads, experts, width, block, is_moe: replace(
        MOE if is_moe else DENSE,
        attention_heads=heads,
        experts=experts if is_moe else 0,
        moe_intermediate_size=width if is_moe else 0,
        quantization_block=128 if block else None,
    ),
    st.sampled_from([8, 12, 16, 40, 64, 96, 128]),
    st.sampled_from([1, 4, 8, 60, 128, 256]),
    st.sampled_from([640, 768, 1408, 1536, 2048, 2880]),
    st.booleans(),
    st.booleans(),
)
ladders = st.lists(st.sampled_from([1, 2, 3, 4, 6, 8, 16, 24, 32, 64]), min_size=1, max_size=8).map(tuple)


@given(
    model=models,
    backend=st.sampled_from(["vllm", "sglang", "trtllm"]),
    kind=st.sampled_from(["agg", "prefill", "decode"]),
    per_node=st.sampled_from([4, 8, 16]),
    ladder=ladders,
)
def test_laws_of_every_shape(
    model: ModelFacts, backend: Backend, kind: RoleKind, per_node: int, ladder: tuple[int, ...]
) -> None:
    found = role_shapes(model, backend, kind, engine_version="1", gpus_per_node=per_node, ladder=ladder)
    everything = [*found.legal, *(out.shape for out in found.refused)]
    assert len({shape.key for shape in everything}) == len(everything)
    assert [shape.gpus for shape in found.legal] == sorted(shape.gpus for shape in found.legal)
    for shape in everything:
        assert shape.gpus == shape.tp * shape.pp * shape.attention_dp * shape.cp
        assert shape.gpus in ladder
        assert shape.moe_tp * shape.moe_ep == (shape.tp * shape.attention_dp * shape.cp if model.is_moe else 1)
    for shape in found.legal:
        form = RoleForm(
            backend=backend, engine_version="1", kind=kind, shape=shape, is_moe=model.is_moe, gpus_per_node=per_node
        )
        assert shape_problems(form) == []
        assert model.attention_heads % shape.tp == 0
        assert shape.gpus <= per_node or shape.gpus % per_node == 0
    assert all(out.reason for out in found.refused)


@given(model=models, ladder=ladders)
def test_enumeration_equals_trying_every_degree(model: ModelFacts, ladder: tuple[int, ...]) -> None:
    """Every (tp, dp, moe_tp, moe_ep) up to the widest worker, kept when it is a pure pattern that the model allows."""
    found = role_shapes(model, "sglang", "agg", engine_version="1", gpus_per_node=8, ladder=ladder)
    expected = set()
    degrees = sorted({1, *ladder})
    for tp, dp, moe_tp, moe_ep in product(degrees, repeat=4):
        gpus = tp * dp
        pure = (tp == 1 or dp == 1) and (moe_tp == 1 or moe_ep == 1)
        fills = moe_tp * moe_ep == (gpus if model.is_moe else 1) and (model.is_moe or dp == 1)
        nodes = gpus <= 8 or (gpus % 8 == 0 and gpus & (gpus - 1) == 0)
        splits = model.attention_heads % tp == 0 and (not model.is_moe or moe_ep <= model.experts)
        blocks = not (model.is_moe and model.is_fp8_block) or model.moe_intermediate_size % (128 * moe_tp) == 0
        if gpus in ladder and pure and fills and nodes and splits and blocks:
            expected.add(Shape(tp=tp, attention_dp=dp, moe_tp=moe_tp, moe_ep=moe_ep).key)
    assert {shape.key for shape in found.legal} == expected
