"""What is not built, or what a backend has no form for, is refused by field and value."""

from dataclasses import replace
from typing import Any

import pytest
from dgdr_api import expressible
from dgdr_api.candidate import EvaluatedCandidate
from dgdr_api.run import RunSpec
from dgdr_api.versions import table
from dgdr_publisher.errors import NotRenderableError
from dgdr_publisher.render.context import build_context
from dgdr_publisher.render.refusals import check_renderable
from dgdr_publisher.render.settings import deployment_of
from dgdr_publisher.render.templates import templates
from dgdr_publisher.rendering import render_candidate

from tests.publisher.samples import MODEL, evaluated, role, spec

IMAGES_LOAD = {
    "isl": 3000,
    "osl": 300,
    "saturated": True,
    "images": {"height": 448, "width": 448, "visualTokens": 196},
}
SGLANG: dict[str, Any] = {"backend": "sglang", "version": "0.5.16"}


def _encoder() -> EvaluatedCandidate:
    return evaluated(role("agg"), role("encode"), encoder="Disaggregated")


def _image(tag: str, override: str | None = None, data: str = "0.24.0") -> RunSpec:
    runtime = {"image": f"registry.local/vllm-runtime:{tag}", "performanceDataVersion": {"vllm": data}}
    return spec(runtime=runtime if override is None else runtime | {"versionOverride": override})


