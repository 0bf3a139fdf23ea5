"""The points of a run back from its ConfigMaps: what ``kubectl dgdr report`` and a next publisher read."""

import base64
import hashlib
import io
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, get_args

from dgdr_api.events import Evaluations
from dgdr_api.terms import PointStatus

from dgdr_publisher.errors import ReportError
from dgdr_publisher.report.shards import ANNOTATION_SHARD, DATA_KEY

_GROUPS = ("metrics", "objectives")


@dataclass(frozen=True)
class Report:
    """All points of a run, as far as they were kept."""

    parquet: bytes
    """The file, as a laptop's ``points.parquet``."""
    points: int
    """Points of the search."""
    kept: int
    """Points in the file."""
    remark: str
    """How it was thinned; empty when every point is there."""

    def columns(self) -> dict[str, list[Any]]:
        """The columns of ``dgdr_publisher.points.point_columns``."""
        import pyarrow.parquet as pq  # noqa: PLC0415 - 140 ms that only a reader needs

        found: dict[str, list[Any]] = pq.read_table(io.BytesIO(self.parquet)).to_pydict()
        return found

    def batches(self) -> tuple[Evaluations, ...]:
        """The points as events carry them, one batch for each run of points of one branch."""
        columns = self.columns()
        branches: list[str] = columns["branch"]
        starts = [at for at, name in enumerate(branches) if at == 0 or branches[at - 1] != name]
        places = pairwise([*starts, len(branches)])
        return tuple(_batch(columns, slice(start, end)) for start, end in places)


def read_report(config_maps: Iterable[Mapping[str, Any]]) -> Report:
    """Put the shards together.

    Args:
        config_maps: ConfigMaps of the run; those that hold no points are left out.

    Raises:
        ReportError: there is no shard, one is missing, or they are of two checkpoints: read them again.
    """
    shards: dict[int, tuple[Mapping[str, Any], Mapping[str, Any]]] = {}
    for found in config_maps:
        text = (found["metadata"].get("annotations") or {}).get(ANNOTATION_SHARD)
        if text is not None:
            about = json.loads(text)
            shards[int(about["index"])] = (about, found)
    if 0 not in shards:
        raise ReportError("there is no first shard of a report: the run has written none yet")
    about = shards[0][0]
    parts = [shards[index] for index in range(about["shards"]) if index in shards]
    digests = {part[0]["digest"] for part in parts}
    if len(parts) != about["shards"] or len(digests) != 1:
        raise ReportError(
            f"{len(parts)} of {about['shards']} shards of {len(digests)} checkpoints: it is being written, read again"
        )
    content = b"".join(base64.b64decode(part[1]["binaryData"][DATA_KEY]) for part in parts)
    if hashlib.sha256(content).hexdigest()[:32] != about["digest"]:
        raise ReportError(f"the shards do not make the whole of digest {about['digest']}")
    return Report(content, about["points"], about["kept"], about["remark"])


def _batch(columns: Mapping[str, list[Any]], rows: slice) -> Evaluations:
    known = get_args(PointStatus)
    strange = [status for status in columns["status"][rows] if status not in known]
    if strange:
        raise ReportError(f"status {strange[0]!r} is none of {', '.join(known)}")
    groups = {
        group: {
            name.removeprefix(f"{group}."): tuple(values[rows])
            for name, values in columns.items()
            if name.startswith(f"{group}.")
        }
        for group in _GROUPS
    }
    plain = ("id", "status", "reason", "detail", "used_gpus", "summary")
    return Evaluations(
        branch=columns["branch"][rows.start],
        **{name: tuple(columns[name][rows]) for name in plain},
        **groups,
    )
