"""Where results go: a directory of one search at a time; what cannot be one is refused and left as it is."""

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from dgdr_cli.output_directory import LOCK

from tests.cli.conftest import Dgdr, Write


def test_a_directory_that_is_not_empty_is_left_alone(dgdr: Dgdr, write: Write, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "thesis.txt").write_text("mine")
    ended = dgdr("search", write(), "--out", out)
    assert ended.exit_code == 2
    assert "thesis.txt" in ended.output
    assert "--force" in ended.output
    assert [path.name for path in out.iterdir()] == ["thesis.txt"]


def a_file(out: Path) -> Path:
    out.write_text("a file")
    return out


def below_a_file(out: Path) -> Path:
    return a_file(out) / "deep" / "er"


def dangling(out: Path) -> Path:
    out.symlink_to(out.parent / "nowhere")
    return out


def a_loop(out: Path) -> Path:
    out.symlink_to(out)
    return out


def too_long(out: Path) -> Path:
    return out.parent / ("x" * 300)


def in_proc(_: Path) -> Path:
    return Path("/proc/dgdr-out/deep")


def candidates_a_file(out: Path) -> Path:
    out.mkdir()
    a_file(out / "candidates")
    return out


def candidates_elsewhere(out: Path) -> Path:
    out.mkdir()
    (out.parent / "elsewhere").mkdir()
    (out / "candidates").symlink_to(out.parent / "elsewhere")
    return out


def run_a_directory(out: Path) -> Path:
    (out / "run.yaml").mkdir(parents=True)
    return out


def a_link_as_lock(out: Path) -> Path:
    out.mkdir()
    (out / LOCK).symlink_to(out.parent / "elsewhere")
    return out


WRONG: list[tuple[Callable[[Path], Path], str]] = [
    (a_file, "is no directory"),
    (below_a_file, "Not a directory"),
    (dangling, "leads nowhere"),
    (a_loop, "leads nowhere"),
    (too_long, "File name too long"),
    (in_proc, "No such file"),
    (candidates_a_file, "is no directory of its own"),
    (candidates_elsewhere, "is no directory of its own"),
    (run_a_directory, "run.yaml is a directory"),
    (a_link_as_lock, "symbolic links"),
]


@pytest.mark.parametrize("option", ["", "--force", "--resume"])
@pytest.mark.parametrize(("make", "reason"), WRONG, ids=lambda each: getattr(each, "__name__", ""))
def test_what_cannot_take_results_is_refused_with_path_and_reason(
    dgdr: Dgdr, write: Write, tmp_path: Path, make: Callable[[Path], Path], reason: str, option: str
) -> None:
    out = make(tmp_path / "out")
    before = sorted(tmp_path.rglob("*"))
    ended = dgdr("search", write(), "--out", out, *filter(None, [option]))
    assert ended.exit_code == 2, ended.output
    assert str(out) in ended.stderr
    assert reason in ended.stderr
    assert "Traceback" not in ended.stderr
    assert [path for path in sorted(tmp_path.rglob("*")) if path.name != "request.yaml"] == before


def test_no_name_is_no_directory(dgdr: Dgdr, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    request = write()
    monkeypatch.chdir(tmp_path)
    ended = dgdr("search", request, "--out", "")
    assert ended.exit_code == 2
    assert "--out" in ended.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["request.yaml"]


def test_resume_and_force_exclude_each_other(dgdr: Dgdr, write: Write, tmp_path: Path) -> None:
    ended = dgdr("search", write(), "--out", tmp_path / "out", "--resume", "--force")
    assert ended.exit_code == 2
    assert "--resume" in ended.stderr
    assert "--force" in ended.stderr
    assert not (tmp_path / "out").exists()


DAMAGED = [
    ("", "found nothing"),
    ("- a\n", "found a list"),
    ("{ not: yaml: at all", "line 1"),
    ("kind: DynamoGraphDeploymentRun\n", "metadata.annotations"),
    ("metadata: {annotations: 7}\n", "metadata.annotations"),
    ("metadata: {annotations: {other: x}}\n", "metadata.annotations"),
]


@pytest.mark.parametrize(("content", "reason"), DAMAGED)
def test_a_run_that_cannot_be_read_is_named(
    dgdr: Dgdr, write: Write, tmp_path: Path, content: str, reason: str
) -> None:
    path = tmp_path / "out" / "run.yaml"
    path.parent.mkdir()
    path.write_text(content)
    ended = dgdr("search", write(), "--out", path.parent, "--resume")
    assert ended.exit_code == 2
    assert str(path) in ended.stderr
    assert reason in ended.stderr
    assert "request.yaml" not in ended.stderr
    assert path.read_text() == content


def test_what_a_killed_search_left_counts_as_nothing_and_goes(dgdr: Dgdr, write: Write, tmp_path: Path) -> None:
    out = tmp_path / "out"
    left = (out / LOCK, out / ".run.yaml.k2x_9a4c.part", out / "candidates" / ".a.yaml.k2x_9a4c.part")
    (out / "candidates").mkdir(parents=True)
    for path in left:
        path.write_text("")
    ended = dgdr("search", write(spec__modelRef__name="Qwen/Qwen3-33B"), "--out", out)
    assert ended.exit_code == 3, ended.output
    assert not [path for path in left if path.exists()]


def test_candidates_of_somebody_are_something(dgdr: Dgdr, write: Write, tmp_path: Path) -> None:
    out = tmp_path / "out"
    (out / "candidates").mkdir(parents=True)
    (out / "candidates" / "mine.yaml").write_text("")
    ended = dgdr("search", write(), "--out", out)
    assert ended.exit_code == 2
    assert "candidates" in ended.stderr


@pytest.mark.parametrize("option", ["", "--force", "--resume"])
def test_a_directory_that_another_search_writes_to_is_refused(
    dgdr: Dgdr, write: Write, tmp_path: Path, option: str
) -> None:
    lock = os.open(tmp_path / LOCK, os.O_CREAT | os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    request = write()
    ended = dgdr("search", request, "--out", tmp_path, *filter(None, [option]))
    os.close(lock)
    assert ended.exit_code == 2
    assert "another search writes there" in ended.stderr
    assert {path.name for path in tmp_path.iterdir()} == {LOCK, "request.yaml"}


def test_results_of_another_request_are_kept_until_the_new_run_stands(dgdr: Dgdr, write: Write, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert dgdr("search", write(spec__modelRef__name="Qwen/Qwen3-33B"), "--out", out).exit_code == 3
    (out / "dgd.yaml").write_text("of an earlier search")
    ended = dgdr("search", write(spec__modelRef__name="Qwen/Qwen3-34B"), "--out", out, "--force")
    assert ended.exit_code == 3
    assert yaml.safe_load((out / "run.yaml").read_text())["spec"]["modelRef"]["name"] == "Qwen/Qwen3-34B"
    assert not (out / "dgd.yaml").exists()
