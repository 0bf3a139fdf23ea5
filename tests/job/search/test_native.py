"""A native configuration is another notation of a request: the same search, and errors by its own keys."""

from typing import Any

import pytest
from dgdr_api.admission import DATA_ALONE_POLICIES, NATIVE_POLICIES, Accepted, Rejected, admit
from dgdr_api.document import read_document
from dgdr_api.errors import InvalidRequest
from dgdr_api.run import RunSpec
from dgdr_job.search.config import SmartSearchConfig
from dgdr_job.search.mapper import search_config
from dgdr_job.search.native import bound_by_data_alone, read_config, request_of_config
from dgdr_job.search.resolved import version_chains

from tests.job.search.runs import merged, run, unbound

BASE: dict[str, Any] = {
    "search_space": {"model_name": "Qwen/Qwen3-32B", "hardware_sku": "H200", "backend": ["sglang"], "gpu_budget": 16},
    "workload": {"isl": 3000, "osl": 300, "saturated": True},
    "goal": {"metrics": ["throughputPerGpu"], "sla": {"ttft_ms": 1000, "itl_ms": 40}},
    "sweep": {"fidelity": "static"},
}


def config(**changes: Any) -> SmartSearchConfig:
    return read_config(merged(BASE, changes))


def spec_of(native: SmartSearchConfig, **options: Any) -> RunSpec:
    policies = DATA_ALONE_POLICIES if bound_by_data_alone(native) else NATIVE_POLICIES
    verdict = admit(request_of_config(native, **options), policies=policies)
    assert isinstance(verdict, Accepted), verdict
    return verdict.spec


def searched(spec: RunSpec) -> SmartSearchConfig:
    chains = version_chains(spec)
    return search_config(spec, {backend: each.performance_data for backend, each in chains.items()})


def refusal(**changes: Any) -> list[str]:
    with pytest.raises(InvalidRequest) as refused:
        spec_of(config(**changes))
    return [str(problem) for problem in refused.value.problems]


RUNS: dict[str, RunSpec] = {
    "vllm with a pin": run(),
    "sglang": run("sglang"),
    "prices, caps and types": run(
        hardware={
            "gpu": {"sku": "H200", "prefillSku": "H100", "budget": 24, "minBudget": 3, "budgetBySku": {"H100": 16}}
        },
        objective={"metric": "throughputPerCost", "gpuHourCost": {"H100": 2.5, "H200": 3.25}},
    ),
    "a front under a range of KV loads": unbound(
        objective={"mode": "pareto"},
        workload={"static": {"saturated": None, "kvLoadRatioRange": {"min": 0.25, "max": 0.9}}},
    ),
    "images and encode workers": run(
        "sglang",
        modelRef={"name": "Qwen/Qwen3-VL-32B-Instruct"},
        hardware={"gpu": {"encoderSku": "b200_sxm"}},
        workload={"static": {"images": {"height": 448, "width": 500, "count": 2}}},
        search={"encoder": "Both", "parameters": {"search_space": {"encode": {"tp": [1, 2], "max_workers": 3}}}},
    ),
    "one KV load": unbound(workload={"static": {"saturated": None, "kvLoadRatio": 0.5}}),
    "concurrency": run(workload={"maxSequenceLength": 8192, "static": {"saturated": None, "concurrency": 64}}),
    "a rate, by the fewest GPUs": run(
        objective={"metric": "minGpus", "sla": {"ttftMs": None, "itlMs": None, "e2eMs": 9000.5, "strict": False}},
        workload={"static": {"saturated": None, "requestRate": 2.5}},
    ),
    "limits of the search": run(
        search={
            "topologies": ["disagg"],
            "budget": {
                "maxDuration": "1m30.25s",
                "maxRounds": 3,
                "candidatesPerRound": 8,
                "parallelEvaluations": 2,
                "maxEvaluationDuration": "250ms",
            },
        },
        recommendation={"maxCandidates": 7},
    ),
    "parameters": run(
        search={
            "router": [{"mode": "kv", "overlapCredit": 0.5}],
            "parameters": {
                "sweep": {"seed": 7, "max_trials": 9, "strategy": "guided"},
                "search_space": {
                    "gpus_per_worker": [2, 4],
                    "max_prefill_gpus": 8,
                    "max_decode_workers": 3,
                    "agg_max_num_batched_tokens": [2048],
                    "decode_gpu_memory_utilization": 0.8,
                    "prefill_enable_prefix_caching": [True, False],
                    "agg_block_size": [128],
                    "nextn": 2,
                    "kv_transfer_bandwidth": 25,
                },
                "rate_matching": {"disagg_ttft": 2, "prefill_batches": [1, 2]},
            },
        }
    ),
    "a long prompt": run(workload={"static": {"isl": 100_000}}),
}


