"""A folder as a store.

It holds ``run.yaml``, ``candidates/``, ``dgd.yaml`` with ``dgd.mapping.yaml``, ``points.parquet`` and
``events.ndjson``. Files are written beside their place and renamed, so nothing is ever half-written.
"""

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


class DirectoryStore:
    """Writes into one folder, which it creates."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with _translated(folder):
            (folder / "candidates").mkdir(parents=True, exist_ok=True)

    def append_event(self, event: Event) -> None:
        """Journal an event as one JSON line of ``events.ndjson``."""
        path = self._folder / "events.ndjson"
        with _translated(path), path.open("ab") as journal:
            journal.write(event.model_dump_json(by_alias=True, exclude_none=True).encode() + b"\n")

    def write_run(self, run: DynamoGraphDeploymentRun) -> None:
        """Write ``run.yaml``."""
        self._write("run.yaml", yaml_text(wire(run)).encode())

    def write_candidates(self, candidates: Sequence[DynamoGraphDeploymentCandidate]) -> None:
        """Write ``candidates/<name>.yaml`` of each."""
        for candidate in candidates:
            self._write(f"candidates/{candidate.metadata.name}.yaml", yaml_text(wire(candidate)).encode())

    def remove_candidate(self, name: str) -> None:
        """Remove ``candidates/<name>.yaml``."""
        path = self._folder / "candidates" / f"{name}.yaml"
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
            handle, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
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


class _translated:  # noqa: N801 - reads as a word in a with statement
    """Turns an OSError into this room's, naming the path."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            raise StoreError(f"{self._path}: {error.strerror or error}") from error
