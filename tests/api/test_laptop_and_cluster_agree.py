"""Random requests: what a laptop accepts the API server accepts, and what one refuses the other refuses.

Server dry runs through the client: a hundred a second. The seed is fixed, so a failure comes again.
"""

import random
from pathlib import Path
from typing import Any

import pytest
from dgdr_api.errors import InvalidRequest
from dgdr_api.parse import request_of
from kubernetes.client import ApiClient, CustomObjectsApi
from kubernetes.client.exceptions import ApiException

from tests.api.objects import request
from tests.controlplane.kubectl import Kubectl

CRDS = Path(__file__).resolve().parents[2] / "crds"
SEED, REQUESTS = 20_260_101, 600

STATIC = "workload.static"
PVC = {"source": {"pvc": {"claimName": "traces", "path": "a.jsonl"}}}
BOTH_LATENCIES = {"ttftMs": 1, "itlMs": 1}
CHOICES: dict[str, tuple[Any, ...]] = {
    "modelRef.name": ("m", "/m", "a/..", "..a", "", "a" * 253, "a" * 254, "a\n", "a b", "\u00e4", "None", 7),
    "modelRef.revision": ("abc", "", None, "$(X)", "a..b", "-a", "a\n", "r/v-1"),
    "modelRef.tokenSecret": ({"name": "hf"}, {"name": "HF"}, {"name": "a.b", "key": "a/b"}, {"name": "a\n"}),
    "modelRef.remoteCode": ("Never", "TrustCacheAndRevision", "AlwaysTrust", "never"),
    "modelRef.cache": ({"pvc": {"name": "m"}}, {"pvc": {"name": "m", "modelPath": "../x"}}, {}, None,
        {"pvc": {"name": "m", "modelPath": "\u2028"}}, {"pvc": {"name": "m", "mountPath": "/a/./b"}},
        {"pvc": {"name": "M"}}),
    "image": ("x/y:1", "x/Y:1", "x/y:1\n", "x:5/y", "x@sha256:ab", "a" * 256, f"{'a' * 255}:1"),
    "runtime.image": ("x/sglang-runtime:1.4.2", "x y", "x/y:", "x/y@sha256:" + "a" * 64),
    "backends": (["vllm"], ["vllm", "vllm"], ["vllm", "sglang", "trtllm"], [], "vllm", None),
    "runtime.versionOverride": ("1.4.2", "01.4.2", "1.4", "10000.0.0", "9999.0.0"),
    "runtime.performanceDataVersion": ({"vllm": "0.24.0"}, {"tgi": "1"}, {"vllm": ""}, {}),
    "hardware.gpu.budget": (1, 65_536, 65_537, 0, 1.5, "8", True),
    "hardware.gpu.minBudget": (1, 8, 16, 17, 0),
    "hardware.gpu.prefillSku": ("h100_sxm", ""),
    "hardware.gpu.encoderSku": ("l40s",),
    "hardware.gpu.budgetBySku": ({}, {"h200_sxm": 1}, {"h200_sxm": 0}, {str(index): 1 for index in range(17)}),
    "hardware.gpu.nodeSelector": ({"h200_sxm": {"a": "b"}}, {"h200_sxm": {"a": "b" * 64}}, {"h200_sxm": "a"},
        {"h": {"a/b/c": "d"}}, {"h": {f"{'a' * 253}/b": ""}}, {"h": {f"{'a' * 254}/b": ""}}, {"h": {"a": "\u00e4"}}),
    f"{STATIC}.concurrency": (1, 0, 2**31 - 1, 2**31, ...),
    f"{STATIC}.requestRate": (0.5, 0, -1, 1e15, 1e16, None),
    f"{STATIC}.kvLoadRatio": (0.5, 0),
    f"{STATIC}.kvLoadRatioRange": ({"min": 0.1, "max": 0.9}, {"min": 1, "max": 1}, {"min": 1}),
    f"{STATIC}.saturated": (True, False),
    f"{STATIC}.arrival": ("constant", "poisson", "burst"),
    f"{STATIC}.requests": (1, 5, 100, 0),
    f"{STATIC}.warmupRequests": (0, 4, 5, 100, -1),
    f"{STATIC}.lengthSpread": (1, 0.5, 0, 1.01),
    f"{STATIC}.sharedPrefixRatio": (0, 0.5, 1, 1.5),
    f"{STATIC}.prefixGroups": (0, 1, -1),
    f"{STATIC}.images": ({"height": 1, "width": 1}, {"height": 1}, {"height": 0, "width": 1}),
    "workload.trace": (PVC, {}, PVC | {"replay": {"concurrency": 1, "arrivalSpeedupRatio": 2}}, None),
    "workload.static": (..., None),
    "workload.maxSequenceLength": (1, 10_000, 0),
    "objective.mode": ("optimize", "pareto", "best"),
    "objective.metric": ("throughput", "goodput", "minGpus", "throughputPerCost", "speed", ...),
    "objective.metrics": (["ttft", "goodput"], ["ttft"], ["ttft", "ttft"], ["throughput", "throughputPerCost"]),
    "objective.gpuHourCost": ({"h200_sxm": 3}, {"h200_sxm": 0}, {}),
    "objective.sla": (BOTH_LATENCIES, {"e2eMs": 1}, {"ttftMs": 1}, BOTH_LATENCIES | {"e2eMs": 1}, {}, {"strict": True}),
    "search.fidelity": ("replay", "static", "fast"),
    "search.topologies": (["agg"], ["disagg"], ["agg", "disagg"], ["agg", "agg"], []),
    "search.encoder": ("Inline", "Disaggregated", "Both"),
    "search.planner": ({"mode": "sla"}, {"mode": "x"}, {}, None),
    "search.router": ([{}], [{"mode": "kv", "temperature": 0.1}], [], [None]),
    "search.budget": ({"maxDuration": "1h30m"}, {"maxDuration": "0s"}, {"maxDuration": "1d"}, {"maxRounds": 0}),
    "search.parameters": ({"a": {"b": None}}, [], "x"),
    "recommendation.maxCandidates": (1, 50, 51, 0),
    "rerun": ({"reason": "again"}, {"reason": ""}, {}),
    "overrides.dgd": ({"spec": {}}, [], None),
    "suspend": (True, "yes", None),
    "unknown": (1,),
}  # fmt: skip


