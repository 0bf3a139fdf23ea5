"""Every reason of engine.md section 2 that a tuple can have, each with what it must name; and supported-except."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from dgdr_api import expressible, reasons
from dgdr_api.errors import UnknownSku
from dgdr_api.model_ref import ModelRef
from dgdr_job.catalog.catalog import Catalog
from dgdr_job.catalog.errors import Reason, Unsupported
from dgdr_job.search import branches, preflight
from dgdr_job.search.coverage import Tuple, tuple_coverage
from dgdr_job.search.mapper import search_config
from dgdr_job.search.resolved import version_chains
from dgdr_job.timing.rows import prefill_rows

from tests.job.search.runs import Events, run, search, unbound

MODELS = Path(__file__).parents[2] / "data" / "models"
NEMOTRON = "nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-FP8"
QWEN = Tuple("Qwen/Qwen3-32B", "H200", "vllm", "agg")

REFUSED: list[tuple[Tuple, str, list[str]]] = [
    (replace(QWEN, model="Qwen/Qwen3-33B"), "UnknownModel", ["'Qwen/Qwen3-33B'", "did you mean Qwen/Qwen3-32B"]),
    (replace(QWEN, backend="sglang", sku="b60"), "NoData", ["sglang on b60", "b60 has none"]),
    (replace(QWEN, data_version="0.1"), "NoData", ["no performance data 0.1", "h200_sxm has 0.24.0 and 0.27.0"]),
    (
        replace(QWEN, topology="disagg", prefill_sku="A100"),
        "NoData",
        ["no one version", "a100_sxm has 0.14.0; h200_sxm has 0.24.0 and 0.27.0"],
    ),
    (
        replace(QWEN, model=NEMOTRON, backend="sglang", sku="H100", budget=4),
        "MissingOperatorData",
        ["the MoE table has no row for quant fp8, distribution uniform, topk 22, num_experts 512", "another backend"],
    ),
    (
        replace(QWEN, model="Qwen/Qwen3-32B-FP8", sku="A100"),
        "UnsupportedDtype",
        ["the checkpoint's weights are fp8_block, and this GPU has no FP8 compute", "use a bfloat16 checkpoint"],
    ),
    (
        replace(QWEN, model="deepseek-ai/DeepSeek-R1", sku="L40S"),
        "NoKvFeasibleShape",
        ["tp16-ep16: 0 KV tokens per rank, more than 3,300 are needed"],
    ),
    (
        replace(QWEN, model="deepseek-ai/DeepSeek-R1", budget=7),
        "BudgetTooSmall",
        ["takes 8 GPUs", "hardware.gpu.budget is 7"],
    ),
    (replace(QWEN, isl=60_000), "UnsupportedFeature", ["60,300 tokens", "at most 40,960 tokens"]),
]


@pytest.mark.parametrize(("asked", "reason", "words"), REFUSED, ids=[f"{case[1]} {case[0].sku}" for case in REFUSED])
def test_each_reason_names_what_is_missing(catalog: Catalog, asked: Tuple, reason: str, words: list[str]) -> None:
    found = tuple_coverage(catalog, asked)
    assert (found.supported, found.reason) == (False, reason)
    for word in words:
        assert word in found.message
    assert len(found.message) < 400
    assert reasons.reason_named(reasons.SUPPORTED, found.reason).status == "False"


def test_an_unknown_gpu_is_named_with_those_that_resemble_it(catalog: Catalog) -> None:
    with pytest.raises(UnknownSku, match="h200_sxm"):
        tuple_coverage(catalog, replace(QWEN, sku="h200_sxn"))
    with pytest.raises(Unsupported) as refused:
        catalog.hardware("h200_sxn")
    assert refused.value.reason is Reason.UNKNOWN_HARDWARE


def told(catalog: Catalog, **changes: Any) -> list[tuple[str, str]]:
    return [(each.reason, each.message) for each in search(run(**changes), catalog).resolved.coverage]


def test_no_legal_shape_names_the_rules(catalog: Catalog) -> None:
    space = {"search_space": {"gpus_per_worker": [3]}}
    found = told(catalog, search={"parameters": space})
    assert [reason for reason, _ in found] == ["NoLegalShape"] * 2
    assert "64 attention heads do not split over tp 3" in found[0][1]


def test_a_topology_without_a_form_is_refused(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the rule says of an encoder beside aggregated workers, where a branch has one."""
    with_encoder = expressible.topology_problem("trtllm", frozenset({"agg", "encode"}))
    assert with_encoder is not None
    monkeypatch.setattr(branches, "topology_problem", lambda _, kinds: with_encoder if "agg" in kinds else None)
    assert told(catalog) == [("UnsupportedTopology", with_encoder), ("Supported", "")]