REFUSED: dict[str, tuple[EvaluatedCandidate, RunSpec, str, str]] = {
    "trtllm": (
        evaluated(role("agg", backend="trtllm", version="1.3.0rc22", data="1.3.0rc20")),
        spec(
            backends=["trtllm"],
            runtime={
                "image": "nvcr.io/nvidia/ai-dynamo/tensorrtllm-runtime:1.4.2",
                "performanceDataVersion": {"trtllm": "1.3.0rc20"},
            },
        ),
        "candidate.backend",
        "no template renders TensorRT-LLM yet; there are templates of sglang, vllm",
    ),
    "encoder": (_encoder(), spec(), "candidate.encoder", "Inline"),
    "encode batch": (
        evaluated(role("agg"), role("encode", maxNumSeqs=4, numGpuBlocks=0), encoder="Disaggregated"),
        spec(),
        "candidate.encoder",
        "no flag sets an encoder batch of 4",
    ),
    "images": (
        evaluated(role("agg"), workload={"static": IMAGES_LOAD}),
        spec(),
        "replaySpec.workload.static.images",
        "not rendered yet",
    ),
    "planner": (evaluated(role("agg"), planner={"mode": "sla"}), spec(), "candidate.planner", "not rendered yet"),
    "kv router": (evaluated(role("agg"), router={"mode": "kv"}), spec(), "candidate.router.mode", "roundRobin"),
    "trace": (
        evaluated(role("agg"), workload={"trace": {"path": "t.jsonl"}}),
        spec(),
        "replaySpec.workload.trace",
        "not supported yet",
    ),
    "overhead": (evaluated(role("agg"), hostOverheadMs=1.5), spec(), "replaySpec.hostOverheadMs", "no deployment"),
    "nextn": (evaluated(role("agg", nextn=2)), spec(), "candidate.roles.agg.nextn", "multi-token"),
    "cp": (
        evaluated(role("prefill", {"cp": 2}, **SGLANG), role("decode", **SGLANG)),
        spec("sglang", "0.5.16"),
        "candidate.roles.prefill.shape.cp",
        "context parallelism",
    ),
    "override": (
        evaluated(role("agg")),
        spec(overrides={"dgd": {"spec": {"priorityClassName": "high"}}}),
        "overrides.dgd",
        "not applied yet",
    ),
    "mixed experts on vLLM": (
        evaluated(role("agg", {"tp": 4, "moeTp": 2, "moeEp": 2})),
        spec(),
        "candidate.roles.agg.shape",
        "one way only",
    ),
    "dense data parallelism": (
        evaluated(role("agg", {"attentionDp": 4})),
        spec(),
        "candidate.roles.agg.shape",
        "dense model",
    ),
    "uneven nodes": (
        evaluated(role("agg", {"tp": 12})),
        spec(),
        "candidate.roles.agg.shape",
        "12 GPUs are wider than a node of 8",
    ),
    "ranks over nodes": (
        evaluated(role("agg", {"tp": 16, "attentionDp": 2, "moeEp": 32})),
        spec(),
        "candidate.roles.agg.shape",
        "cannot be shared|several ranks a node",
    ),
    "compute domain": (
        evaluated(role("agg", {"tp": 8}, sku="gb200")),
        spec(gpu={"sku": "gb200"}),
        "candidate.roles.agg.shape",
        "ComputeDomain",
    ),
    "kv format": (evaluated(role("agg", kv="int8")), spec(), "candidate.roles.agg.quantization.kv", "bfloat16, fp8"),
    "preemption": (
        evaluated(role("agg", preemption="oldest")),
        spec(),
        "candidate.roles.agg.engine.preemption",
        "newest",
    ),
    "fewer tokens than sequences": (
        evaluated(role("agg", maxNumSeqs=512, maxNumBatchedTokens=256)),
        spec(),
        "candidate.roles.agg.engine.maxNumBatchedTokens",
        "at least as many tokens",
    ),
    "limits that no flag expresses": (
        evaluated(role("agg", {"attention_dp": 8, "moe_ep": 8}, maxNumSeqs=2**29, blockSize=1, **SGLANG)),
        spec("sglang", "0.5.16"),
        "candidate.roles.agg.engine",
        "exceed a 32-bit number",
    ),
    "whole prompt in one pass": (
        evaluated(role("agg", enableChunkedPrefill=False, maxNumBatchedTokens=2048)),
        spec(),
        "candidate.roles.agg.engine.maxNumBatchedTokens",
        "one pass",
    ),
    "chunk of no whole pages": (
        evaluated(role("agg", maxNumBatchedTokens=8001, blockSize=64, **SGLANG)),
        spec("sglang", "0.5.16"),
        "candidate.roles.agg.engine.maxNumBatchedTokens",
        "whole pages of 64",
    ),
    "no node label": (
        evaluated(role("agg", sku="b300_sxm")),
        spec(gpu={"sku": "b300_sxm"}),
        "candidate.roles.agg.sku",
        "hardware.gpu.nodeSelector.b300_sxm",
    ),
    "other engine": (
        evaluated(role("agg", version="0.23.0", data="0.24.0")),
        spec(),
        "candidate.roles.agg.engineVersion",
        "Dynamo 1.4.2, which carries vllm 0.26.0",
    ),
    "no template": (
        evaluated(role("agg", version="0.23.0", data="0.24.0")),
        _image("1.3.1"),
        "runtime.image",
        "vLLM 0.23.0; no template renders that engine, only 0.26.0",
    ),
    "no version in the tag": (evaluated(role("agg")), _image("latest"), "runtime.versionOverride", "latest"),
    "data not bound": (
        evaluated(role("agg", data="0.27.0")),
        spec(),
        "candidate.roles.agg.dataVersion",
        "runtime.performanceDataVersion: {vllm: 0.27.0}",
    ),
    "broken chain": (
        evaluated(role("agg")),
        _image("1.4.2", data="0.26.0"),
        "runtime.performanceDataVersion.vllm",
        "only 0.24.0 and 0.27.0.*set runtime.performanceDataVersion: {vllm: 0.24.0}",
    ),
    "other model": (evaluated(role("agg"), model="other/model"), spec(), "candidate.model", MODEL),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_by_field_and_value(name: str) -> None:
    candidate, request, field, words = REFUSED[name]
    with pytest.raises(NotRenderableError, match=words) as caught:
        render_candidate(candidate, request, "qwen")
    assert caught.value.field == field
    assert repr(caught.value.value) in str(caught.value)


def test_a_tag_without_a_version_is_rendered_with_the_override_that_names_it() -> None:
    dgd = render_candidate(evaluated(role("agg")), _image("latest", "1.4.2"), "qwen").dgd
    assert [component["runtimeVersionOverride"] for component in dgd["spec"]["components"]] == ["1.4.2", "1.4.2"]


def test_a_tag_that_says_the_version_needs_no_override_field() -> None:
    dgd = render_candidate(evaluated(role("agg")), _image("1.4.2", "1.4.2"), "qwen").dgd
    assert not any("runtimeVersionOverride" in component for component in dgd["spec"]["components"])


def test_an_encoder_beside_aggregated_trtllm_workers_has_no_form() -> None:
    roles = (role(kind, backend="trtllm", version="1.3.0rc22", data="1.3.0rc20") for kind in ("agg", "encode"))
    with pytest.raises(NotRenderableError, match=r"candidate.topology = 'agg' .* needs topology disagg"):
        check_renderable(evaluated(*roles, encoder="Disaggregated"))


def test_a_revision_that_trtllm_cannot_name_is_refused() -> None:
    one = evaluated(role("agg", backend="trtllm", version="1.3.0rc22", data="1.3.0rc20"))
    known = deployment_of(spec(), evaluated(role("agg")))
    named = replace(known, model=replace(known.model, revision="abc"))
    with pytest.raises(NotRenderableError, match=r"modelRef.revision = 'abc' .* needs a local snapshot"):
        build_context(one, named, templates()[0], dgd_name="a")


def test_shapes_that_the_engine_version_cannot_put_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    one = evaluated(role("prefill", {"tp": 2}, **SGLANG), role("decode", {"tp": 4}, **SGLANG))
    check_renderable(one)
    listed = replace(table(), equal_tp={"sglang": ("0.5.16",)})
    monkeypatch.setattr(expressible, "table", lambda: listed)
    with pytest.raises(NotRenderableError, match="prefill tp 2 with decode tp 4"):
        check_renderable(one)
