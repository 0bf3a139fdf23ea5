import json
import tempfile
import threading
from pathlib import Path

import pytest
from dgdr_job.catalog.cache import DiskCache, default_folder
from pydantic import JsonValue


def only_file(folder: Path) -> Path:
    (file,) = (path for path in folder.rglob("*") if path.is_file())
    return file


def test_a_stored_value_is_found_by_equal_inputs_in_any_order(tmp_path: Path) -> None:
    DiskCache(tmp_path).store("decode", {"a": 1, "b": [1, 2]}, {"ms": [0.1, 2.5e-9, 1 / 3]})
    cache = DiskCache(tmp_path)
    assert cache.load("decode", {"b": [1, 2], "a": 1}) == {"ms": [0.1, 2.5e-9, 1 / 3]}
    assert cache.load("decode", {"a": 1, "b": [2, 1]}) is None
    assert cache.load("prefill", {"a": 1, "b": [1, 2]}) is None
    assert (cache.hits, cache.misses) == (1, 2)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b'{"schema": 1, "key": {"model"',
        b"\xff\xfe\x00",
        b"[]",
        b'{"schema": 0, "key": {"isl": 3000, "model": "m"}, "value": 7}',
        b'{"schema": 1, "key": {"isl": 3000, "model": "another"}, "value": 7}',
    ],
    ids=["empty", "cut short", "not text", "foreign", "older schema", "other inputs"],
)
def test_a_file_that_cannot_be_used_is_a_miss_and_is_written_again(tmp_path: Path, content: bytes) -> None:
    cache = DiskCache(tmp_path)
    cache.store("decode", {"model": "m", "isl": 3000}, 5)
    only_file(tmp_path).write_bytes(content)
    assert cache.load("decode", {"model": "m", "isl": 3000}) is None
    cache.store("decode", {"model": "m", "isl": 3000}, 6)
    assert cache.load("decode", {"model": "m", "isl": 3000}) == 6
    assert cache.notes == []


def test_a_folder_that_cannot_be_written_means_no_cache_and_one_note(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("a file where the folder should be")
    cache = DiskCache(blocked / "cache")
    for isl in (1, 2, 3):
        cache.store("decode", {"isl": isl}, 5)
        assert cache.load("decode", {"isl": isl}) is None
    assert cache.notes == [f"results are not cached: {blocked / 'cache'} cannot be written (Not a directory)"]


def test_values_that_json_cannot_hold_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        DiskCache(tmp_path).store("decode", {}, float("nan"))
    assert list(tmp_path.iterdir()) == []


def test_two_writers_leave_one_whole_file(tmp_path: Path) -> None:
    values: list[JsonValue] = [[writer] * 20_000 for writer in range(2)]
    seen: list[JsonValue] = []

    def write(value: JsonValue) -> None:
        cache = DiskCache(tmp_path)
        for _ in range(20):
            cache.store("decode", {}, value)
            seen.append(cache.load("decode", {}))

    writers = [threading.Thread(target=write, args=(value,)) for value in values]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert len(seen) == 40
    assert all(value in values for value in seen)
    assert json.loads(only_file(tmp_path).read_text())["value"] in values


def test_the_folder_is_chosen_by_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DGDR_CACHE_DIR", str(tmp_path / "own"))
    assert default_folder() == tmp_path / "own"
    monkeypatch.delenv("DGDR_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert default_folder() == tmp_path / "xdg" / "dgdr"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_folder() == tmp_path / ".cache" / "dgdr"


def test_a_user_without_a_home_caches_among_temporary_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("DGDR_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert default_folder() == tmp_path / "dgdr"
