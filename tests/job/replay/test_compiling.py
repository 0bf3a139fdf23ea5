"""Compiled code: whether it is kept, and who is told that it is not."""

from pathlib import Path

import pytest
from dgdr_job.replay.kernel import compiling
from dgdr_job.replay.replaying import replay_spec

from tests.job.replay.specs import aggregated, static


def test_who_waits_for_the_compiler_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = aggregated(static(isl=10, osl=2, concurrency=1, requests=1))
    told: list[str] = []
    for compiled in (True, False):
        monkeypatch.setattr(compiling, "is_compiled", lambda known=compiled: known)
        replay_spec(spec, Path(), told=told.append)
    assert told == ["compiling the simulator, once on this machine: most of a minute"]


def test_code_that_was_compiled_is_found(tmp_path: Path) -> None:
    assert not compiling.is_compiled(tmp_path)
    replay_spec(aggregated(static(isl=10, osl=2, concurrency=1, requests=1)), Path())
    assert compiling.is_compiled()


def test_another_content_of_the_sources_has_a_folder_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DGDR_CACHE_DIR", str(tmp_path))
    before = compiling.cache_folder()
    changed = tmp_path / "kernel sources"
    changed.mkdir()
    for file in compiling.FOLDER.glob("*.py"):
        (changed / file.name).write_text(file.read_text() + "\n")
    monkeypatch.setattr(compiling, "FOLDER", changed)
    assert compiling.cache_folder() != before
    assert compiling.cache_folder().parent == before.parent == tmp_path / "kernel"
