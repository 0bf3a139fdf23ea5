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
    "long component": (_component(lambda one: one.update(name="VllmPrefillWorkerOfTheFirstPoolOfAllModels")), "37"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_makes_a_deployment_unreadable_or_refused(name: str) -> None:
    change, words = CHANGES[name]
    dgd = copy.deepcopy(render_candidate(DISAGG, spec(), "qwen").dgd)
    change(dgd)
    differences = "; ".join(str(one) for one in verify_dgd(dgd, DISAGG, spec()))
    assert words in differences
