"""A scratch directory goes with its owner, and a dead owner's goes with the next run."""

import tempfile
from pathlib import Path

import pytest

from tests.controlplane.directory import remove_abandoned, scratch_directory


@pytest.fixture(autouse=True)
def _own_temporary_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def test_directory_is_removed_at_the_end() -> None:
    with scratch_directory("plane-") as directory:
        (directory / "file").touch()
    assert not directory.exists()


def test_directory_of_a_living_owner_stays() -> None:
    with scratch_directory("plane-") as directory:
        remove_abandoned("plane-")
        with scratch_directory("plane-") as other:
            assert directory.is_dir()
            assert other != directory


def test_directory_of_a_dead_owner_is_removed_by_the_next_run(tmp_path: Path) -> None:
    abandoned = tmp_path / "plane-abandoned"
    abandoned.mkdir()
    (abandoned / "owner.lock").touch()  # there, and locked by nobody
    with scratch_directory("plane-"):
        assert not abandoned.exists()


def test_directory_that_is_just_being_made_stays(tmp_path: Path) -> None:
    young = tmp_path / "plane-young"
    young.mkdir()
    (young / "new.lock").touch()
    remove_abandoned("plane-")
    assert young.is_dir()
