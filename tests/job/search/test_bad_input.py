"""What contradicts itself or cannot be is refused with its numbers before a model is read or anything is timed."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest
from dgdr_api.admission import DATA_ALONE_POLICIES, NATIVE_POLICIES, Policies, Rejected, admit
from dgdr_api.document import read_document
from dgdr_api.errors import InvalidRequest
from dgdr_api.parse import parse_request
from dgdr_api.request import DynamoGraphDeploymentRequest
from dgdr_job.catalog import aic
from dgdr_job.catalog.cache import DiskCache
from dgdr_job.catalog.catalog import Catalog
from dgdr_job.catalog.provenance import SourceShares
from dgdr_job.main import check
from dgdr_job.search.native import bound_by_data_alone, key_of, read_config, request_of_config

from tests.job.search.runs import run, search

REQUEST = """
apiVersion: sweeper.dgdr.dev/v1beta2
kind: DynamoGraphDeploymentRequest
metadata: {name: bad}
spec:
  modelRef: {name: Qwen/Qwen3-32B}
  backends: [BACKEND]
  runtime: {image: nvcr.io/nvidia/ai-dynamo/BACKEND-runtime:1.4.2, performanceDataVersion: {BACKEND: DATA}}
  hardware: {gpu: {GPU}}
  workload: {static: {isl: 3000, osl: 300, LOAD}, maxSequenceLength: LENGTH}
  objective: {mode: optimize, metric: METRIC, sla: {ttftMs: 1000, itlMs: ITL}}
  search: {fidelity: static, topologies: [TOPOLOGIES], parameters: {PARAMETERS}}
"""
NATIVE = """
search_space:
  {model_name: Qwen/Qwen3-32B, backend: [BACKEND], backend_version: DATA, deployment_mode: [TOPOLOGIES], GPU}
