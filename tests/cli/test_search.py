"""What `dgdr search` does beside the search itself: replace, resume, interrupt, change the request."""

import json
from pathlib import Path

import pytest
import yaml
from dgdr_job.search.sweep import Progress, Sweep

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
