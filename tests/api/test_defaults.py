from typing import Any

import pytest
from dgdr_api.base import wire
from dgdr_api.defaults import run_spec
from dgdr_api.errors import UnknownSku
from dgdr_api.identity import input_hash
from dgdr_api.parse import request_of
from dgdr_api.run import RunSpec

from tests.api.objects import request


def spec_of(*changes: tuple[str, Any]) -> RunSpec:
    return run_spec(request_of(request(*changes)).spec)


def static_of(**load: Any) -> dict[str, Any]:
    static = {"isl": 100, "osl": 10} | load
    changes: list[tuple[str, Any]] = [("workload", {"static": static})]
    if "kvLoadRatioRange" in load:
        changes.append(("objective", {"mode": "pareto"}))
    if "saturated" in load:
        changes.append(("search", {"fidelity": "static"}))
    return wire(spec_of(*changes))["workload"]["static"]  # type: ignore[no-any-return]


def test_every_default_of_a_minimal_request_is_explicit() -> None:
    assert wire(spec_of()) == {
        "modelRef": {"name": "Qwen/Qwen3-32B", "remoteCode": "Never"},
        "backends": ["sglang"],
        "runtime": {
            "image": "nvcr.io/nvidia/ai-dynamo/sglang-runtime:1.4.2",
            "versionOverride": "1.4.2",
            "performanceDataVersion": {"sglang": "0.5.16"},
        },
        "hardware": {
            "gpu": {
                "sku": "h200_sxm",
                "prefillSku": "h200_sxm",
                "decodeSku": "h200_sxm",
                "budget": 16,
                "budgetBySku": {},
                "perNode": 8,
                "nodeSelector": {"h200_sxm": {"nvidia.com/gpu.product": "NVIDIA-H200"}},
            }
        },
        "workload": {
            "static": {
                "isl": 3000,
                "osl": 300,
                "concurrency": 64,
                "arrival": "poisson",
                "requests": 640,
                "warmupRequests": 64,
                "lengthSpread": 1.0,
                "sharedPrefixRatio": 0.0,
                "prefixGroups": 0,
                "turnsPerSession": 1,
                "interTurnDelayMs": 0.0,
                "turnHistory": "fresh",
            }
        },
        "objective": {"mode": "optimize", "metric": "throughputPerGpu"},
        "search": {
            "fidelity": "replay",
            "topologies": ["agg", "disagg"],
            "encoder": "Inline",
            "router": [
                {
                    "mode": "roundRobin",
                    "overlapCredit": 1.0,
                    "prefillLoadScale": 1.0,
                    "temperature": 0.0,
                    "prefillLoadModel": {"type": "none"},
                }
            ],
            "budget": {"maxEvaluationDuration": "600s"},
            "parameters": {},
        },
        "recommendation": {"maxCandidates": 5},
        "overrides": {},
    }


