"""Wrong input gets one clear message (field, value, bound, what would do) and its exit code; nothing is written."""

import os
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Dgdr, Write

WRONG = [
    pytest.param({"spec__hardware__gpu__budget": 0}, 2, ["spec.hardware.gpu.budget", "0", "1"], id="below its bound"),
    pytest.param({"spec__hardware__gpu__budget": "16"}, 2, ["spec.hardware.gpu.budget", "16"], id="wrong type"),
    pytest.param({"spec__hardware__gpu__bugdet": 16}, 2, ["bugdet", "budget"], id="unknown key names its neighbour"),
    pytest.param(
        {"spec__hardware__gpu__sku": "H2000"}, 2, ["spec.hardware.gpu.sku", "H2000", "h200"], id="unknown SKU"
    ),
    pytest.param({"spec__runtime__image": "vllm-runtime:latest"}, 2, ["runtime", "versionOverride"], id="no version"),
    pytest.param({"spec__objective__metric": None}, 2, ["spec.objective.metric"], id="no metric"),
    pytest.param({"spec__modelRef__name": "/etc/passwd"}, 2, ["spec.modelRef.name"], id="a path as model"),
    pytest.param({"kind": "Deployment"}, 2, ["kind", "DynamoGraphDeploymentRequest"], id="another kind"),
    pytest.param({"spec__search__parameters": {"sweep": {"sead": 1}}}, 2, ["sead", "seed"], id="unknown engine key"),
    pytest.param(
        {"spec__search__parameters": {"search_space": {"gpu_budget": 99}}},
        2,
        ["search_space.gpu_budget", "hardware.gpu.budget"],
        id="an engine key that the request owns",
    ),
    pytest.param(
        {"spec__objective__metric": "throughputPerCost", "spec__objective__gpuHourCost": {"H200": 1e-308}},
        2,
        ["spec.objective.gpuHourCost.H200", "1e-09", "1e-308"],
        id="a price that makes the objective infinite",
    ),
    pytest.param(
        {"spec__search__parameters": {"search_space": {"gpus_per_worker": [1, 65_537]}}},
        2,
        ["search_space.gpus_per_worker.1", "65536", "65537"],
        id="a worker wider than any budget",
    ),
    pytest.param(
        {
            "spec__search__parameters": {"search_space": {"decode_block_size": [2**31 - 1]}},
            "spec__search__topologies": ["disagg"],
        },
        3,
        ["NoFeasibleCandidate", "kv_capacity", "blocks of 2,147,483,647"],
        id="a KV block larger than the cache",
    ),
    pytest.param(
        {
            "spec__search__parameters": {"search_space": {"gpus_per_worker": [2]}},
            "spec__hardware__gpu__budget": 15,
            "spec__hardware__gpu__minBudget": 15,
        },
        3,
        ["NoFeasibleCandidate", "gpu_budget", "at least 15 (hardware.gpu.minBudget) and at most 15 GPUs"],
        id="a least budget that no worker counts make",
    ),
    pytest.param({"spec__modelRef__name": "Qwen/Qwen3-33B"}, 3, ["UnknownModel", "Qwen/Qwen3-32B"], id="unknown model"),
    pytest.param(
        {"spec__objective__sla": {"ttftMs": 1, "itlMs": 0.1}}, 3, ["NoFeasibleCandidate", "TTFT", "1 ms"], id="SLA"
    ),
    pytest.param(
        {"spec__modelRef__name": "Qwen/Qwen3-235B-A22B", "spec__hardware__gpu__budget": 2},
        3,
        ["BudgetTooSmall", "hardware.gpu.budget", "2"],
        id="a budget that no deployment fits",
    ),
    pytest.param(
        {"spec__search__fidelity": "replay", "spec__workload__static": {"isl": 3000, "osl": 300, "concurrency": 8}},
        3,
        ["UnsupportedFeature", "search.fidelity", "replay"],
        id="replay",
    ),
    pytest.param(
        {"spec__backends": ["trtllm"], "spec__runtime__performanceDataVersion": {"trtllm": "1.3.0rc20"}},
        3,
        ["NothingRenderable", "no template renders TensorRT-LLM yet"],
        id="TensorRT-LLM",
    ),
    pytest.param(
        {"spec__search__router": [{"mode": "kv"}]}, 3, ["UnsupportedFeature", "search.router", "kv"], id="KV router"
    ),
    pytest.param(
        {"spec__overrides": {"dgd": {"spec": {"components": [{"name": "worker", "replicas": 1}]}}}},
        3,
        ["UnsupportedFeature", "overrides.dgd"],
        id="overrides.dgd",
    ),
]


