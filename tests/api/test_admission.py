from typing import Any

import pytest
from dgdr_api.admission import Accepted, Rejected, admit
from dgdr_api.free_form import JOB_ALLOW_LIST
from dgdr_api.parse import request_of

from tests.api.objects import request

DIGEST = "sha256:" + "ab" * 32
A100_NODES = {"a100": {"pool": "a100"}}
DISAGG = ("search", {"topologies": ["disagg"]})
CAP_OF_NO_ROLE = ("hardware.gpu.budgetBySku", {"h200_sxm": 8})
PINS = ("runtime.performanceDataVersion", {"vllm": "0.24.0", "sglang": "0.5.14", "trtllm": "1.3.0rc20"})
ALL = ("backends", ["vllm", "sglang", "trtllm"])


def decide(*changes: tuple[str, Any]) -> Accepted | Rejected:
    return admit(request_of(request(*changes)))


def rejected(*changes: tuple[str, Any]) -> Rejected:
    found = decide(*changes)
    assert isinstance(found, Rejected)
    return found


def test_a_good_request_becomes_a_run_with_its_chains() -> None:
    found = decide(ALL, PINS, ("hardware.gpu.decodeSku", "H100-SXM5-80GB"))

    assert isinstance(found, Accepted)
    assert [(chain.backend, chain.sku, chain.pinned) for chain in found.chains] == [
        ("vllm", "h200_sxm", True),
        ("vllm", "h100_sxm", True),
        ("sglang", "h200_sxm", True),
        ("sglang", "h100_sxm", True),
        ("trtllm", "h200_sxm", True),
        ("trtllm", "h100_sxm", True),
    ]
    assert found.spec.hardware.gpu.decode_sku == "h100_sxm"


def test_data_that_one_gpu_type_lacks_is_left_to_the_search() -> None:
    """The aggregated workers have data; that the others have none is the verdict on their tuple, not on the request."""
    found = decide(("hardware.gpu", {"sku": "h200_sxm", "prefillSku": "a100", "budget": 8, "nodeSelector": A100_NODES}))

    assert isinstance(found, Accepted)
    assert [(chain.backend, chain.sku) for chain in found.chains] == [("sglang", "h200_sxm")]


def test_a_pinned_version_must_exist_on_every_gpu_type() -> None:
    pin = ("runtime.performanceDataVersion", {"sglang": "0.5.14"})
    found = rejected(
        pin, ("hardware.gpu", {"sku": "h200_sxm", "decodeSku": "a100", "budget": 8, "nodeSelector": A100_NODES})
    )

    assert found.reason.name == "VersionChainBroken"
    assert "0.5.14, pinned by runtime.performanceDataVersion, does not exist for sglang on a100_sxm" in found.message


@pytest.mark.parametrize(
    "image",
    ["x/vllm-runtime:1.4.2", "x/mine:1.4.2", "x/sglang-runtime:1.4.2-efa", f"x/sglang-runtime:1.4.2@{DIGEST}"],
)
def test_an_image_that_names_or_gives_the_backends_image_is_accepted(image: str) -> None:
    assert isinstance(decide(("runtime.image", image)), Accepted)


