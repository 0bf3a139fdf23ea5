"""What `dgdr search` does beside the search itself: replace, resume, interrupt, change the request."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from dgdr_cli.output_directory import LOCK
from dgdr_cli.summary import objective_text
from dgdr_job.search.sweep import Progress, Sweep
from dgdr_publisher.directory import DirectoryStore
from dgdr_publisher.errors import StoreError

from tests.cli.conftest import Dgdr, Write


def test_force_replaces_results_and_leaves_other_files(dgdr: Dgdr, write: Write, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert dgdr("search", write(), "--out", out).exit_code == 0
    (out / "notes.txt").write_text("mine")
    (out / "candidates" / "old.yaml").write_text("a candidate of before")
    again = dgdr("search", write(spec__recommendation__maxCandidates=2), "--out", out, "--force")
    assert again.exit_code == 0, again.output
    assert (out / "notes.txt").read_text() == "mine"
    assert len(list((out / "candidates").iterdir())) == 2


def test_resume_goes_on_with_the_same_request_only(dgdr: Dgdr, write: Write, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert dgdr("search", write(), "--out", out).exit_code == 0
    before = (out / "dgd.yaml").read_bytes()
    other = dgdr("search", write(spec__hardware__gpu__budget=8), "--out", out, "--resume")
    assert other.exit_code == 2
    assert "another request" in other.output
    assert (out / "dgd.yaml").read_bytes() == before
    same = dgdr("search", write(), "--out", out, "--resume")
    assert same.exit_code == 0, same.output
    assert (out / "dgd.yaml").read_bytes() == before


def test_resume_needs_results(dgdr: Dgdr, write: Write, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "something").write_text("else")
    ended = dgdr("search", write(), "--out", out, "--resume")
    assert ended.exit_code == 2
    assert "run.yaml" in ended.output


def test_an_interrupt_keeps_what_is_known(
    dgdr: Dgdr, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C while the second branch is under way: the first branch's candidates are published, exit 130."""
    original = Sweep._report

    def report(self: Sweep, stage: str) -> None:
        original(self, stage)
        if stage == "vllm/disagg decode":
            raise KeyboardInterrupt

    monkeypatch.setattr(Sweep, "_report", report)
    out = tmp_path / "out"
    ended = dgdr("search", write(), "--out", out)
    assert ended.exit_code == 130, ended.output
    run = yaml.safe_load((out / "run.yaml").read_text())
    completed = next(each for each in run["status"]["conditions"] if each["type"] == "Completed")
    assert (completed["status"], completed["reason"]) == ("True", "Cancelled")
    assert run["status"]["candidateRefs"]
    for ref in run["status"]["candidateRefs"]:
        candidate = yaml.safe_load((out / "candidates" / f"{ref['name']}.yaml").read_text())
        assert [each["name"] for each in candidate["spec"]["components"]] == ["Frontend", "worker"]
    assert (out / "dgd.yaml").is_file()
    assert (out / "points.parquet").is_file()