@pytest.mark.parametrize(("changes", "code", "words"), WRONG)
def test_one_clear_message(
    dgdr: Dgdr, write: Write, tmp_path: Path, changes: dict[str, Any], code: int, words: list[str]
) -> None:
    out = tmp_path / "out"
    ended = dgdr("search", write(**changes), "--out", out)
    assert ended.exit_code == code, ended.output
    for word in words:
        assert word in ended.output
    assert "Traceback" not in ended.output
    assert "pydantic" not in ended.output
    if code == 2:
        assert not out.exists()
    else:
        assert (out / "run.yaml").is_file()
        assert not (out / "dgd.yaml").exists()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"{ not: yaml: at all", ["line 1"]),
        (b"- a\n- list\n", ["list"]),
        (b"", ["nothing"]),
        (b"a: 1\n---\nb: 2\n", ["document"]),
        (b"\xff\xfe\x00", ["UTF-8"]),
    ],
)
def test_a_file_that_is_no_request(dgdr: Dgdr, tmp_path: Path, content: bytes, words: list[str]) -> None:
    path = tmp_path / "request.yaml"
    path.write_bytes(content)
    ended = dgdr("search", path, "--out", tmp_path / "out")
    assert ended.exit_code == 2, ended.output
    for word in ("request.yaml", *words):
        assert word in ended.output
    assert not (tmp_path / "out").exists()


def test_every_file_is_named_by_what_is_wrong_in_it(dgdr: Dgdr, write: Write, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yaml"
    for content in ("{ not: yaml: at all", "kind: Pod\n", "kind: Candidate\n", "- 1\n"):
        wrong.write_text(content)
        for command in (("render", wrong, "--request", write()), ("verify", write(), wrong), ("space", wrong)):
            ended = dgdr(*command)
            assert ended.exit_code == 2, ended.output
            assert f"{wrong}: " in ended.stderr
    wrong.write_text("{ not: yaml: at all")
    ended = dgdr("render", write(), "--request", wrong)
    assert (ended.exit_code, f"{wrong}: is not valid" in ended.stderr) == (2, True)


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/full"])
def test_a_device_is_no_request(dgdr: Dgdr, tmp_path: Path, device: str) -> None:
    ended = dgdr("search", device, "--out", tmp_path / "out")
    assert ended.exit_code == 2
    assert f"{device}: is no regular file" in ended.stderr


def test_a_pipe_that_nobody_writes_to_is_not_waited_for(dgdr: Dgdr, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    ended = dgdr("space", tmp_path / "pipe")
    assert ended.exit_code == 2
    assert "is no regular file" in ended.stderr


def test_files_and_standard_input_have_one_bound(dgdr: Dgdr, tmp_path: Path) -> None:
    text = "# " + "x" * 1024 * 1024
    (tmp_path / "large.yaml").write_text(text)
    for named, ended in (
        (tmp_path / "large.yaml", dgdr("space", tmp_path / "large.yaml")),
        ("standard input", dgdr("space", "-", input=text)),
    ):
        assert ended.exit_code == 2
        assert f"{named}: is too large; at most 1,048,576 bytes are read" in ended.stderr


def test_a_request_comes_through_standard_input(dgdr: Dgdr, write: Write) -> None:
    assert dgdr("space", "-", input=write().read_text()).exit_code == 0


def test_a_file_that_is_not_there(dgdr: Dgdr, tmp_path: Path) -> None:
    ended = dgdr("search", tmp_path / "none.yaml", "--out", tmp_path / "out")
    assert ended.exit_code == 2
    assert "none.yaml" in ended.output


def test_a_missing_trace_is_said_to_need_a_replay(dgdr: Dgdr, write: Write, tmp_path: Path) -> None:
    trace = {"source": {"pvc": {"claimName": "traces", "path": "a.jsonl"}}}
    request = write(spec__workload={"trace": trace}, spec__search={"fidelity": "replay"})
    ended = dgdr("search", request, "--out", tmp_path / "out")
    assert ended.exit_code == 3
    assert "workload.trace" in ended.output
