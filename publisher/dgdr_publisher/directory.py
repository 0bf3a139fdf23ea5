"""A folder as a store.

It holds ``run.yaml``, ``candidates/``, ``dgd.yaml`` with ``dgd.mapping.yaml``, ``points.parquet`` and
``events.ndjson``. Files are written beside their place and renamed, so nothing is ever half-written.
"""

import fnmatch
import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from dgdr_api.base import wire
from dgdr_api.candidate_resource import DynamoGraphDeploymentCandidate, MaterializedValue
from dgdr_api.events import Evaluations, Event
from dgdr_api.run import DynamoGraphDeploymentRun

from dgdr_publisher.errors import StoreError
from dgdr_publisher.points import parquet_bytes
from dgdr_publisher.yaml_text import yaml_text

CANDIDATES = "candidates"
RESULTS = ("run.yaml", "dgd.yaml", "dgd.mapping.yaml", "points.parquet", "events.ndjson")
_PART = ".part"


class DirectoryStore:
    """Writes into one folder, which it creates."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        candidates = folder / CANDIDATES
        if candidates.is_symlink():
            raise StoreError(f"{candidates}: is a symbolic link; candidates are written into the folder itself")
        with _translated(folder):
            candidates.mkdir(parents=True, exist_ok=True)

    def remove_earlier_results(self) -> None:
        """Remove what a search wrote here before, its unfinished files too, but ``run.yaml`` and foreign files."""
        candidates = self._folder / CANDIDATES
        with _translated(self._folder):
            left = [path for path in self._folder.iterdir() if path.name != CANDIDATES and is_left_over(path)]
            former = [self._folder / name for name in RESULTS if name != "run.yaml"]
            for path in (*left, *former, *candidates.glob("*.yaml"), *filter(is_left_over, candidates.iterdir())):
                if path.is_symlink() or not path.is_dir():
                    path.unlink(missing_ok=True)

    def append_event(self, event: Event) -> None:
        """Journal an event as one JSON line of ``events.ndjson``; a line that does not fit is taken back."""
        path = self._folder / "events.ndjson"
        rest = memoryview(event.model_dump_json(by_alias=True, exclude_none=True).encode() + b"\n")
        with _translated(path), path.open("ab", buffering=0) as journal:
            whole = journal.tell()
            try:
                while rest:
                    rest = rest[journal.write(rest) :]
            except BaseException:
                journal.truncate(whole)
                raise

    def write_run(self, run: DynamoGraphDeploymentRun) -> None:
        """Write ``run.yaml``."""
        self._write("run.yaml", yaml_text(wire(run)).encode())

    def write_candidates(self, candidates: Sequence[DynamoGraphDeploymentCandidate]) -> None:
        """Write ``candidates/<name>.yaml`` of each."""
        for candidate in candidates:
            self._write(f"{CANDIDATES}/{candidate.metadata.name}.yaml", yaml_text(wire(candidate)).encode())

    def remove_candidate(self, name: str) -> None:
        """Remove ``candidates/<name>.yaml``."""
        path = self._folder / CANDIDATES / f"{name}.yaml"
        with _translated(path):
            path.unlink(missing_ok=True)

    def write_best(self, dgd: Mapping[str, Any], materialization: Sequence[MaterializedValue]) -> None:
        """Write ``dgd.mapping.yaml`` and ``dgd.yaml``."""
        self._write("dgd.mapping.yaml", yaml_text([wire(row) for row in materialization]).encode())
        self._write("dgd.yaml", yaml_text(dgd).encode())

    def write_points(self, batches: Sequence[Evaluations], publication: Mapping[str, str]) -> None:
        """Write ``points.parquet``."""
        self._write("points.parquet", parquet_bytes(batches, publication))

    def _write(self, name: str, content: bytes) -> None:
        path = self._folder / name
        with _translated(path):
            handle, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=_PART)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
                Path(beside).chmod(0o644)
                Path(beside).replace(path)
            except BaseException:
                with suppress(FileNotFoundError):
                    Path(beside).unlink()
                raise


def is_left_over(path: Path) -> bool:
    """Whether an entry of a folder tells nothing: a file that a killed search had not finished, no candidates yet."""
    if path.name == CANDIDATES:
        return path.is_dir() and not path.is_symlink() and all(map(is_left_over, path.iterdir()))
    return any(fnmatch.fnmatchcase(path.name, f".{name}.*{_PART}") for name in (*RESULTS, "*.yaml"))


class _translated:  # noqa: N801 - reads as a word in a with statement
    """Turns an OSError into this room's, naming the path."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            raise StoreError(f"{self._path}: {error.strerror or error}") from error
