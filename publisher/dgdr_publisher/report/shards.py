"""The report as ConfigMaps: slices of one Parquet file, each small enough for an object, and the logs beside them.

Every slice names the whole that it belongs to, so that a reader who comes between two checkpoints sees it. Equal
points are equal slices; logs, times and attempts differ between equal searches and lie in a shard of their own.
"""

import base64
import gzip
import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dgdr_api.events import Evaluations
from dgdr_api.group import API_VERSION, GROUP, LABEL_INPUT_HASH, LABEL_RUN_UID, RUN_KIND

from dgdr_publisher.points import parquet_bytes
from dgdr_publisher.report.thinning import thinned
from dgdr_publisher.resources import RunIdentity

SHARD_BYTES = 900 * 1024
"""Largest shard as its ConfigMap's value counts: the object limit is 1 MiB, base64 is not part of it."""
MAX_SHARDS = 8
MAX_ROWS = 200_000
"""More points are thinned before they are encoded at all, which bounds the memory that it takes."""
DATA_KEY = "points.parquet"
LABEL_REPORT = f"{GROUP}/report"
"""On every shard: ``points`` or ``logs``."""
ANNOTATION_SHARD = f"{GROUP}/report-shard"
"""On a shard of the points, as JSON: its index, how many there are, digest and size of the whole, points, kept."""
_SPARE = 0.95
"""Rows that are kept of what should fit, since rows differ in size."""


@dataclass(frozen=True)
class Encoded:
    """All points that are kept, as one file."""

    content: bytes
    points: int
    """Points of the search."""
    kept: int
    """Points in the file."""
    seed: int

    @property
    def remark(self) -> str:
        """What a reader must know; empty when every point is there."""
        if self.kept == self.points:
            return ""
        return f"{self.kept} of {self.points} points: the front, the top and a sample with seed {self.seed}"


def encoded(
    batches: Sequence[Evaluations],
    publication: Mapping[str, str],
    keep: Collection[str],
    *,
    seed: int,
    limit_bytes: int = SHARD_BYTES * MAX_SHARDS,
    max_rows: int = MAX_ROWS,
) -> Encoded:
    """Encode the points, thinned as far as the limit asks for.

    Args:
        batches: every point.
        publication: by id, the name of the published candidate or why there is none.
        keep: ids that are never thinned away.
        seed: of the sample.
        limit_bytes: size that the file may have.
        max_rows: points that are encoded at all.
    """
    points = sum(len(batch.id) for batch in batches)
    kept = tuple(batches)
    rows = min(points, max_rows)
    while True:
        kept = thinned(kept, {*keep, *publication}, rows, seed)
        content = parquet_bytes(kept, publication)
        if len(content) <= limit_bytes or rows <= 1:
            return Encoded(content, points, min(rows, points), seed)
        rows = max(1, int(rows * limit_bytes / len(content) * _SPARE))


def shard_name(run_name: str, index: int) -> str:
    """Name of a shard of the points; the first is the run's ``reportRef``."""
    return f"{run_name}-report-{index}"


def points_shards(found: Encoded, run: RunIdentity, shard_bytes: int = SHARD_BYTES) -> list[dict[str, Any]]:
    """The ConfigMaps of the points, the first one first."""
    slices = [found.content[at : at + shard_bytes] for at in range(0, len(found.content), shard_bytes)]
    digest = hashlib.sha256(found.content).hexdigest()[:32]
    shards = []
    for index, part in enumerate(slices):
        about = {
            "index": index,
            "shards": len(slices),
            "digest": digest,
            "bytes": len(found.content),
            "points": found.points,
            "kept": found.kept,
            "remark": found.remark,
        }
        shard = _config_map(shard_name(run.name, index), run, "points")
        shard["metadata"]["annotations"] = {ANNOTATION_SHARD: json.dumps(about, sort_keys=True)}
        shard["binaryData"] = {DATA_KEY: base64.b64encode(part).decode()}
        shards.append(shard)
    return shards


def logs_shard(logs: Mapping[str, Sequence[str]], facts: Mapping[str, object], run: RunIdentity) -> dict[str, Any]:
    """The ConfigMap of the logs.

    Args:
        logs: lines of each container, redacted, by its name.
        facts: times and attempts.
        run: the run.
    """
    packed = _packed(logs)
    while sum(map(len, packed.values())) > SHARD_BYTES:
        logs = {name: lines[len(lines) // 2 :] for name, lines in logs.items()}
        packed = _packed(logs)
    shard = _config_map(f"{run.name}-logs-0", run, "logs")
    shard["data"] = {"facts.json": json.dumps(facts, sort_keys=True)}
    shard["binaryData"] = {name: base64.b64encode(content).decode() for name, content in packed.items()}
    return shard


def _packed(logs: Mapping[str, Sequence[str]]) -> dict[str, bytes]:
    return {f"{name}.log.gz": gzip.compress("\n".join(lines).encode(), mtime=0) for name, lines in sorted(logs.items())}


def _config_map(name: str, run: RunIdentity, content: str) -> dict[str, Any]:
    owner = {
        "apiVersion": API_VERSION,
        "kind": RUN_KIND,
        "name": run.name,
        "uid": run.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": name,
            "namespace": run.namespace,
            "labels": {LABEL_RUN_UID: run.uid, LABEL_INPUT_HASH: run.input_hash, LABEL_REPORT: content},
            "ownerReferences": [owner],
        },
    }
