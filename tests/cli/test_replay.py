"""`dgdr replay` on documents as users write them."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.conftest import Dgdr

SHARED = Path(__file__).parents[2].parent / "shared" / "data" / "contract"
ROLE: dict[str, Any] = {
    "kind": "agg",
    "workers": 1,
    "gpusPerWorker": 1,
    "backend": "vllm",
    "sku": "h200_sxm",
    "engineVersion": "0.26.0",
    "dataVersion": "0.24.0",
    "shape": {"tp": 1, "pp": 1, "attentionDp": 1, "moeTp": 1, "moeEp": 1, "cp": 1},
    "quantization": {
        "gemm": "bfloat16",
        "moe": "bfloat16",
        "kv": "bfloat16",
        "attention": "bfloat16",
        "communication": "half",
    },
    "memoryFraction": 0.92,
    "engine": {
        "maxNumSeqs": 8,
        "maxNumBatchedTokens": 512,
        "blockSize": 64,
        "numGpuBlocks": 64,
        "maxSequenceLength": 1000,
        "enablePrefixCaching": True,
    },
    "timing": {"type": "fixed", "prefillMs": 10.0, "decodeMs": 1.0},
}
WORKLOAD: dict[str, Any] = {"static": {"isl": 128, "osl": 4, "concurrency": 1, "requests": 3}}


def spec(tmp_path: Path, workload: dict[str, Any] = WORKLOAD, **fields: Any) -> Path:
    path = tmp_path / "spec.yaml"
    document = {"apiVersion": "dgdr/v1", "kind": "ReplaySpec", "topology": "agg", "roles": [ROLE], "workload": workload}
    path.write_text(yaml.safe_dump(document | fields))
    return path


def test_the_figures_of_three_requests_in_turn(dgdr: Dgdr, tmp_path: Path) -> None:
    rows = tmp_path / "requests.json"
    result = dgdr("replay", spec(tmp_path, sla={"ttftMs": 10.0, "itlMs": 0.9}), "--requests-out", rows, "-o", "json")
    assert result.exit_code == 0, result.output
    figures = json.loads(result.stdout)
    assert figures["completedRequests"] == 3
    assert figures["durationMs"] == 39.0
    assert figures["ttftMs"]["mean"] == figures["ttftMs"]["p99"] == 10.0
    assert figures["itlMs"]["mean"] == 1.0
    assert figures["outputThroughputTokensPerS"] == pytest.approx(12 / 0.039)
    assert figures["goodput"]["completedRequests"] == 0
    assert figures["gpuHours"] == pytest.approx(39 / 3.6e6)
    second = json.loads(rows.read_text())[1]
    assert (second["arrivalMs"], second["firstTokenMs"], second["lastTokenMs"]) == (13.0, 23.0, 26.0)
    assert (second["decodeWorker"], second["prefillWorker"], second["status"]) == (0, None, "completed")


def test_a_request_that_no_worker_holds_is_rejected_and_counted(dgdr: Dgdr, tmp_path: Path) -> None:
    workload = {"static": WORKLOAD["static"] | {"isl": 5000}}
    result = dgdr("replay", spec(tmp_path, workload), "-o", "json")
    assert result.exit_code == 0, result.output
    figures = json.loads(result.stdout)
    assert (figures["completedRequests"], figures["rejectedRequests"]) == (0, 3)
    assert figures["ttftMs"]["mean"] is None


def test_the_names_are_those_of_the_contract(dgdr: Dgdr, tmp_path: Path) -> None:
    if not SHARED.exists():
        pytest.skip("the shared contract is not beside the project")
    result = dgdr("replay", SHARED / "replay-spec.example.yaml", "-o", "json", "--requests-out", tmp_path / "rows.json")
    assert result.exit_code == 0, result.output
    figures = json.loads(result.stdout)
    example = json.loads((SHARED / "replay-report.example.json").read_text())
    assert example.keys() <= figures.keys()
    assert all(example[name].keys() == figures[name].keys() for name in example if isinstance(example[name], dict))
    row = json.loads((SHARED / "requests.example.json").read_text())[0]
    assert row.keys() <= json.loads((tmp_path / "rows.json").read_text())[0].keys()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("", "no request"),
        ('{"timestamp": 0, "input_length": 1', "line 1: no JSON object"),
        ('{"timestamp": -1, "input_length": 1, "output_length": 1}', "timestamp = -1; expected milliseconds"),
        ('{"input_length": 1, "output_length": 1}', "timestamp is missing"),
        ('{"timestamp": 0, "input_length": 0, "output_length": 1}', "input_length = 0; expected a whole number, 1 to"),
        ('{"timestamp": 0, "input_length": 1, "output_length": 1.5}', "output_length = 1.5"),
        ('{"timestamp": 0, "input_length": 1, "output_length": 99999999999}', "output_length = 99999999999"),
        ('{"timestamp": 0, "input_length": 513, "output_length": 1, "hash_ids": [1]}', "hash_ids has 1 entries"),
        ('{"timestamp": 0, "input_length": 1, "output_length": 1, "hash_ids": ["a"]}', "hash_ids = ['a']"),
        ("[1]", "expected a JSON object, found list"),
        ('{"timestamp": NaN, "input_length": 1, "output_length": 1}', "timestamp = nan"),
    ],
)
def test_a_wrong_trace_is_said_with_line_field_and_value(dgdr: Dgdr, tmp_path: Path, line: str, said: str) -> None:
    (tmp_path / "trace.jsonl").write_text(line + "\n")
    result = dgdr("replay", spec(tmp_path, {"trace": {"path": "trace.jsonl"}}))
    assert result.exit_code == 2
    assert said in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"workload": {"static": {"isl": 1, "osl": 1, "concurrency": 1}}}, "workload.static.requests is missing"),
        ({"workload": {"static": {"isl": 1, "osl": 1, "requests": 1}}}, "exactly one of concurrency and requestRate"),
        ({"workload": {"trace": {"path": "none.jsonl"}}}, "none.jsonl: No such file"),
        ({"planner": {"mode": "load"}}, "planner"),
        ({"roles": []}, "roles"),
    ],
)
def test_a_document_that_cannot_be_replayed_names_the_field(
    dgdr: Dgdr, tmp_path: Path, fields: dict[str, Any], said: str
) -> None:
    result = dgdr("replay", spec(tmp_path, **fields))
    assert result.exit_code == 2, result.output
    assert said in result.stderr


def test_a_candidate_is_replayed_as_it_was_scored(dgdr: Dgdr, tmp_path: Path) -> None:
    document = yaml.safe_load(spec(tmp_path).read_text())
    candidate = tmp_path / "candidate.yaml"
    candidate.write_text(
        yaml.safe_dump({"kind": "DynamoGraphDeploymentCandidate", "status": {"evaluation": {"replaySpec": document}}})
    )
    one, other = (dgdr("replay", path, "-o", "json") for path in (tmp_path / "spec.yaml", candidate))
    assert one.exit_code == other.exit_code == 0, other.output
    assert one.stdout == other.stdout


def test_a_candidate_without_an_evaluation_is_refused(dgdr: Dgdr, tmp_path: Path) -> None:
    candidate = tmp_path / "candidate.yaml"
    candidate.write_text(yaml.safe_dump({"kind": "DynamoGraphDeploymentCandidate", "status": {"rank": 1}}))
    result = dgdr("replay", candidate)
    assert result.exit_code == 2
    assert "status.evaluation.replaySpec: is missing" in result.stderr
