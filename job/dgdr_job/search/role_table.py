"""All rows of one role over all its shapes, as columns: what one worker does at each batch.

Source of rates and corrections: engine.md section 6. What a shape's rows are is in `role_rows`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from dgdr_api.shape import Shape
from dgdr_api.terms import PointStatus, ReasonCategory, RoleKind

from dgdr_job.catalog.catalog import Catalog
from dgdr_job.catalog.errors import Reason, Unsupported
from dgdr_job.matching.arrays import Floats, Ints
from dgdr_job.search.config import RateMatching, Workload
from dgdr_job.search.encode_rows import encode
from dgdr_job.search.role_rows import NoRow, RoleInput, Rows, RowsOf, ShapeData, aggregated, decode, prefill

ROWS_OF: Mapping[RoleKind, RowsOf] = {"prefill": prefill, "decode": decode, "agg": aggregated, "encode": encode}


@dataclass(frozen=True)
class Skipped:
    """A shape that has no row, with the reason."""

    shape: Shape
    status: PointStatus
    reason: ReasonCategory
    detail: str


@dataclass(frozen=True)
class RoleTable:
    """One entry per row; ``shape`` is an index into ``shapes``."""

    kind: RoleKind
    shapes: tuple[ShapeData, ...]
    """Shapes with rows."""
    skipped: tuple[Skipped, ...]
    """Shapes without; those of the role that stand in neither were not reached in time."""
    shape: Ints
    gpus: Ints
    """GPUs of one worker."""
    batch: Ints
    """Requests of one attention data-parallel rank."""
    slots: Ints
    """Requests of one worker: batch times ranks."""
    batched_tokens: Ints
    """Token budget of one pass, per rank."""
    kv_tokens: Ints
    """KV tokens of one rank at that budget."""
    held: Ints
    """KV tokens of one worker, in whole blocks of each rank."""
    weights_gib: Floats
    memory_fraction: Floats
    rate: Floats
    """Requests per second of one worker, after degradation; infinite for decode where no token follows the first."""
    ttft_ms: Floats
    """Time to first token as it counts in the topology; 0 for decode. Of an encode worker what its pass adds to it."""
    tpot_ms: Floats
    """Time per output token after the first; 0 for prefill and encode."""

    def __len__(self) -> int:
        return len(self.batch)

    @property
    def reached(self) -> tuple[Shape, ...]:
        """Every shape that was looked at."""
        return (*(known.shape for known in self.shapes), *(out.shape for out in self.skipped))


def role_table(
    catalog: Catalog,
    role: RoleInput,
    workload: Workload,
    constants: RateMatching,
    *,
    progress: Callable[[Shape], None] = lambda _: None,
    stop: Callable[[], bool] = lambda: False,
) -> RoleTable:
    """Compute the rows of a role.

    Args:
        catalog: source of times and KV estimates.
        role: what the rows are computed from.
        workload: lengths of the requests.
        constants: corrections of the static estimate.
        progress: told each shape that is done.
        stop: asked before each shape; once true, the remaining shapes are left out.
    """
    known: list[ShapeData] = []
    skipped: list[Skipped] = []
    parts: list[Rows] = []
    for shape in role.shapes:
        if stop():
            break
        try:
            data, rows = ROWS_OF[role.kind](catalog, role, shape, workload, constants)
        except Unsupported as error:
            skipped.append(_unsupported(shape, error))
        except NoRow as verdict:
            skipped.append(Skipped(shape, "infeasible", verdict.reason, verdict.detail))
        else:
            known.append(data)
            parts.append(rows)
        progress(shape)
    return table_of(role.kind, tuple(known), tuple(skipped), parts, block_tokens=role.knobs.block_size[0])


def table_of(
    kind: RoleKind,
    shapes: tuple[ShapeData, ...],
    skipped: tuple[Skipped, ...],
    parts: list[Rows],
    *,
    block_tokens: int = 1,
) -> RoleTable:
    """One table of the rows of each shape, in the order of the shapes; a KV block has so many tokens."""
    counts = [len(rows.batch) for rows in parts]

    def per_shape(values: list[int]) -> Ints:
        return np.repeat(np.array(values, dtype=np.int64), counts)

    def joined(name: str, dtype: type) -> npt.NDArray[Any]:
        return np.concatenate([np.empty(0, dtype=dtype), *(getattr(rows, name) for rows in parts)])

    batch = joined("batch", np.int64)
    estimates = [estimate for rows in parts for estimate in rows.estimates]
    ranks = per_shape([known.shape.attention_dp for known in shapes])
    kv_tokens = np.array([estimate.tokens_per_rank for estimate in estimates], dtype=np.int64)
    return RoleTable(
        kind=kind,
        shapes=shapes,
        skipped=skipped,
        shape=per_shape(list(range(len(parts)))),
        gpus=per_shape([known.shape.gpus for known in shapes]),
        batch=batch,
        slots=batch * ranks,
        batched_tokens=joined("batched_tokens", np.int64),
        kv_tokens=kv_tokens,
        held=kv_tokens // block_tokens * block_tokens * ranks,
        weights_gib=np.array([estimate.weights_gib for estimate in estimates], dtype=np.float64),
        memory_fraction=np.array([estimate.memory_fraction for estimate in estimates], dtype=np.float64),
        rate=joined("rate", np.float64),
        ttft_ms=joined("ttft_ms", np.float64),
        tpot_ms=joined("tpot_ms", np.float64),
    )


def valid_rows(table: RoleTable, osl: int) -> npt.NDArray[np.bool_]:
    """Whether each row's rate and latencies are positive finite numbers: nothing else may ever be ranked.

    Args:
        table: rows of a role.
        osl: output tokens; with one there is no decode time, and decoding has no end to its rate.
    """
    one_token = osl == 1
    valid = np.isfinite(table.ttft_ms) & np.isfinite(table.tpot_ms)
    valid &= (table.rate > 0) & (np.isfinite(table.rate) | (one_token and table.kind == "decode"))
    if table.kind != "decode":
        valid &= table.ttft_ms > 0
    if table.kind not in ("prefill", "encode"):
        valid &= (table.tpot_ms >= 0) if one_token else (table.tpot_ms > 0)
    return valid


def _unsupported(shape: Shape, error: Unsupported) -> Skipped:
    """Data that is missing makes a shape unsupported; a latency that is no positive number is a failed evaluation."""
    text = f"{error.reason}: {error.message}"
    if error.reason is Reason.INVALID_DATA:
        return Skipped(shape, "failed", "invalid_metrics", text)
    return Skipped(shape, "unsupported", "no_samples", text)