@pytest.mark.parametrize(
    ("changes", "reason", "field", "said"),
    [
        ((("hardware.gpu.sku", "h210_sxm"),), "UnknownHardware", "spec.hardware.gpu.sku", "did you mean h200_sxm"),
        ((("hardware.gpu.decodeSku", "h2O0"),), "UnknownHardware", "spec.hardware.gpu.decodeSku", "h200_sxm"),
        (
            (("hardware.gpu.budgetBySku", {"mi300": 8}),),
            "UnknownHardware",
            "spec.hardware.gpu.budgetBySku",
            "'mi300' is not known",
        ),
        (
            (("objective.gpuHourCost", {"b2000": 1}),),
            "UnknownHardware",
            "spec.objective.gpuHourCost",
            "did you mean b200_sxm",
        ),
        (
            (("search", {"router": [{"mode": "kv", "prefillLoadModel": {"type": "performanceData", "sku": "x"}}]}),),
            "UnknownHardware",
            "spec.search.router[0].prefillLoadModel.sku",
            "'x' is not known",
        ),
        (
            (("hardware.gpu.budgetBySku", {"H200": 8, "h200_sxm": 4}),),
            "InvalidSpec",
            "spec.hardware.gpu.budgetBySku",
            "H200 and h200_sxm are both h200_sxm",
        ),
        (
            (("hardware.gpu.sku", "b300_sxm"),),
            "InvalidSpec",
            "spec.hardware.gpu.nodeSelector",
            "the node label of b300_sxm is not known",
        ),
        (
            (("hardware.gpu.budgetBySku", {"H200": 8, "h100": 4}),),
            "InvalidSpec",
            "spec.hardware.gpu.budgetBySku",
            "caps h100, which no role of this search uses: it has h200_sxm",
        ),
        (
            (("hardware.gpu.prefillSku", "h100"), ("hardware.gpu.decodeSku", "h100"), CAP_OF_NO_ROLE, DISAGG),
            "InvalidSpec",
            "spec.hardware.gpu.budgetBySku",
            "caps h200_sxm, which no role of this search uses: it has h100_sxm",
        ),
        (
            (
                ("modelRef.remoteCode", "TrustCacheAndRevision"),
                ("modelRef.revision", "main"),
                ("modelRef.cache", {"pvc": {"name": "models"}}),
            ),
            "InvalidSpec",
            "spec.modelRef.revision",
            "is main, but remoteCode TrustCacheAndRevision trusts one snapshot of the cache: give its commit of 40 hex",
        ),
        (
            (
                ("hardware.gpu.decodeSku", "h100"),
                ("objective", {"mode": "optimize", "metric": "throughputPerCost", "gpuHourCost": {"H200": 3}}),
            ),
            "InvalidSpec",
            "spec.objective.gpuHourCost",
            "h100_sxm has none",
        ),
        (
            (("runtime.image", "x/sglang-runtime:latest"),),
            "InvalidSpec",
            "spec.runtime.versionOverride",
            "tag latest, which is no MAJOR.MINOR.PATCH",
        ),
        (
            (("runtime.image", f"x/sglang-runtime@{DIGEST}"),),
            "InvalidSpec",
            "spec.runtime.versionOverride",
            "has no tag",
        ),
        (
            (ALL, PINS, ("runtime.image", "x/mine:1.4.2")),
            "InvalidSpec",
            "spec.runtime.image",
            "does not tell the image of vllm and sglang and trtllm",
        ),
        (
            (("runtime", {"image": f"x/vllm-runtime@{DIGEST}", "versionOverride": "1.4.2"}),),
            "InvalidSpec",
            "spec.runtime.image",
            "ending in sglang-runtime",
        ),
        (
            (("workload.maxSequenceLength", 3299),),
            "InvalidSpec",
            "spec.workload.maxSequenceLength",
            "is 3299, but isl 3000 + osl 300 = 3300",
        ),
        (
            (("hardware.gpu.minBudget", 12), ("hardware.gpu.budgetBySku", {"h200": 8})),
            "InvalidSpec",
            "spec.hardware.gpu.minBudget",
            "is 12, but budgetBySku allows 8",
        ),
        (
            (("search", {"parameters": {"x": "y" * 65_536}}),),
            "InvalidSpec",
            "spec.search.parameters",
            "65,544 bytes as JSON; at most 65,536 fit",
        ),
        (
            (PINS,),
            "InvalidSpec",
            "spec.runtime.performanceDataVersion",
            "pins trtllm, vllm, which is not among the backends",
        ),
        (
            (("runtime.image", "x/sglang-runtime:1.0.2"),),
            "VersionChainBroken",
            "spec.runtime.image",
            "set runtime.image to one of Dynamo 1.4.2 or 1.4.1",
        ),
        (
            (("hardware.gpu", {"sku": "a30", "budget": 8, "nodeSelector": {"a30": {"pool": "a"}}}),),
            "VersionChainBroken",
            "spec.hardware.gpu.sku",
            "a30 has no performance data at all",
        ),
    ],
)
def test_what_cel_cannot_see(changes: tuple[tuple[str, Any], ...], reason: str, field: str, said: str) -> None:
    found = rejected(*changes)

    assert found.reason.name == reason
    assert found.rejections[0].field == field
    assert said in found.rejections[0].message
    assert found.message.startswith(f"{field}: ")