@pytest.mark.parametrize("name", RUNS)
def test_a_request_and_the_native_form_mapped_from_it_are_one_search(name: str) -> None:
    mapped = searched(RUNS[name])
    again = read_config(mapped.model_dump(mode="json"))
    assert again == mapped
    assert searched(spec_of(again)) == mapped


def test_what_is_absent_means_what_it_means_in_a_request() -> None:
    asked = run("sglang", runtime={"performanceDataVersion": {"sglang": "0.5.14"}, "image": "sglang-runtime:1.3.1"})
    image = {"runtime": {"image": "nvcr.io/nvidia/ai-dynamo/sglang-runtime:1.3.1", "version_override": "1.3.1"}}
    expected = merged(searched(asked).model_dump(), image)
    assert searched(spec_of(config())).model_dump() == expected
    assert config().rate_matching.agg_ctx_tokens == ()
    assert searched(spec_of(config())).rate_matching.agg_ctx_tokens == (512, 1024, 2048, 3000, 4096, 6000)


@pytest.mark.parametrize(
    ("version", "image"),
    [
        (None, "sglang-runtime:1.3.1"),
        ("0.5.16", "sglang-runtime:1.4.2"),
        ({"sglang": "0.5.14"}, "sglang-runtime:1.3.1"),
    ],
)
def test_without_an_image_it_is_the_newest_runtime_of_exactly_these_engines(version: object, image: str) -> None:
    native = config(search_space={"backend_version": version})
    assert not bound_by_data_alone(native)
    assert spec_of(native).runtime.image == f"nvcr.io/nvidia/ai-dynamo/{image}"


@pytest.mark.parametrize(
    ("backends", "versions"), [(["vllm"], {"vllm": "0.27.0"}), (["sglang", "vllm"], {"vllm": "0.24.0"})]
)
def test_where_no_runtime_carries_the_engines_none_is_made_up(backends: list[str], versions: dict[str, str]) -> None:
    native = config(search_space={"backend": backends, "backend_version": versions})
    assert bound_by_data_alone(native)
    spec = spec_of(native)
    assert ":" not in spec.runtime.image
    chains = version_chains(spec)
    chain = chains["vllm"].by_sku["h200_sxm"]
    assert (chain.runtime, chain.engine, chain.performance_data) == ("none", versions["vllm"], versions["vllm"])
    assert chain.pinned, "an engine that no image carries is no bound version"


def test_an_image_that_carries_another_engine_pins_the_data() -> None:
    image = "nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.4.2"
    spec = spec_of(config(search_space={"backend": ["vllm"]}, runtime={"image": image}))
    chain = version_chains(spec)["vllm"].by_sku["h200_sxm"]
    assert (spec.runtime.image, chain.engine, chain.performance_data, chain.pinned) == (image, "0.26.0", "0.24.0", True)


def test_an_image_of_an_engine_without_a_template_is_refused() -> None:
    image = {"image": "nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.3.1"}
    verdict = admit(
        request_of_config(config(search_space={"backend": ["vllm"]}, runtime=image)), policies=NATIVE_POLICIES
    )
    assert isinstance(verdict, Rejected)
    assert "no template renders that engine" in verdict.message


