import copy
from collections.abc import Callable
from typing import Any

import pytest
from dgdr_publisher.rendering import render_candidate, verify_dgd
from dgdr_publisher.verify import sglang, vllm
from dgdr_publisher.verify.arguments import ArgumentsError
from dgdr_publisher.verify.read_back import read_back

from tests.publisher.cases import CASES
from tests.publisher.samples import DISAGG, spec


def test_what_is_read_back() -> None:
    reading = read_back(render_candidate(*CASES["sglang_0514_disagg_dep16_two_nodes"], "qwen").dgd)
    assert (reading.backend, reading.topology, reading.total_gpus) == ("sglang", "disagg", 24)
    prefill, decode = reading.workers
    assert (prefill.engine.tp, prefill.engine.attention_dp, prefill.engine.moe_ep) == (8, 1, 1)
    assert (decode.engine.tp, decode.engine.attention_dp, decode.engine.moe_ep) == (1, 16, 16)
    assert (decode.node_count, decode.gpus_per_pod, decode.engine.max_num_seqs) == (2, 8, 256)
    assert (prefill.engine.enable_chunked_prefill, decode.engine.enable_chunked_prefill) == (False, True)
    assert (prefill.engine.transfer, prefill.engine.mode) == ("nixl", "prefill")


def _arguments(case: str, component: int) -> list[str]:
    dgd = render_candidate(*CASES[case], "qwen").dgd
    found: list[str] = dgd["spec"]["components"][component]["podTemplate"]["spec"]["containers"][0]["args"]
    return found


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--max-num-seqs", "8"], "given twice"),
        (["--no-enable-prefix-caching"], "not allowed with argument"),
        (["--enable-eplb"], "unrecognized arguments: --enable-eplb"),
        (["--is-prefill-worker"], "unrecognized arguments"),
        (["--max-num-seq", "8"], "unrecognized arguments"),
        (["--revision=main"], "joins an option and its value"),
        (["--revision", "None"], "'None' is no value"),
        (["--revision", ""], "'' is no value"),
        (["--tp", "4"], "unrecognized arguments"),
    ],
)
def test_arguments_that_vllm_refuses_or_that_say_one_thing_twice(more: list[str], message: str) -> None:
    with pytest.raises(ArgumentsError, match=message):
        vllm.read_engine([*_arguments("vllm_disagg", 1), *more])


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--tp-size", "4"], "given twice"),
        (["--ep", "4"], "given twice"),
        (["--enable-dp-attention"], "1 data-parallel ranks and dp-attention True"),
        (["--disable-radix-cache", "--disaggregation-decode-enable-radix-cache"], "together with"),
        (["--config", "file.yaml"], "unrecognized arguments"),
        (["--disaggregation-transfer-backend", "mooncake"], "invalid choice"),
    ],
)
def test_arguments_that_sglang_refuses_or_that_say_one_thing_twice(more: list[str], message: str) -> None:
    with pytest.raises(ArgumentsError, match=message):
        sglang.read_engine([*_arguments("sglang_0516_disagg_tep_dep", 1), *more])


def test_sglang_chunk_and_batch_must_give_one_size_of_a_pass() -> None:
    arguments = _arguments("sglang_0516_agg_tp4", 1)
    arguments[arguments.index("--chunked-prefill-size") + 1] = "4096"
    with pytest.raises(ArgumentsError, match="4096 / 1 tokens by --chunked-prefill-size, 8192 by --max-prefill-tokens"):
        sglang.read_engine(arguments)


def _component(change: Callable[[dict[str, Any]], None]) -> Callable[[dict[str, Any]], None]:
    return lambda dgd: change(dgd["spec"]["components"][1])


def _main(change: Callable[[dict[str, Any]], None]) -> Callable[[dict[str, Any]], None]:
    return _component(lambda one: change(one["podTemplate"]["spec"]["containers"][0]))


def _container(dgd: dict[str, Any], component: int) -> dict[str, Any]:
    found: dict[str, Any] = dgd["spec"]["components"][component]["podTemplate"]["spec"]["containers"][0]
    return found