@pytest.mark.parametrize(
    ("fragment", "field", "said"),
    [
        ({"parallelism": 2}, "parallelism", "may not be overridden; allowed are ttlSecondsAfterFinished"),
        ({"template": {"spec": {"serviceAccountName": "x"}}}, "template.spec.serviceAccountName", "may not"),
        ({"template": {"spec": {"tolerations": "x"}}}, "template.spec.tolerations", "must be a list"),
        ({"template": {"spec": {"nodeSelector": {"a": 1}}}}, "template.spec.nodeSelector", "a mapping of texts"),
        ({"template": {"metadata": {"labels": {"a b": "c"}}}}, "template.metadata.labels", "texts that are labels"),
        ({"template": {"spec": {"nodeSelector": {"a": "b c"}}}}, "template.spec.nodeSelector", "texts that are labels"),
        ({"template": {"spec": None}}, "template.spec", "may not be overridden"),
        (
            {"template": {"spec": {"containers": [{"name": "publisher", "resources": {}}]}}},
            "template.spec.containers",
            "sweeper",
        ),
        (
            {"template": {"spec": {"containers": [{"name": "sweeper", "image": "x", "resources": {}}]}}},
            "template.spec.containers",
            "{name: sweeper, resources: {...}}",
        ),
        ({"ttlSecondsAfterFinished": -1}, "ttlSecondsAfterFinished", "at least 0"),
        ({"activeDeadlineSeconds": True}, "activeDeadlineSeconds", "a whole number of at least 1"),
        ({"metadata": {"name": "x"}}, "metadata.name", "may not be overridden"),
        ({"metadata": {"labels": {"sweeper.dgdr.dev/run-uid": "x"}}}, "metadata.labels", "belong to the sweeper"),
    ],
)
def test_the_job_takes_only_what_the_allow_list_names(fragment: dict[str, Any], field: str, said: str) -> None:
    found = rejected(("overrides", {"profilingJob": fragment}))

    assert found.reason.name == "InvalidOverride"
    assert found.rejections[0].field == f"spec.overrides.profilingJob.{field}"
    assert said in found.rejections[0].message


def test_the_whole_allow_list_is_allowed() -> None:
    fragment = {
        "ttlSecondsAfterFinished": 0,
        "activeDeadlineSeconds": 3600,
        "metadata": {"labels": {"a": "b"}, "annotations": {"a": "b"}},
        "template": {
            "metadata": {"labels": {"a": "b"}, "annotations": {"a": "b"}},
            "spec": {
                "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
                "nodeSelector": {"pool": "cpu"},
                "affinity": {"nodeAffinity": {}},
                "priorityClassName": "low",
                "imagePullSecrets": [{"name": "pull"}],
                "containers": [{"name": "sweeper", "resources": {"requests": {"cpu": "8"}}}],
            },
        },
    }

    assert isinstance(decide(("overrides", {"profilingJob": fragment})), Accepted)
    assert len(JOB_ALLOW_LIST) == 12


@pytest.mark.parametrize(
    ("fragment", "field", "said"),
    [
        ({"apiVersion": "nvidia.com/v1alpha1"}, "apiVersion", "must be nvidia.com/v1beta1"),
        ({"components": []}, "components", "fields of its spec go under spec"),
        ({"metadata": {"name": "x"}}, "metadata.name", "may not be overridden"),
        ({"metadata": {"annotations": {"sweeper.dgdr.dev/run": "x"}}}, "metadata.annotations", "belong to the sweeper"),
        ({"spec": []}, "spec", "must be a mapping"),
        ({"spec": {"components": {}}}, "spec.components", "must be a list"),
        ({"spec": {"components": [{"replicas": 2}]}}, "spec.components[0].name", "is required"),
        ({"spec": {"components": [{"name": "prefil"}]}}, "spec.components[0].name", "fits no topology of this search"),
        ({"spec": {"components": [{"name": "encode"}]}}, "spec.components[0].name", "fits no topology of this search"),
        ({"spec": {"components": [{"name": "worker"}, {"name": "worker"}]}}, "spec.components[1].name", "stands twice"),
        ({"spec": {"x": "y" * 70_000}}, "", "at most 65,536 fit"),
    ],
)
def test_finding_9747_an_override_that_fits_nothing_is_refused(fragment: dict[str, Any], field: str, said: str) -> None:
    found = rejected(("overrides", {"dgd": fragment}))

    assert found.reason.name == "InvalidOverride"
    assert found.rejections[0].field == f"spec.overrides.dgd.{field}".removesuffix(".")
    assert said in found.rejections[0].message