def random_request(generator: random.Random) -> dict[str, Any]:
    """A few changes, most of them one of the first (usually valid) choices."""
    changes = []
    for path in generator.sample(list(CHOICES), generator.randint(1, 5)):
        choices = CHOICES[path]
        changes.append((path, choices[0] if generator.random() < 0.5 else generator.choice(choices)))
    try:
        return request(*changes)
    except (KeyError, TypeError, AttributeError):  # a change below something that another one removed
        return random_request(generator)


def cluster_says(api: CustomObjectsApi, body: dict[str, Any]) -> str | None:
    try:
        api.create_namespaced_custom_object(
            "sweeper.dgdr.dev",
            "v1beta2",
            "default",
            "dynamographdeploymentrequests",
            body,
            dry_run="All",
            field_validation="Strict",
        )
    except ApiException as error:
        if error.status not in (400, 422):
            raise
        return str(error.body)
    return None


def laptop_says(body: dict[str, Any]) -> str | None:
    try:
        request_of(body)
    except InvalidRequest as error:
        return str(error)
    return None


@pytest.fixture(scope="module")
def objects(kubectl: Kubectl, api: ApiClient) -> CustomObjectsApi:
    for file in sorted(CRDS.glob("*.yaml")):
        kubectl.install_crds(file)
    return CustomObjectsApi(api)


def test_laptop_and_cluster_agree(objects: CustomObjectsApi) -> None:
    generator = random.Random(SEED)  # noqa: S311 - a repeatable choice of tests
    accepted = 0
    for number in range(REQUESTS):
        body = random_request(generator)
        laptop, cluster = laptop_says(body), cluster_says(objects, body)
        assert (laptop is None) == (cluster is None), f"{number}: {body['spec']}\nlaptop: {laptop}\ncluster: {cluster}"
        accepted += laptop is None
    assert REQUESTS / 10 < accepted < REQUESTS * 9 / 10
