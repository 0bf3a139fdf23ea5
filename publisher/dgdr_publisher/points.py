"""Every evaluated point as one columnar table."""

import io
import itertools
import json
from collections.abc import Mapping, Sequence
from typing import Any

from dgdr_api.events import Evaluations

GROUP_ROWS = 20_000
"""Rows that are encoded at once, as JSON about 12 MB."""


def point_columns(batches: Sequence[Evaluations], publication: Mapping[str, str]) -> dict[str, list[Any]]:
    """The columns of all points, in the order of the events.

    Text columns branch, id, status, reason, detail, summary, publication; integers used_gpus; floats
    ``metrics.<name>`` and ``objectives.<name>``, None where a point has no such value.
    """
    columns: dict[str, list[Any]] = {
        "branch": [batch.branch for batch in batches for _ in batch.id],
        "id": [point for batch in batches for point in batch.id],
        "status": [status for batch in batches for status in batch.status],
        "reason": [reason for batch in batches for reason in batch.reason],
        "detail": [detail for batch in batches for detail in batch.detail],
        "used_gpus": [gpus for batch in batches for gpus in batch.used_gpus],
        "summary": [summary for batch in batches for summary in batch.summary],
    }
    columns["publication"] = [publication.get(point) for point in columns["id"]]
    for group in ("metrics", "objectives"):
        for name in sorted({name for batch in batches for name in getattr(batch, group)}):
            columns[f"{group}.{name}"] = [
                value for batch in batches for value in getattr(batch, group).get(name, (None,) * len(batch.id))
            ]
    return columns


def taken(batch: Evaluations, indices: Sequence[int]) -> Evaluations:
    """A batch of these points of another, in the order given."""
    columns = {name: getattr(batch, name) for name in ("id", "status", "reason", "detail", "used_gpus", "summary")}
    picked = {name: tuple(column[index] for index in indices) for name, column in columns.items()}
    groups = {"metrics": batch.metrics, "objectives": batch.objectives}
    values = {
        group: {name: tuple(column[index] for index in indices) for name, column in named.items()}
        for group, named in groups.items()
    }
    return batch.model_copy(update=picked | values)


def parquet_bytes(batches: Sequence[Evaluations], publication: Mapping[str, str]) -> bytes:
    """The points as a Parquet file. Equal points are equal bytes.

    Groups of rows go through Arrow's reader of JSON lines, one at a time, which bounds the memory: its other ways from
    Python values import pandas, for a quarter of a second and 60 MB that a warm search does not have.
    """
    import pyarrow as pa  # noqa: PLC0415 - 140 ms that only the end of a search needs
    import pyarrow.parquet as pq  # noqa: PLC0415 - as above
    from pyarrow import json as arrow_json  # noqa: PLC0415 - as above

    columns = point_columns(batches, publication)
    kinds = {"used_gpus": pa.int64()}
    schema = pa.schema([(name, kinds.get(name, pa.float64() if "." in name else pa.string())) for name in columns])
    rows = zip(*columns.values(), strict=True)
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, schema, compression="zstd") as file:
        while lines := [json.dumps(dict(zip(columns, row, strict=True))) for row in itertools.islice(rows, GROUP_ROWS)]:
            table = arrow_json.read_json(
                io.BytesIO("\n".join(lines).encode()),
                read_options=arrow_json.ReadOptions(use_threads=False),
                parse_options=arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error"),
            )
            file.write_table(table.combine_chunks())
    return sink.getvalue()