def test_an_interrupt_before_anything_is_found_leaves_a_run_that_says_so(
    dgdr: Dgdr, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def report(self: Sweep, stage: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Sweep, "_report", report)
    out = tmp_path / "out"
    assert dgdr("search", write(), "--out", out).exit_code == 130
    assert yaml.safe_load((out / "run.yaml").read_text())["status"]["outcome"]["reason"] == "Cancelled"


def test_a_store_that_is_full_ends_with_four_and_a_run_that_failed(
    dgdr: Dgdr, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Candidates are written, then there is no room for the points."""

    def full(self: DirectoryStore, *_: object) -> None:
        raise StoreError("points.parquet: No space left on device")

    monkeypatch.setattr(DirectoryStore, "write_points", full)
    out = tmp_path / "out"
    ended = dgdr("search", write(), "--out", out, "-o", "json")
    assert ended.exit_code == 4, ended.output
    assert "No space left on device" in ended.stderr
    assert ended.stdout == ""
    status = yaml.safe_load((out / "run.yaml").read_text())["status"]
    completed = next(each for each in status["conditions"] if each["type"] == "Completed")
    assert (status["phase"], completed["status"], completed["reason"]) == ("Failed", "True", "SearchFailed")
    assert completed["message"] == "StoreError: points.parquet: No space left on device"
    assert not list((out / "candidates").iterdir())
    assert not (out / LOCK).exists()


def test_a_store_that_takes_nothing_more_ends_with_its_message(
    dgdr: Dgdr, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: DirectoryStore, *_: object) -> None:
        raise StoreError("No space left on device")

    monkeypatch.setattr(DirectoryStore, "_write", full)
    ended = dgdr("search", write(), "--out", tmp_path / "out")
    assert ended.exit_code == 4
    assert ended.stderr == "dgdr: No space left on device\n"


def test_results_of_before_stay_where_the_new_run_cannot_be_written(
    dgdr: Dgdr, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    assert dgdr("search", write(spec__modelRef__name="Qwen/Qwen3-33B"), "--out", out).exit_code == 3
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}

    def full(self: DirectoryStore, *_: object) -> None:
        raise StoreError("No space left on device")

    monkeypatch.setattr(DirectoryStore, "_write", full)
    assert dgdr("search", write(), "--out", out, "--force").exit_code == 4
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before


def test_an_internal_error_leaves_a_run_that_failed(
    dgdr: Dgdr, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: Sweep, stage: str) -> None:
        raise ZeroDivisionError("wrong turn")

    monkeypatch.setattr(Sweep, "_report", broken)
    out = tmp_path / "out"
    ended = dgdr("search", write(), "--out", out)
    assert ended.exit_code == 4
    assert "internal error, please report it: ZeroDivisionError: wrong turn" in ended.stderr
    outcome = yaml.safe_load((out / "run.yaml").read_text())["status"]["outcome"]
    assert (outcome["reason"], outcome["message"]) == ("SearchFailed", "ZeroDivisionError: wrong turn")


def test_the_run_stands_in_the_directory_before_the_engine_starts(
    dgdr: Dgdr, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, seen = tmp_path / "out", []

    def look(self: Sweep, stage: str) -> None:
        seen.append(yaml.safe_load((out / "run.yaml").read_text())["status"]["phase"])
        raise KeyboardInterrupt

    monkeypatch.setattr(Sweep, "_report", look)
    dgdr("search", write(), "--out", out)
    assert seen == ["Running"]


def test_a_cache_that_cannot_be_written_is_told_once(
    dgdr: Dgdr, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DGDR_CACHE_DIR", str(tmp_path / "file"))
    request = write(spec__modelRef__name="Qwen/Qwen3-235B-A22B", spec__hardware__gpu__budget=2)
    ended = dgdr("search", request, "--out", tmp_path / "out")
    assert ended.exit_code == 3
    assert ended.stderr.count("results are not cached") == 1


def test_the_largest_budget_is_searched(dgdr: Dgdr, write: Write, tmp_path: Path) -> None:
    out = tmp_path / "out"
    request = write(spec__hardware__gpu__budget=65_536, spec__search__topologies=["agg"])
    ended = dgdr("search", request, "--out", out)
    assert ended.exit_code in (0, 3), ended.output
    assert "internal error" not in ended.stderr
    assert yaml.safe_load((out / "run.yaml").read_text())["status"]["outcome"]["reason"] in (
        "SearchSucceeded",
        "NoFeasibleCandidate",
        "NothingRenderable",
    )


def test_options_change_the_request_that_is_recorded(dgdr: Dgdr, write: Write, tmp_path: Path) -> None:
    out = tmp_path / "out"
    request = write(spec__search__fidelity="replay", spec__workload__static={"isl": 500, "osl": 50, "concurrency": 4})
    options = ("--fidelity", "static", "--seed", "7", "--parallel", "2", "--max-duration", "90s")
    ended = dgdr("search", request, "--out", out, *options)
    assert ended.exit_code == 0, ended.output
    search = yaml.safe_load((out / "run.yaml").read_text())["spec"]["search"]
    assert search["fidelity"] == "static"
    assert search["parameters"] == {"sweep": {"seed": 7}}
    assert search["budget"]["parallelEvaluations"] == 2
    assert search["budget"]["maxDuration"] == "90s"


def test_json_prints_the_run_that_is_written(dgdr: Dgdr, write: Write, tmp_path: Path) -> None:
    out = tmp_path / "out"
    ended = dgdr("search", write(), "--out", out, "-o", "json")
    assert ended.exit_code == 0
    assert json.loads(ended.stdout) == yaml.safe_load((out / "run.yaml").read_text())


@pytest.mark.parametrize("output", ["json", "yaml"])
@pytest.mark.parametrize(
    ("changes", "code", "outcome"),
    [
        ({"spec__modelRef__name": "Qwen/Qwen3-33B"}, 3, "Unsupported"),
        ({"spec__search__router": [{"mode": "kv"}]}, 3, "Unsupported"),
        ({"spec__objective__sla": {"ttftMs": 1, "itlMs": 0.1}}, 3, "NoFeasibleCandidate"),
    ],
)
def test_data_alone_is_printed_when_nothing_is_found(
    dgdr: Dgdr, write: Write, tmp_path: Path, changes: dict[str, Any], code: int, outcome: str, output: str
) -> None:
    ended = dgdr("search", write(**changes), "--out", tmp_path / "out", "-o", output)
    assert ended.exit_code == code, ended.output
    printed = json.loads(ended.stdout) if output == "json" else yaml.safe_load(ended.stdout)
    assert printed["status"]["outcome"]["reason"] == outcome


def test_ranked_candidates_show_rank_and_objective_with_its_unit(dgdr: Dgdr, write: Write, tmp_path: Path) -> None:
    ended = dgdr("search", write(), "--out", tmp_path / "out")
    lines = ended.stdout.splitlines()
    head = next(line for line in lines if "deployment" in line)
    assert head.split()[:4] == ["rank", "deployment", "GPUs", "throughput"]
    best = next(line for line in lines if line.split()[:1] == ["1"])
    assert "10,917 tok/s" in best
    assert "e+04" not in ended.stdout


def test_a_front_shows_order_and_marks_what_is_in_dgd_yaml(dgdr: Dgdr, examples: Path, tmp_path: Path) -> None:
    ended = dgdr("search", examples / "qwen3-32b-pareto.yaml", "--out", tmp_path / "out")
    lines = ended.stdout.splitlines()
    head = next(line for line in lines if "deployment" in line)
    assert head.split()[:5] == ["#", "deployment", "GPUs", "throughputPerGpu", "throughputPerUser"]
    (knee,) = [line for line in lines if line.lstrip().startswith("* ") and "tok/s/GPU" in line]
    name = knee.split()[-1]
    assert dgdr("verify", tmp_path / "out/dgd.yaml", tmp_path / f"out/candidates/{name}.yaml").exit_code == 0
    assert any(line.startswith("* the knee of the front, in dgd.yaml") for line in lines)


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("throughput", 10917.24, "10,917 tok/s"),
        ("throughputPerUser", 27.2639, "27.26 tok/s/user"),
        ("throughput", 1234567.0, "1,234,567 tok/s"),
        ("minGpus", 16.0, "16 GPUs"),
        ("ttft", 0.00001, "1e-05 ms"),
        ("another", 2.5, "2.5"),
    ],
)
def test_an_objective_is_readable(name: str, value: float, text: str) -> None:
    assert objective_text(name, value) == text


def test_text_says_that_it_is_static_and_shows_chain_and_files(dgdr: Dgdr, write: Write, tmp_path: Path) -> None:
    ended = dgdr("search", write(), "--out", tmp_path / "out")
    for word in ("static estimate", "Candidates", "Version chain", "0.26.0", "0.24.0", "dgd.yaml"):
        assert word in ended.stdout


def test_progress_counts_up_to_its_total(examples: Path) -> None:
    from dgdr_cli.requests import admitted  # noqa: PLC0415
    from dgdr_job.main import sweep  # noqa: PLC0415

    seen: list[Progress] = []
    sweep(admitted(examples / "qwen3-32b.yaml").spec, lambda _: None, progress=seen.append)
    assert [each.done for each in seen] == sorted(each.done for each in seen)
    assert seen[-1].done == seen[-1].total > 0