def test_a_local_model_is_in_the_run_by_its_content() -> None:
    found = spec_of(config(search_space={"model_name": "mine"}), local_digest="0123456789abcdef" + "f" * 48)
    assert found.model_ref.config is not None
    assert found.model_ref.config.config_map.name == "model-0123456789abcdef"


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"search_spaces": {}}, "search_spaces: is no key of the engine; near: search_space"),
        (
            {"search_space": {"gpu_bugdet": 8}},
            "search_space.gpu_bugdet: is no key of the engine; near: gpu_budget, min_gpu_budget, gpu_budget_by_sku",
        ),
        ({"sweep": 3}, "sweep: must be an object"),
        ({"goal": None}, "goal: is required"),
        ({"search_space": {"hardware_sku": None}}, "search_space.hardware_sku: is required"),
        ({"search_space": {"gpu_budget": "16"}}, 'search_space.gpu_budget: must be a whole number, found "16"'),
        ({"search_space": {"gpu_budget": 65_537}}, "search_space.gpu_budget: must be at most 65536, found 65537"),
        ({"search_space": {"nextn": 6}}, "search_space.nextn: must be at most 5, found 6"),
        ({"search_space": {"backend": []}}, "search_space.backend: has 0 values, at least 1 are needed, found []"),
        ({"search_space": {"backend": ["sglang", "sglang"]}}, "search_space.backend: no value may be given twice"),
        (
            {"search_space": {"deployment_mode": ["both"]}},
            'search_space.deployment_mode.0: must be agg or disagg, found "both"',
        ),
        ({"search_space": {"backend_version": 0.5}}, "search_space: backend_version must be a version, or versions by"),
        (
            {"search_space": {"backend_version": {"sglang": "0.5.14", "vllm": "0.24.0"}}},
            "search_space.backend_version: names vllm, which is not among backend",
        ),
        (
            {"workload": {"concurrency": 4}},
            "workload: give exactly one of concurrency, request_rate, saturated, kv_load_ratios; found concurre",
        ),
        ({"workload": {"saturated": None}}, "workload: give exactly one of concurrency, request_rate, saturated, kv_l"),
        (
            {"workload": {"saturated": None, "kv_load_ratios": [0.2, 0.4]}},
            "workload.kv_load_ratios: takes one ratio, or a range of five in equal factors",
        ),
        ({"goal": {"metrics": ["ttft", "throughput"]}}, "goal.metrics: has 2; pareto: true takes two to four metrics"),
        ({"goal": {"metrics": ["minGpus"]}}, "workload.saturated: minGpus needs a load; saturated asks for capacity"),
        ({"goal": {"sla": {"itl_ms": None}}}, "goal.sla: give either e2eMs alone, or ttftMs and itlMs together"),
        ({"sweep": {"reserve": 21}}, "sweep.reserve: must be 4 times the candidates that are published, found 21"),
        ({"sweep": {"max_seconds": 0}}, "sweep.max_seconds: must be above 0, found 0"),
        (
            {"sweep": {"strategy": "random"}},
            'sweep.strategy: must be auto, exhaustive or guided, found "random"',
        ),
        ({"search_space": {"model_name": "../x"}}, "search_space.model_name: must be a Hugging Face id or a name"),
        ({"adapters": {"router": []}}, "adapters.router: has 0 values, at least 1 are needed, found []"),
        ({"rate_matching": {"decode_rate": 1.5}}, "rate_matching.decode_rate: must be at most 1, found 1.5"),
    ],
)
def test_what_is_wrong_is_said_by_the_keys_of_the_configuration(changes: dict[str, Any], problem: str) -> None:
    found = refusal(**changes)
    assert found[0].startswith(problem), found


def test_numbers_of_yaml_that_are_none_are_refused() -> None:
    text = "{search_space: {model_name: m, hardware_sku: H200, gpu_budget: .inf}, workload: {isl: 1, osl: 1, "
    text += "request_rate: 1e400}, goal: {metrics: [ttft], sla: {e2e_ms: .nan}}}"
    with pytest.raises(InvalidRequest) as refused:
        read_config(read_document(text))
    assert [str(problem) for problem in refused.value.problems] == [
        "search_space.gpu_budget: must be a whole number, found Infinity",
        "workload.request_rate: must be a finite number, found Infinity",
        "goal.sla.e2e_ms: must be a finite number, found NaN",
    ]


VL = {"model_name": "Qwen/Qwen3-VL-32B-Instruct"}
IMAGES = {"height": 448, "width": 448}


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        (
            {"search_space": {"encode": {"tp": [1]}}},
            "search_space: encode.tp needs encoder disaggregated or both",
        ),
        (
            {"search_space": {"encode": {"hardware_sku": "l40s"}}},
            "search_space: encode.hardware_sku needs encoder disaggregated or both",
        ),
        (
            {"search_space": {"encoder": "both"}},
            "search_space.encoder both needs workload.images",
        ),
        (
            {"search_space": {"encoder": "both", "encode": {"batch_size": [16]}}, "workload": {"images": IMAGES}},
            "search_space.encode.batch_size.0: must be at most 8, found 16",
        ),
        (
            {"workload": {"images": {"height": 0, "width": 448}}},
            "workload.images.height: must be at least 1, found 0",
        ),
        (
            {"workload": {"images": {"height": 448, "width": 65_537}}},
            "workload.images.width: must be at most 65536, found 65537",
        ),
        (
            {"workload": {"images": IMAGES, "visual_tokens": 196}},
            "workload.visual_tokens: follows from workload.images and the model; leave it out",
        ),
        (
            {
                "search_space": {"encoder": "disaggregated", "encode": {"tp": [8]}, "gpu_budget_by_sku": {"H200": 8}},
                "workload": {"images": IMAGES},
            },
            "search_space.gpu_budget_by_sku: allows 8 GPUs of h200_sxm, but a agg deployment takes 9 at least",
        ),
    ],
)
def test_encode_workers_and_images_that_cannot_be(changes: dict[str, Any], text: str) -> None:
    space = merged({"search_space": VL}, changes)
    assert any(text in found for found in refusal(**space)), refusal(**space)
