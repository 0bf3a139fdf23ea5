"""The border of the engine: what it says in the pipe, and how its faults become words."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from dgdr_api.base import wire
from dgdr_api.events import Counters, Event, RoundCompleted
from dgdr_job.catalog.local import ModelInputs
from dgdr_job.main import child
from dgdr_job.main.child import Emitter, search
from pydantic import TypeAdapter

from tests.conftest import ROOT
from tests.job.search.runs import run

EVENT: TypeAdapter[Event] = TypeAdapter(Event)
ENVELOPE = {"attempt": "a", "runUid": "u", "time": "2026-01-02T03:04:05Z"}


def told(path: Path, **mounts: Path) -> tuple[int, list[tuple[str, Any]]]:
    pipe = io.BytesIO()
    code = search(path, Emitter(pipe), **mounts)
    lines = [line.partition(b" ") for line in pipe.getvalue().splitlines()]
    return code, [(kind.decode(), json.loads(data)) for kind, _, data in lines]


def run_file(folder: Path, content: object) -> Path:
    path = folder / "run.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_a_search_is_lines_that_become_events(tmp_path: Path) -> None:
    code, lines = told(run_file(tmp_path, wire(run(search={"topologies": ["agg"]}))))
    assert code == 0
    assert (lines[0][0], lines[-1][0]) == ("search.resolved", "search.completed")
    for seq, (kind, data) in enumerate(lines, start=1):
        EVENT.validate_python({**ENVELOPE, "seq": seq, "type": kind, "data": data})


def test_a_whole_run_is_read_as_well_as_its_spec(tmp_path: Path) -> None:
    spec = wire(run(search={"topologies": ["agg"]}))
    whole = {"apiVersion": "sweeper.dgdr.dev/v1beta2", "kind": "DynamoGraphDeploymentRun", "spec": spec}
    assert child.read_spec(run_file(tmp_path, whole)) == child.read_spec(run_file(tmp_path, spec))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is no JSON"),
        ("[]", "run.json: Input should be an object"),
        ({**wire(run()), "backends": ["tgi"]}, "backends.0: "),
        (wire(run(search={"parameters": {"sweep": {"seeds": 1}}})), "search.parameters.sweep.seeds: is no key"),
        (wire(run(runtime={"image": "nvcr.io/nvidia/ai-dynamo/vllm-runtime:9.9.9"})), "9.9.9"),
    ],
)
def test_a_bad_input_is_named(tmp_path: Path, content: object, message: str) -> None:
    code, lines = told(run_file(tmp_path, content))
    assert code == 4
    ((kind, data),) = lines
    assert (kind, data["reason"]) == ("search.failed", "InvalidSpec")
    assert message in data["message"]


def test_the_model_of_a_run_is_read_from_what_is_mounted(tmp_path: Path) -> None:
    llama = ROOT / "tests" / "data" / "models" / "llama-fp8-dynamic" / "config.json"
    ref = {"name": "me/llama", "config": {"configMap": {"name": "llama", "key": "l.json"}}}
    spec = run("sglang", modelRef=ref, search={"topologies": ["agg"]}, hardware={"gpu": {"budget": 1}})
    path = run_file(tmp_path, wire(spec))
    (tmp_path / "maps" / "llama").mkdir(parents=True)
    for content, outcome, message in (
        (llama.read_text(), "SearchSucceeded", "best throughputPerGpu"),
        ("{}", "Unsupported", "modelRef.config.configMap llama, key l.json: architectures must name the model's class"),
    ):
        (tmp_path / "maps" / "llama" / "l.json").write_text(content)
        code, lines = told(path, claims=tmp_path / "claims", config_maps=tmp_path / "maps")
        assert code == 0
        kind, data = lines[-1]
        assert (kind, data["outcome"]) == ("search.completed", outcome)
        assert message in data["message"]


def test_mounts_are_named_by_what_the_run_names(tmp_path: Path) -> None:
    ref = {"name": "me/a", "config": {"configMap": {"name": "a"}}, "cache": {"pvc": {"name": "b"}}}
    found = child.model_inputs(run(modelRef=ref), claims=Path("/c"), config_maps=Path("/m"))
    assert found == ModelInputs(config_maps={"a": Path("/m/a")}, claims={"b": Path("/c/b")})
    assert child.model_inputs(run(modelRef=ref), claims=None, config_maps=None) == ModelInputs()
    assert child.model_inputs(run(), claims=Path("/c"), config_maps=Path("/m")) == ModelInputs()


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    code, lines = told(tmp_path / "absent.json")
    assert (code, lines[0][1]["message"]) == (4, f"{tmp_path / 'absent.json'}: No such file or directory")


def test_a_fault_of_the_engine_is_an_event_with_the_counters_of_the_last_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(spec: object, emit: Emitter, **_: object) -> None:
        emit(RoundCompleted(branch="b", round=1, total=1, counters=Counters(feasible=7), reserve=()))
        raise KeyError("x" * 600)

    monkeypatch.setattr(child, "sweep", crash)
    code, lines = told(run_file(tmp_path, wire(run())))
    assert code == 4
    kind, data = lines[-1]
    assert (kind, data["reason"], data["counters"]["feasible"]) == ("search.failed", "KeyError", 7)
    assert len(data["message"]) == 500


def test_the_process_leaves_all_it_said_and_its_exit_code(tmp_path: Path) -> None:
    code = f"""
import runpy, sys
from dgdr_job.main import engine
def crash(*_, **__):
    print("out")
    raise KeyError("gone")
engine.sweep = crash
sys.argv[1:] = ["--run", {str(run_file(tmp_path, wire(run())))!r}, "--events-fd", sys.argv[1]]
runpy.run_module("dgdr_job.main.child", run_name="__main__")
"""
    with (tmp_path / "events").open("wb") as events:
        command = [sys.executable, "-c", code, str(events.fileno())]
        environment = {**os.environ, "PYTHONUNBUFFERED": ""}
        ended = subprocess.run(
            command, check=False, capture_output=True, pass_fds=[events.fileno()], env=environment, text=True
        )
    assert (ended.returncode, ended.stdout) == (4, "out\n")
    assert "ERROR engine the engine failed" in ended.stderr
    assert (tmp_path / "events").read_text().startswith('search.failed {"reason":"KeyError"')