@pytest.mark.parametrize(
    ("load", "requests", "warmup"),
    [
        ({"concurrency": 64}, 640, 64),
        ({"concurrency": 1}, 100, 1),
        ({"concurrency": 64, "requests": 200}, 200, 20),
        ({"concurrency": 64, "requests": 5}, 5, 0),
        ({"concurrency": 2**31 - 1}, 2**31 - 1, (2**31 - 1) // 10),
        ({"requestRate": 2.5}, 1500, 0),
        ({"requestRate": 0.01}, 100, 0),
        ({"requestRate": 0.3333}, 200, 0),
        ({"saturated": True}, 100, 0),
        ({"kvLoadRatio": 0.5}, None, None),
        ({"kvLoadRatio": 0.5, "requests": 50}, 50, None),
        ({"kvLoadRatio": 0.5, "warmupRequests": 5}, None, 5),
        ({"kvLoadRatioRange": {"min": 0.1, "max": 0.9}}, None, None),
        ({"concurrency": 4, "warmupRequests": 7}, 100, 7),
        ({"concurrency": 4, "warmupRequests": 500}, 100, 99),
    ],
)
def test_requests_and_warm_up(load: dict[str, Any], requests: int | None, warmup: int | None) -> None:
    static = static_of(**load)

    assert static.get("requests") == requests
    assert static.get("warmupRequests") == warmup


@pytest.mark.parametrize(
    "changes",
    [
        (),
        (("objective", {"mode": "pareto"}),),
        (("workload.static", {"isl": 1, "osl": 1, "kvLoadRatio": 0.5}),),
        (("runtime.image", "x/sglang-runtime:latest"), ("runtime.versionOverride", "1.4.2")),
        (("runtime.image", "x/sglang-runtime:1.1.0-dev.2"),),
        (("runtime.image", "x/tensorrtllm-runtime:0.8.1.post2"), ("runtime.versionOverride", "0.8.1")),
        (("hardware.gpu", {"sku": "H100-SXM5-80GB", "decodeSku": "GB200", "budget": 8}),),
        (("search", {"topologies": ["agg"]}),),
    ],
)
def test_defaulting_is_idempotent(changes: tuple[tuple[str, Any], ...]) -> None:
    once = spec_of(*changes)

    assert run_spec(once) == once
    assert RunSpec.model_validate(wire(once)) == once


def test_overrides_equal_to_the_default_sku_give_the_same_hash_as_none() -> None:
    named = spec_of(("hardware.gpu.prefillSku", "H200"), ("hardware.gpu.decodeSku", "h200_sxm"))

    assert input_hash(named) == input_hash(spec_of())


def test_order_of_sets_and_explicit_defaults_do_not_change_the_hash() -> None:
    one = spec_of(("backends", ["trtllm", "vllm"]), ("search", {"topologies": ["disagg", "agg"]}))
    other = spec_of(("backends", ["vllm", "trtllm"]), ("search", {"fidelity": "replay"}))

    assert input_hash(one) == input_hash(other)


def test_how_a_search_runs_does_not_change_the_hash_and_what_it_finds_does() -> None:
    base = input_hash(spec_of())

    assert len(base) == 32
    assert input_hash(spec_of(("image", "x/sweeper:2"), ("search", {"budget": {"parallelEvaluations": 9}}))) == base
    assert input_hash(spec_of(("overrides", {"profilingJob": {"ttlSecondsAfterFinished": 9}}))) == base
    assert input_hash(spec_of(("hardware.gpu.budget", 15))) != base
    assert input_hash(spec_of(("overrides", {"dgd": {"spec": {}}}))) != base


def test_rerun_and_suspend_are_not_part_of_a_run() -> None:
    spec = wire(spec_of(("rerun", {"reason": "again"}), ("suspend", True)))

    assert not {"rerun", "suspend"} & set(spec)


def test_gpus_per_node_stay_open_when_the_roles_differ() -> None:
    gpu = spec_of(("hardware.gpu", {"sku": "h200_sxm", "decodeSku": "gb200", "budget": 8})).hardware.gpu

    assert gpu.per_node is None
    assert gpu.node_selector["gb200"]["kubernetes.io/arch"] == "arm64"


def test_a_given_node_selector_is_kept_beside_that_of_the_catalog() -> None:
    own = {"H200": {"pool": "a"}}
    gpu = spec_of(
        ("hardware.gpu", {"sku": "h200_sxm", "decodeSku": "b200", "budget": 8, "nodeSelector": own})
    ).hardware.gpu

    assert gpu.node_selector == {"h200_sxm": {"pool": "a"}, "b200_sxm": {"nvidia.com/gpu.product": "NVIDIA-B200"}}


def test_pareto_has_two_metrics_by_default() -> None:
    objective = spec_of(("objective", {"mode": "pareto"})).objective

    assert objective.metrics == ("throughputPerGpu", "throughputPerUser")
    assert objective.all_metrics == objective.metrics


def test_the_operators_image_is_the_default_image() -> None:
    spec = request_of(request()).spec

    assert run_spec(spec, sweeper_image="x/sweeper:1").image == "x/sweeper:1"
    assert run_spec(spec).image is None


def test_an_unknown_gpu_type_is_an_error() -> None:
    with pytest.raises(UnknownSku, match="h200_sxm"):
        spec_of(("hardware.gpu.sku", "h210_sxm"))