def test_a_time_that_is_no_number_is_no_data(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise Unsupported(Reason.INVALID_DATA, "nan is not a positive time")

    monkeypatch.setattr(preflight, "prefill_rows", broken)
    assert told(catalog) == [("MissingOperatorData", "nan is not a positive time")] * 2


def test_a_probe_is_no_wider_than_the_budget(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only tp1 has no data here: with one GPU nothing else can stand in for it."""
    real = prefill_rows

    def partly(catalog: Catalog, identity: object, shape: object, **how: object) -> object:
        if shape.gpus == 1:  # type: ignore[attr-defined]
            raise Unsupported(Reason.MISSING_OPERATOR_DATA, "tp1 was not measured")
        return real(catalog, identity, shape, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(preflight, "prefill_rows", partly)
    assert tuple_coverage(catalog, replace(QWEN, budget=2)).supported
    assert tuple_coverage(catalog, replace(QWEN, budget=1)).message == "tp1 was not measured"


@pytest.fixture(scope="module")
def spanning(catalog: Catalog) -> Events:
    """DeepSeek-R1 on H100: 8 GPUs do not hold it, a worker takes two nodes."""
    return search(
        unbound(
            backend="sglang",
            modelRef={"name": "deepseek-ai/DeepSeek-R1"},
            hardware={"gpu": {"sku": "h100_sxm", "budget": 32}},
        ),
        catalog,
    )


def test_a_worker_that_spans_nodes_is_supported_except_the_interconnect(spanning: Events) -> None:
    for each in spanning.resolved.coverage:
        assert (each.supported, each.not_modelled) == (True, ("multinode_interconnect",))
    for candidate in spanning.reserve:
        spans = [role for role in candidate.candidate.roles if role.shape.gpus > 8]
        text = candidate.evaluation.not_modelled.get("multinode_interconnect", "")
        assert all(f"{role.kind} {role.shape.label} on nodes of 8 GPUs" in text for role in spans)
        assert bool(text) == bool(spans)


def test_a_worker_within_a_node_is_modelled(catalog: Catalog) -> None:
    told_ = search(unbound(), catalog)
    assert all(each.not_modelled == () for each in told_.resolved.coverage)
    for each in told_.reserve:
        assert bool(each.evaluation.not_modelled) == any(role.shape.gpus > 8 for role in each.candidate.roles)


def test_what_runs_beside_is_added_to_what_is_supported_only(catalog: Catalog) -> None:
    assert tuple_coverage(catalog, replace(QWEN, not_modelled=("kvbm",))).not_modelled == ("kvbm",)
    refused = tuple_coverage(catalog, replace(QWEN, model="no/such", not_modelled=("kvbm",)))
    assert (refused.supported, refused.not_modelled) == (False, ())


def test_implausible_data_is_flagged_and_still_supported(catalog: Catalog) -> None:
    """perf-data.md section 7.1: fp8_block on Blackwell with vLLM 0.24.0 has a floor of 0.2 to 0.5 ms a product."""
    model = str(MODELS / "Qwen3-VL-30B-A3B-Instruct-FP8")
    found = tuple_coverage(catalog, Tuple(model, "gb200", "vllm", "agg", budget=1))
    assert found.supported
    assert [flag.split(":")[0] for flag in found.flags] == ["implausible data", "quantization"]
    assert "agg decode step 55.1 ms, roofline 0.3 ms" in found.message


def test_a_format_that_is_resolved_otherwise_is_shown(catalog: Catalog) -> None:
    found = tuple_coverage(catalog, replace(QWEN, model="deepseek-ai/DeepSeek-R1", backend="sglang"))
    assert found.flags == ("quantization: attention is bfloat16, the checkpoint declares fp8",)


def test_each_role_is_judged_on_its_own_gpus(catalog: Catalog) -> None:
    mixed = replace(QWEN, topology="disagg", prefill_sku="H100")
    found = tuple_coverage(catalog, mixed)
    assert found.supported
    assert found.skus == {"prefill": "h100_sxm", "decode": "h200_sxm"}
    same = tuple_coverage(catalog, replace(mixed, prefill_sku="H200"))
    assert same == tuple_coverage(catalog, replace(mixed, prefill_sku=None))


def test_a_configuration_with_code_of_its_own_is_noted(catalog: Catalog, tmp_path: Path) -> None:
    plain = MODELS / "Llama-3.3-70B-Instruct-FP8-dynamic" / "config.json"
    config = json.loads(plain.read_text()) | {"auto_map": {"AutoConfig": "configuration_mine.Mine"}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    found = tuple_coverage(catalog, Tuple(str(tmp_path), "H200", "vllm", "agg"))
    assert found.supported
    assert "auto_map" in found.message
    assert not catalog.model("deepseek-ai/DeepSeek-R1").needs_remote_code
    spec = run()
    chains = version_chains(spec)
    config = search_config(spec, {"vllm": "0.24.0"})
    space = config.search_space.model_copy(update={"model_name": str(tmp_path)})
    config = config.model_copy(update={"search_space": space})

    def judged(ref: ModelRef) -> str:
        return preflight.preflight(catalog, config, "vllm", "agg", chains["vllm"], model_ref=ref).coverage.reason

    assert judged(ModelRef(name="mine")) == "UnsupportedFeature"
    assert judged(ModelRef(name="mine", remote_code="AlwaysTrust")) == "Supported"