def test_an_override_for_a_component_of_the_search_is_accepted() -> None:
    fragment = {
        "apiVersion": "nvidia.com/v1beta1",
        "kind": "DynamoGraphDeployment",
        "metadata": {"labels": {"team": "a"}},
        "spec": {"env": [{"name": "A", "value": "b"}], "components": [{"name": "Frontend"}, {"name": "prefill"}]},
    }

    assert isinstance(decide(("overrides", {"dgd": fragment})), Accepted)
    assert (
        rejected(("overrides", {"dgd": fragment}), ("search", {"topologies": ["agg"]})).reason.name == "InvalidOverride"
    )


def test_a_spec_that_cannot_reach_the_search_job_is_refused() -> None:
    large = {"x": "y" * 65_000}
    labels = {f"{'d' * 250}/{index:063}": "v" * 63 for index in range(32)}

    found = rejected(
        ("search", {"parameters": large}),
        ("overrides", {"dgd": {"spec": large}, "profilingJob": {"metadata": {"annotations": large}}}),
        ("hardware.gpu.nodeSelector", {"h200": labels}),
    )

    assert found.rejections[0].field == "spec"
    assert "at most 204,800 reach the search Job" in found.message


@pytest.mark.parametrize(
    ("changes", "accepted"),
    [
        ({"revision": "0123456789abcdef0123456789abcdef01234567", "cache": {"pvc": {"name": "models"}}}, True),
        ({"revision": "main", "cache": {"pvc": {"name": "models", "modelPath": "qwen"}}}, True),
        ({"revision": "0123456789ABCDEF0123456789abcdef01234567", "cache": {"pvc": {"name": "models"}}}, False),
    ],
)
def test_trusted_code_is_pinned_by_a_commit_or_a_folder(changes: dict[str, Any], accepted: bool) -> None:  # noqa: FBT001
    found = decide(("modelRef", {"name": "m", "remoteCode": "TrustCacheAndRevision"} | changes))

    assert isinstance(found, Accepted) == accepted


def test_a_namespace_that_leaves_no_name_for_a_deployment_is_refused_before_the_search() -> None:
    made = request()
    made["metadata"]["namespace"] = "n" * 53

    found = admit(request_of(made))

    assert isinstance(found, Rejected)
    assert (found.reason.name, found.rejections[0].field) == ("InvalidSpec", "metadata.namespace")
    assert "use one of at most 52" in found.message
    made["metadata"]["namespace"] = "n" * 52
    assert isinstance(admit(request_of(made)), Accepted)


@pytest.mark.parametrize(
    ("backend", "image", "override", "pin", "said"),
    [
        ("vllm", "x/vllm-runtime:1.5.0", None, "0.24.0", "vLLM 0.28.0; no template renders that engine, only 0.26.0"),
        ("vllm", "x/vllm-runtime:1.6.1", None, "0.27.0", "is Dynamo 1.6.1, which carries vLLM 0.31.0"),
        ("vllm", "x/vllm-runtime:0.7.0", None, "0.24.0", "Dynamo 1.4.2 or 1.4.1 or 1.4.0, e.g. x/vllm-runtime:1.4.2"),
        (
            "vllm",
            "x/vllm-runtime:1.4.2",
            "1.3.1",
            "0.24.0",
            "Dynamo 1.3.1 by runtime.versionOverride, which carries vLLM 0.23.0",
        ),
        ("sglang", "x/sglang-runtime:1.6.1", None, "0.5.16", "no template renders that engine, only 0.5.14 and 0.5.16"),
        ("sglang", "x/sglang-runtime:latest", "1.5.0", "0.5.16", "e.g. x/sglang-runtime:1.4.2 and runtime.versionOver"),
    ],
)
def test_an_engine_without_a_template_breaks_the_chain(
    backend: str, image: str, override: str | None, pin: str, said: str
) -> None:
    runtime = {"image": image, "performanceDataVersion": {backend: pin}}
    found = rejected(
        ("backends", [backend]), ("runtime", runtime | ({"versionOverride": override} if override else {}))
    )

    assert found.reason.name == "VersionChainBroken"
    assert found.rejections[0].field == "spec.runtime.image"
    assert said in found.message
    assert image in found.message


@pytest.mark.parametrize("backends", [["trtllm"], ["trtllm", "sglang"]])
def test_a_backend_without_any_template_is_for_the_search_to_answer(backends: list[str]) -> None:
    pins = {"trtllm": "1.3.0rc20"}
    assert isinstance(decide(("backends", backends), ("runtime.performanceDataVersion", pins)), Accepted)