workload: {isl: 3000, osl: 300, LOAD}
goal: {metrics: [METRIC], sla: {ttft_ms: 1000, itl_ms: ITL}}
sweep: {fidelity: static}
rate_matching: {PARAMETERS}
"""
PLAIN = {
    "BACKEND": "vllm",
    "DATA": "0.24.0",
    "GPU": "sku: H200, budget: 16",
    "LOAD": "saturated: true",
    "LENGTH": "8192",
    "METRIC": "throughputPerGpu",
    "ITL": "40",
    "TOPOLOGIES": "agg, disagg",
    "PARAMETERS": "",
}
PLAIN_NATIVE = PLAIN | {"GPU": "hardware_sku: H200, gpu_budget: 16"}


@pytest.fixture
def no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """No model is read, and no data opened."""

    def read(*_: object) -> NoReturn:
        raise AssertionError("a model was read")

    for name in ("model", "hardware", "kv", "performance", "recall", "take_model"):
        monkeypatch.setattr(Catalog, name, read)


def written(template: str, values: dict[str, str]) -> str:
    for word, value in values.items():
        template = template.replace(word, value)
    return template


def of_request(text: str) -> tuple[DynamoGraphDeploymentRequest, Policies | None]:
    return parse_request(text), None


def of_native(text: str) -> tuple[DynamoGraphDeploymentRequest, Policies | None]:
    config = read_config(read_document(text))
    return request_of_config(config), DATA_ALONE_POLICIES if bound_by_data_alone(config) else NATIVE_POLICIES


def refusal(text: str, read: Callable[[str], tuple[DynamoGraphDeploymentRequest, Policies | None]]) -> str:
    """Everything that is checked of an input before its search begins."""
    try:
        request, policies = read(text)
        named = str if policies is None else key_of
        verdict = admit(request, policies=policies)
        if isinstance(verdict, Rejected):
            return "\n".join(f"{named(each.field)}: {each.message}" for each in verdict.rejections)
        check(verdict.spec)
    except InvalidRequest as error:
        return str(error)
    return ""


REFUSED: list[tuple[str, dict[str, str], str]] = [
    (
        "a decode SKU without disaggregation",
        {"GPU": "sku: H200, decodeSku: H100, budget: 16", "TOPOLOGIES": "agg"},
        "spec.hardware.gpu.decodeSku: decodeSku needs disagg in search.topologies",
    ),
    (
        "a SKU without data for the backend",
        {"BACKEND": "sglang", "DATA": "0.5.16", "GPU": "sku: b60, budget: 16, nodeSelector: {b60: {a: b}}"},
        (
            "spec.backends: image nvcr.io/nvidia/ai-dynamo/sglang-runtime:1.4.2 is Dynamo 1.4.2, which carries SGLang "
            "0.5.16; there is no SGLang performance data for b60: b60 has data for vllm only"
        ),
    ),
    (
        "a SKU without data of the version",
        {"DATA": "0.25.0"},
        (
            "spec.runtime.performanceDataVersion.vllm: image nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.4.2 is Dynamo "
            "1.4.2, which carries vLLM 0.26.0; performance data 0.25.0, pinned by runtime.performanceDataVersion, does "
            "not exist for vllm on h200_sxm, only 0.24.0 and 0.27.0"
        ),
    ),
    (
        "a decode SKU without data of the version",
        {"GPU": "sku: H200, decodeSku: A100, budget: 16, nodeSelector: {A100: {a: b}}"},
        (
            "spec.runtime.performanceDataVersion.vllm: image nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.4.2 is Dynamo "
            "1.4.2, which carries vLLM 0.26.0; performance data 0.24.0, pinned by runtime.performanceDataVersion, does "
            "not exist for vllm on a100_sxm, only 0.14.0"
        ),
    ),
    (
        "a least budget above the budget",
        {"GPU": "sku: H200, budget: 8, minBudget: 9"},
        "spec.hardware.gpu.minBudget: minBudget must not exceed budget",
    ),
    (
        "a least budget above the caps of the SKUs",
        {"GPU": "sku: H200, budget: 16, minBudget: 9, budgetBySku: {H200: 8}"},
        "spec.hardware.gpu.minBudget: is 9, but budgetBySku allows 8 GPUs in all",
    ),
    (
        "a cap of a SKU that no role has",
        {"GPU": "sku: H200, budget: 16, budgetBySku: {H100: 8}"},
        "spec.hardware.gpu.budgetBySku: caps H100, which no role of this search uses: it has h200_sxm",
    ),
    (
        "caps of the roles below the least budget",
        {
            "GPU": "sku: H200, budget: 16, minBudget: 9",
            "TOPOLOGIES": "disagg",
            "PARAMETERS": "search_space: {max_prefill_gpus: 4, max_decode_workers: 2, gpus_per_worker: [1, 2]}",
        },
        "search.parameters.search_space.min_gpu_budget: is 9, but the caps allow 8 GPUs of a disagg deployment",
    ),
    (
        "a cap below the smallest worker",
        {"TOPOLOGIES": "disagg", "PARAMETERS": "search_space: {max_prefill_gpus: 2, gpus_per_worker: [4, 8]}"},
        (
            "search.parameters.search_space.max_prefill_gpus: is 2, but the smallest of gpus_per_worker is 4: no "
            "prefill worker fits"
        ),
    ),
    (
        "a cap of a role that is not searched",
        {"TOPOLOGIES": "agg", "PARAMETERS": "search_space: {max_decode_workers: 2}"},
        "search.parameters.search_space.max_decode_workers: caps a role of disagg, which deployment_mode leaves out",
    ),
    (
        "a budget below the smallest pair of workers",
        {"TOPOLOGIES": "disagg", "PARAMETERS": "search_space: {gpus_per_worker: [16]}"},
        "search.parameters.search_space.gpu_budget: is 16, but a disagg deployment of gpus_per_worker takes 32 at",
    ),
    (
        "a budget below the only size of a worker",
        {"TOPOLOGIES": "agg", "GPU": "sku: H200, budget: 8", "PARAMETERS": "search_space: {gpus_per_worker: [16]}"},
        "search.parameters.search_space.gpu_budget: is 8, but the smallest of gpus_per_worker is 16: no agg worker",
    ),
    (
        "a longest sequence below a request",
        {"LENGTH": "3299"},
        "spec.workload.maxSequenceLength: is 3299, but isl 3000 + osl 300 = 3300; give at least that",
    ),
    ("an infinite bound", {"ITL": ".inf"}, "spec.objective.sla.itlMs: "),
    ("a bound that is no number", {"ITL": ".nan"}, "spec.objective.sla.itlMs: "),
    ("a rate beyond all numbers", {"LOAD": "requestRate: 1e400"}, "spec.workload.static.requestRate: "),
    ("an infinite budget", {"GPU": "sku: H200, budget: .inf"}, "spec.hardware.gpu.budget: "),
    (
        "an infinite constant",
        {"PARAMETERS": "rate_matching: {disagg_ttft: -.inf}"},
        "spec.search.parameters.rate_matching.disagg_ttft: ",
    ),
]
REFUSED_NATIVE: list[tuple[str, dict[str, str], str]] = [
    (
        "a decode SKU without disaggregation",
        {"GPU": "hardware_sku: H200, decode_hardware_sku: H100", "TOPOLOGIES": "agg"},
        "search_space: decode_hardware_sku needs disagg in deployment_mode",
    ),
    (
        "a SKU without data for the backend",
        {"BACKEND": "sglang", "DATA": "null", "GPU": "hardware_sku: b60"},
        (
            "search_space: the data version is not given; there is no SGLang performance data for b60: b60 has data "
            "for vllm only"
        ),
    ),
    (
        "a SKU without data of the version",
        {"DATA": "0.25.0"},
        (
            "search_space.backend_version.vllm: is 0.25.0, which h200_sxm has no performance data of; it has 0.24.0 "
            "and 0.27.0"
        ),
    ),
    (
        "default versions that differ and have none in common",
        {"DATA": "null", "GPU": "hardware_sku: H200, prefill_hardware_sku: A100"},
        (
            "search_space: the default data of vLLM is not the same on every GPU type (h200_sxm 0.24.0, a100_sxm "
            "0.14.0); no version exists on all of them"
        ),
    ),
    ("a SKU that does not exist", {"GPU": "hardware_sku: H2000"}, "search_space.hardware_sku: GPU type 'H2000' is not"),
    (
        "a least budget above the budget",
        {"GPU": "hardware_sku: H200, gpu_budget: 8, min_gpu_budget: 9"},
        "search_space.min_gpu_budget: is 9, gpu_budget is 8",
    ),
    (
        "a cap of a SKU that no role has",
        {"GPU": "hardware_sku: H200, gpu_budget_by_sku: {H100: 8}"},
        "search_space.gpu_budget_by_sku: caps h100_sxm, which no role of this search uses: it has h200_sxm",
    ),
    (
        "caps of two SKUs that no pair of workers fits",
        {
            "TOPOLOGIES": "disagg",
            "GPU": "hardware_sku: H200, gpus_per_worker: [4], gpu_budget_by_sku: {H200: 7}",
        },
        "search_space.gpu_budget_by_sku: allows 7 GPUs of h200_sxm, but a disagg deployment takes 8 at least",
    ),
    (
        "a longest sequence below a request",
        {"GPU": "hardware_sku: H200, context_length: 3299"},
        "search_space.context_length: is 3299, but isl 3000 + osl 300 = 3300; give at least that",
    ),
    ("an infinite bound", {"ITL": ".inf"}, "goal.sla.itl_ms: must be a finite number, found Infinity"),
    ("a rate beyond all numbers", {"LOAD": "request_rate: 1e400"}, "workload.request_rate: must be a finite number"),
    (
        "a constant that is no number",
        {"PARAMETERS": "decode_rate: .nan"},
        "rate_matching.decode_rate: must be",
    ),
]


@pytest.mark.usefixtures("no_model")
@pytest.mark.parametrize(("changes", "message"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_a_request(changes: dict[str, str], message: str) -> None:
    assert refusal(written(REQUEST, PLAIN | changes), of_request).startswith(message)


@pytest.mark.usefixtures("no_model")
@pytest.mark.parametrize(
    ("changes", "message"), [case[1:] for case in REFUSED_NATIVE], ids=[case[0] for case in REFUSED_NATIVE]
)
def test_a_native_configuration(changes: dict[str, str], message: str) -> None:
    assert refusal(written(NATIVE, PLAIN_NATIVE | changes), of_native).startswith(message)


@pytest.mark.usefixtures("no_model")
def test_the_same_inputs_without_the_fault_are_taken() -> None:
    assert refusal(written(REQUEST, PLAIN), of_request) == ""
    assert refusal(written(NATIVE, PLAIN_NATIVE), of_native) == ""


@pytest.mark.usefixtures("no_model")
def test_differing_defaults_name_the_versions_that_would_do(monkeypatch: pytest.MonkeyPatch) -> None:
    versions = {"h200_sxm": ("0.24.0", "0.27.0"), "h100_sxm": ("0.27.0", "0.24.0")}
    monkeypatch.setattr("dgdr_api.versions.data_versions", lambda _, sku: versions[sku])
    changes = {"DATA": "null", "GPU": "hardware_sku: H200, decode_hardware_sku: H100"}
    assert refusal(written(NATIVE, PLAIN_NATIVE | changes), of_native) == (
        "search_space: the default data of vLLM is not the same on every GPU type (h200_sxm 0.24.0, h100_sxm 0.27.0); "
        "all have 0.24.0 and 0.27.0: set one in search_space.backend_version"
    )


def test_a_format_that_the_gpu_lacks_is_refused_before_anything_is_estimated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def estimated(*_: object, **__: object) -> NoReturn:
        raise AssertionError("something was estimated")

    for name in ("prefill_ms", "decode_total_ms", "aggregated", "kv", "default_memory_fraction"):
        monkeypatch.setattr(aic.WorkerModel, name, estimated)
    spec = run(
        modelRef={"name": "Qwen/Qwen3-32B-FP8"},
        hardware={"gpu": {"sku": "A100"}},
        runtime={"performanceDataVersion": {"vllm": "0.14.0"}},
    )
    told = search(spec, Catalog(DiskCache(tmp_path)))
    assert told.completed.outcome == "Unsupported"
    assert [(each.reason, each.message) for each in told.resolved.coverage] == [
        (
            "UnsupportedDtype",
            (
                "Qwen/Qwen3-32B-FP8 on a100_sxm with vllm 0.14.0: the checkpoint's weights are fp8_block, and this GPU "
                "has no FP8 compute; use a bfloat16 checkpoint, or a GPU with FP8"
            ),
        )
    ] * 2


@pytest.mark.parametrize("value", [math.inf, math.nan, -1.0, 0.0])
@pytest.mark.parametrize("call", ["predict_prefill_latency", "predict_decode_latency"])
def test_an_estimate_that_is_no_positive_finite_time_is_no_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: float, call: str
) -> None:
    """The whole search ends as an honest no; nothing is ranked by such a number."""

    class Broken:
        def __getattr__(self, name: str) -> Any:
            return lambda *_: value if name == call else 5.0

    monkeypatch.setattr(aic.WorkerModel, "_engine", Broken())
    monkeypatch.setattr(aic.WorkerModel, "prefill_shares", lambda *_: SourceShares(1.0, 0.0, 0.0, 0.0))
    monkeypatch.setattr(aic.WorkerModel, "decode_shares", lambda *_: SourceShares(1.0, 0.0, 0.0, 0.0))
    told = search(run(search={"topologies": ["disagg"]}), Catalog(DiskCache(tmp_path)))
    assert told.completed.outcome == "Unsupported"
    (coverage,) = told.resolved.coverage
    assert coverage.reason == "MissingOperatorData"  # the nearest of a condition's reasons; the message says which
    assert coverage.message.endswith(f": {value} is not a positive time")
