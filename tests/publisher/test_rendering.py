import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from dgdr_api.base import wire
from dgdr_publisher.errors import DocumentError, ReadBackDifferenceError
from dgdr_publisher.rendering import evaluated_from_document, render_candidate, verify_dgd
from dgdr_publisher.resources import candidate_resource, run_identity
from dgdr_publisher.selection import select
from dgdr_publisher.yaml_text import yaml_text

from tests.publisher.cases import CASES
from tests.publisher.samples import AGG, DISAGG, MODEL, evaluated, role, run, spec

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("name", CASES)
def test_deployment_is_the_golden_file(name: str) -> None:
    candidate, request = CASES[name]
    text = yaml_text(render_candidate(candidate, request, "qwen").dgd)
    path = GOLDEN / f"{name}.yaml"
    if os.environ.get("DGDR_WRITE_GOLDEN"):
        path.write_text(text)
    assert path.read_text() == text


@pytest.mark.parametrize("name", CASES)
def test_golden_file_verifies_with_and_without_the_request(name: str) -> None:
    candidate, request = CASES[name]
    dgd = yaml.safe_load((GOLDEN / f"{name}.yaml").read_text())
    assert verify_dgd(dgd, candidate, request) == []
    assert verify_dgd(dgd, candidate) == []


@pytest.mark.parametrize("name", CASES)
def test_gpus_of_the_deployment_are_those_of_the_candidate(name: str) -> None:
    candidate, request = CASES[name]
    total = 0
    for component in render_candidate(candidate, request, "qwen").dgd["spec"]["components"][1:]:
        limits = component["podTemplate"]["spec"]["containers"][0]["resources"]["limits"]
        nodes = component.get("multinode", {"nodeCount": 1})["nodeCount"]
        total += component["replicas"] * nodes * int(limits["nvidia.com/gpu"])
    assert total == candidate.candidate.used_gpus


def test_a_flag_and_its_value_are_separate_items_because_the_operator_reads_parallel_sizes_only_so() -> None:
    dgd = render_candidate(*CASES["vllm_agg_dep16_two_nodes"], "qwen").dgd
    arguments = dgd["spec"]["components"][1]["podTemplate"]["spec"]["containers"][0]["args"]
    assert arguments[arguments.index("--data-parallel-size") + 1] == "16"
    assert all(isinstance(item, str) for item in arguments)
    assert not any(item.startswith("--") and "=" in item for item in arguments)


def test_equal_input_is_equal_bytes() -> None:
    first, second = (yaml_text(render_candidate(DISAGG, spec(), "qwen").dgd) for _ in range(2))
    assert first == second


def test_a_template_that_changes_a_value_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def other(*_args: object, **_more: object) -> list[str]:
        return ["decode.replicas: expected 4, found 8"]

    monkeypatch.setattr("dgdr_publisher.verify.compare.verify_dgd", other)
    with pytest.raises(ReadBackDifferenceError, match=r"decode.replicas: expected 4, found 8"):
        render_candidate(DISAGG, spec(), "qwen")


def test_a_candidate_document_is_read() -> None:
    assert evaluated_from_document(wire(AGG)) == AGG


def _published() -> dict[str, Any]:
    of = run()
    selection = select([AGG.id], {AGG.id: AGG}, spec=of.spec, request_name="qwen", namespace="default", limit=1)
    return wire(candidate_resource(selection.chosen[0], run_identity(of), rank=1, versions=()))


def test_a_published_candidate_is_read_back_to_what_was_evaluated() -> None:
    found = evaluated_from_document(yaml.safe_load(yaml_text(_published())))
    assert found.candidate == AGG.candidate
    assert found.replay_spec == AGG.replay_spec
    assert found.evaluation == AGG.evaluation
    assert render_candidate(found, spec(), "qwen") == render_candidate(AGG, spec(), "qwen")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "Deployment"}, "kind 'Deployment' is no candidate"),
        ({"status": None}, "status.evaluation is missing"),
        ({"metadata": {"name": "UPPER"}}, r"metadata\.name"),
    ],
)
def test_a_document_that_is_no_candidate_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(DocumentError, match=message):
        evaluated_from_document(_published() | change)


def test_the_model_name_is_found_whatever_the_workers_load() -> None:
    candidate = evaluated(role("agg"))
    dgd = render_candidate(candidate, spec(model={"cache": {"pvc": {"name": "m", "modelPath": "x"}}}), "q").dgd
    arguments = dgd["spec"]["components"][1]["podTemplate"]["spec"]["containers"][0]["args"]
    assert arguments[:4] == ["--model", "/opt/model-cache/x", "--served-model-name", MODEL]


def test_only_a_decode_worker_has_the_shared_memory_of_one() -> None:
    gb200: dict[str, Any] = {"sku": "gb200", "backend": "sglang", "version": "0.5.16"}
    candidate = evaluated(role("prefill", {"tp": 4}, **gb200), role("decode", {"tp": 4}, **gb200))
    components = render_candidate(candidate, spec("sglang", "0.5.16", gpu={"sku": "gb200"}), "qwen").dgd["spec"][
        "components"
    ]
    assert {one["name"]: one.get("sharedMemorySize") for one in components} == {
        "Frontend": None,
        "prefill": "64Gi",
        "decode": "128Gi",
    }
    alone = evaluated(role("agg", {"tp": 4}, **gb200))
    worker = render_candidate(alone, spec("sglang", "0.5.16", gpu={"sku": "gb200"}), "qwen").dgd["spec"]["components"][
        1
    ]
    assert worker["sharedMemorySize"] == "64Gi"