def _gpus(**resources: Any) -> Callable[[dict[str, Any]], None]:
    return _main(lambda main: main["resources"].update(resources))


CHANGES: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "unknown field": (_component(lambda one: one.update(scalingAdapter={})), "scalingAdapter"),
    "second container": (
        _component(lambda one: one["podTemplate"]["spec"]["containers"].append({"name": "other"})),
        "the one container main",
    ),
    "shell command": (_main(lambda main: main.update(command=["/bin/sh", "-c"])), "python3 -m dynamo.vllm"),
    "injected environment": (
        _main(lambda main: main.update(env=[{"name": "DYN_NAMESPACE", "value": "x"}])),
        "HF_HOME, HF_TOKEN",
    ),
    "own shared memory": (
        _main(lambda main: main.update(volumeMounts=[{"name": "dshm", "mountPath": "/dev/shm"}])),  # noqa: S108
        "volumeMounts",
    ),
    "restart on create": (lambda dgd: dgd["spec"].update(restart={"id": "1"}), "restart"),
    "no GPU": (_main(lambda main: main.pop("resources")), "resources"),
    "frontend missing": (lambda dgd: dgd["spec"]["components"].pop(0), "one frontend"),
    "third pool": (
        lambda dgd: dgd["spec"]["components"].append(copy.deepcopy(dgd["spec"]["components"][1])),
        "unique names",
    ),
    "old version": (lambda dgd: dgd.update(apiVersion="nvidia.com/v1alpha1"), "nvidia.com/v1beta1"),
    "long name": (lambda dgd: dgd["metadata"].update(name="q" * 50), "at most 54"),
    "upper-case name": (lambda dgd: dgd["metadata"].update(name="Qwen"), "a DNS label"),
    "requests beside other limits": (_gpus(requests={"nvidia.com/gpu": "2"}), "the limits, {'nvidia.com/gpu': '1'}"),
    "requests of something else": (_gpus(requests={"cpu": "2"}), "resources.requests"),
    "claims of devices": (_gpus(claims=[{"name": "gpu"}]), "resources: expected the fields limits, requests"),
    "GPUs with a sign": (_gpus(limits={"nvidia.com/gpu": "+1"}), "a whole number"),
    "GPUs in other digits": (_gpus(limits={"nvidia.com/gpu": "\N{ARABIC-INDIC DIGIT ONE}"}), "a whole number"),
    "frontend with GPUs": (
        lambda dgd: _container(dgd, 0).update(resources={"limits": {"nvidia.com/gpu": "1"}}),
        "Frontend.main",
    ),
    "frontend on nodes": (
        lambda dgd: dgd["spec"]["components"][0]["podTemplate"]["spec"].update(nodeSelector={"a": "b"}),
        "nodeSelector",
    ),
    "frontend over nodes": (
        lambda dgd: dgd["spec"]["components"][0].update(multinode={"nodeCount": 2}),
        "Frontend: expected the fields",
    ),
    "more of a multinode": (
        _component(lambda one: one.update(multinode={"nodeCount": 2, "x": 1})),
        "prefill.multinode",
    ),
    "long component": (_component(lambda one: one.update(name="VllmPrefillWorkerOfTheFirstPoolOfAllModels")), "37"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_makes_a_deployment_unreadable_or_refused(name: str) -> None:
    change, words = CHANGES[name]
    dgd = copy.deepcopy(render_candidate(DISAGG, spec(), "qwen").dgd)
    change(dgd)
    differences = "; ".join(str(one) for one in verify_dgd(dgd, DISAGG, spec()))
    assert words in differences


def test_requests_that_are_the_limits_change_nothing() -> None:
    dgd = copy.deepcopy(render_candidate(DISAGG, spec(), "qwen").dgd)
    for component in (1, 2):
        resources = _container(dgd, component)["resources"]
        resources["requests"] = dict(resources["limits"])
    assert verify_dgd(dgd, DISAGG, spec()) == []


CACHED: dict[str, tuple[Callable[[dict[str, Any], dict[str, Any]], None], str]] = {
    "claim": (
        lambda pod, _: pod["volumes"][0]["persistentVolumeClaim"].update(claimName="other"),
        "Frontend.volumeMounts: expected {'/opt/model-cache': 'models'}, found {'/opt/model-cache': 'other'}",
    ),
    "cache": (
        lambda _, main: main["env"].pop(0),
        "Frontend.env.HF_HOME: expected /opt/model-cache, found None",
    ),
    "token": (
        lambda _, main: main["env"][1]["valueFrom"]["secretKeyRef"].update(key="other"),
        "Frontend.env.HF_TOKEN: expected ('hf-token-secret', 'HF_TOKEN'), found ('hf-token-secret', 'other')",
    ),
}


@pytest.mark.parametrize("name", CACHED)
def test_what_all_components_have_alike_is_still_compared_with_the_request(name: str) -> None:
    change, words = CACHED[name]
    candidate, request = CASES["vllm_disagg"]
    dgd = copy.deepcopy(render_candidate(candidate, request, "qwen").dgd)
    for component in dgd["spec"]["components"]:
        pod = component["podTemplate"]["spec"]
        change(pod, pod["containers"][0])
    assert words in [str(one) for one in verify_dgd(dgd, candidate, request)]


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("volume", lambda pod, _: pod["volumes"][0].update(emptyDir={})),
        ("claim", lambda pod, _: pod["volumes"][0]["persistentVolumeClaim"].update(readOnly=True)),
        ("mount", lambda _, main: main["volumeMounts"][0].update(subPath="other")),
        ("variable", lambda _, main: main["env"][0].update(valueFrom={})),
        ("secret", lambda _, main: main["env"][1]["valueFrom"]["secretKeyRef"].update(optional=True)),
        ("source", lambda _, main: main["env"][1]["valueFrom"].update(fieldRef={})),
    ],
)
def test_nothing_unread_stands_beside_what_is_read(
    name: str, change: Callable[[dict[str, Any], dict[str, Any]], None]
) -> None:
    candidate, request = CASES["vllm_disagg"]
    dgd = copy.deepcopy(render_candidate(candidate, request, "qwen").dgd)
    pod = dgd["spec"]["components"][1]["podTemplate"]["spec"]
    change(pod, pod["containers"][0])
    assert verify_dgd(dgd, candidate, request), name


def test_data_parallel_ranks_must_divide_over_the_nodes() -> None:
    candidate, request = CASES["vllm_agg_dep16_two_nodes"]
    dgd = copy.deepcopy(render_candidate(candidate, request, "qwen").dgd)
    assert verify_dgd(dgd, candidate, request) == []
    dgd["spec"]["components"][1]["multinode"]["nodeCount"] = 3
    differences = [str(one) for one in verify_dgd(dgd, candidate, request)]
    assert "worker.multinode.nodeCount: expected a divisor of 16 data-parallel ranks, found 3" in differences
    dgd["spec"]["components"][1]["multinode"]["nodeCount"] = 4
    differences = [str(one) for one in verify_dgd(dgd, candidate, request)]
    assert differences == [
        "gpus: expected 16, found 32",
        "worker.nodes times GPUs: expected 16, found 32",
    ]


def test_prefill_and_decode_must_meet_at_one_port() -> None:
    candidate, request = CASES["sglang_0516_disagg_tep_dep"]
    dgd = copy.deepcopy(render_candidate(candidate, request, "qwen").dgd)
    for component, expected in (
        (1, ["args.--disaggregation-bootstrap-port: expected one port for all workers, found prefill 1, decode 12345"]),
        (2, []),
    ):
        arguments = _container(dgd, component)["args"]
        arguments[arguments.index("--disaggregation-bootstrap-port") + 1] = "1"
        assert [str(one) for one in verify_dgd(dgd, candidate, request)] == expected
