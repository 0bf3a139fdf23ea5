"""All rows of one role over all its shapes, as columns: what one worker does at each batch.

Source of rates and corrections: engine.md section 6.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from dgdr_api.shape import Shape
from dgdr_api.terms import RoleKind

from dgdr_job.catalog.catalog import Catalog
from dgdr_job.catalog.errors import Unsupported
from dgdr_job.catalog.identity import PerfIdentity
from dgdr_job.catalog.kv import KvEstimate
from dgdr_job.catalog.provenance import SourceShares
from dgdr_job.matching.arrays import Floats, Ints
from dgdr_job.search.config import RateMatching, Workload
from dgdr_job.space.gate import kv_estimate
from dgdr_job.space.knobs import RoleKnobs
from dgdr_job.timing.batches import BATCH_GRID, max_batch
from dgdr_job.timing.corrections import correct_decode, correct_prefill
from dgdr_job.timing.plausibility import Plausibility
from dgdr_job.timing.rows import agg_rows, decode_rows, prefill_rows


@dataclass(frozen=True)
class Skipped:
    """A shape that has no row, with the reason."""

    shape: Shape
    reason: str
    detail: str


@dataclass(frozen=True)
class ShapeData:
    """What is known of one shape of a role besides its rows."""

    shape: Shape
    shares: SourceShares
    plausibility: Plausibility


@dataclass(frozen=True)
class RoleTable:
    """One entry per row; ``shape`` is an index into ``shapes``."""

    kind: RoleKind
    shapes: tuple[ShapeData, ...]
    skipped: tuple[Skipped, ...]
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
    weights_gib: Floats
    memory_fraction: Floats
    rate: Floats
    """Requests per second of one worker, after degradation."""
    ttft_ms: Floats
    """Time to first token as it counts in the topology; 0 for decode."""
    tpot_ms: Floats
    """Time per output token after the first; 0 for prefill."""

    def __len__(self) -> int:
        return len(self.batch)

    def take(self, rows: Ints) -> "RoleTable":
        """The table with these rows only."""
        columns = {name: getattr(self, name)[rows] for name in _COLUMNS}
        return RoleTable(self.kind, self.shapes, self.skipped, **columns)


_COLUMNS = (
    "shape",
    "gpus",
    "batch",
    "slots",
    "batched_tokens",
    "kv_tokens",
    "weights_gib",
    "memory_fraction",
    "rate",
    "ttft_ms",
    "tpot_ms",
)


@dataclass(frozen=True)
class RoleInput:
    """What a role's rows are computed from."""

    kind: RoleKind
    identity: PerfIdentity
    shapes: tuple[Shape, ...]
    """Shapes that passed the KV gate."""
    knobs: RoleKnobs


@dataclass(frozen=True)
class _Rows:
    batch: Ints
    batched_tokens: Ints
    rate: Floats
    ttft_ms: Floats
    tpot_ms: Floats
    estimates: list[KvEstimate]
    """KV estimate of each row."""


class NoRow(Exception):  # noqa: N818 - a verdict on one shape, not a fault
    """A shape has no operating point; the text says why."""


def role_table(
    catalog: Catalog,
    role: RoleInput,
    workload: Workload,
    constants: RateMatching,
    progress: Callable[[Shape], None] = lambda _: None,
) -> RoleTable:
    """Compute the rows of a role.

    Args:
        catalog: source of times and KV estimates.
        role: what the rows are computed from.
        workload: lengths of the requests.
        constants: corrections of the static estimate.
        progress: told each shape that is done.
    """
    rows_of = {"prefill": _prefill, "decode": _decode, "agg": _agg}[role.kind]
    known: list[ShapeData] = []
    skipped: list[Skipped] = []
    columns: dict[str, list[Floats | Ints]] = {name: [] for name in _COLUMNS}
    for shape in role.shapes:
        try:
            data, rows = rows_of(catalog, role, shape, workload, constants)
        except Unsupported as error:
            skipped.append(Skipped(shape, error.reason.value, error.message))
        except NoRow as error:
            skipped.append(Skipped(shape, "NoOperatingPoint", str(error)))
        else:
            for name, column in _columns(len(known), shape, rows):
                columns[name].append(column)
            known.append(data)
        progress(shape)
    integers = {"shape", "gpus", "batch", "slots", "batched_tokens", "kv_tokens"}
    arrays = {
        name: np.concatenate(parts) if parts else np.empty(0, np.int64 if name in integers else np.float64)
        for name, parts in columns.items()
    }
    return RoleTable(role.kind, tuple(known), tuple(skipped), **arrays)


def _columns(index: int, shape: Shape, rows: _Rows) -> Iterator[tuple[str, Floats | Ints]]:
    count = len(rows.batch)
    yield "shape", np.full(count, index, dtype=np.int64)
    yield "gpus", np.full(count, shape.gpus, dtype=np.int64)
    yield "batch", rows.batch
    yield "slots", rows.batch * shape.attention_dp
    yield "batched_tokens", rows.batched_tokens
    yield "kv_tokens", np.array([estimate.tokens_per_rank for estimate in rows.estimates], dtype=np.int64)
    yield "weights_gib", np.array([estimate.weights_gib for estimate in rows.estimates])
    yield "memory_fraction", np.array([estimate.memory_fraction for estimate in rows.estimates])
    yield "rate", rows.rate
    yield "ttft_ms", rows.ttft_ms
    yield "tpot_ms", rows.tpot_ms


def _prefill(
    catalog: Catalog, role: RoleInput, shape: Shape, workload: Workload, constants: RateMatching
) -> tuple[ShapeData, _Rows]:
    """Batch is part of the row; the token budget is the least listed value that covers the batch's prompts."""
    batches: list[int] = []
    budgets: list[int] = []
    estimates: list[KvEstimate] = []
    for batch in constants.prefill_batches:
        budget = role.knobs.batched_tokens_for(batch * workload.isl)
        if budget is None:
            continue
        estimate = kv_estimate(catalog, role.identity, shape, budget, role.knobs.memory_fraction[0])
        if batch * workload.isl <= estimate.tokens_per_rank:
            batches.append(batch)
            budgets.append(budget)
            estimates.append(estimate)
    if not batches:
        raise NoRow(
            f"no listed token budget ({', '.join(map(str, role.knobs.max_num_batched_tokens))}) "
            f"with its KV cache holds a prefill pass of {workload.isl} tokens"
        )
    rows = prefill_rows(catalog, role.identity, shape, isl=workload.isl, batches=batches)
    rates = correct_prefill(
        rows.batch, rows.latency_ms, ranks=shape.attention_dp * shape.pp, corrections=constants.corrections
    )
    return ShapeData(shape, rows.shares, rows.plausibility), _Rows(
        batch=rows.batch,
        batched_tokens=np.array(budgets, dtype=np.int64),
        rate=rates.requests_per_s * constants.prefill_rate,
        ttft_ms=rates.ttft_ms,
        tpot_ms=np.zeros(len(batches)),
        estimates=estimates,
    )


def _decode(
    catalog: Catalog, role: RoleInput, shape: Shape, workload: Workload, constants: RateMatching
) -> tuple[ShapeData, _Rows]:
    budget = role.knobs.max_num_batched_tokens[0]
    estimate = kv_estimate(catalog, role.identity, shape, budget, role.knobs.memory_fraction[0])
    limit = min(max_batch(estimate.tokens_per_rank, workload.isl + workload.osl), budget)
    batches = [batch for batch in BATCH_GRID if batch <= limit]
    if not batches:
        raise NoRow(_no_request(estimate, workload))
    rows = decode_rows(catalog, role.identity, shape, isl=workload.isl, osl=workload.osl, batches=batches)
    rates = correct_decode(
        rows.batch,
        rows.decode_total_ms,
        osl=workload.osl,
        ranks=shape.attention_dp * shape.pp,
        corrections=constants.corrections,
    )
    return ShapeData(shape, rows.shares, rows.plausibility), _Rows(
        batch=rows.batch,
        batched_tokens=np.full(len(batches), budget, dtype=np.int64),
        rate=rates.requests_per_s * constants.decode_rate,
        ttft_ms=np.zeros(len(batches)),
        tpot_ms=rates.tpot_ms,
        estimates=[estimate] * len(batches),
    )


def _agg(
    catalog: Catalog, role: RoleInput, shape: Shape, workload: Workload, constants: RateMatching
) -> tuple[ShapeData, _Rows]:
    limits: dict[int, int] = {}
    by_budget: dict[int, KvEstimate] = {}
    budgets_tried = sorted({*role.knobs.max_num_batched_tokens, *constants.agg_ctx_tokens})
    for budget in budgets_tried:
        by_budget[budget] = kv_estimate(catalog, role.identity, shape, budget, role.knobs.memory_fraction[0])
        limits[budget] = max_batch(by_budget[budget].tokens_per_rank, workload.isl + workload.osl)
    batches = [batch for batch in BATCH_GRID if batch <= max(limits.values())]
    if not batches:
        raise NoRow(_no_request(by_budget[budgets_tried[0]], workload))
    rows = agg_rows(
        catalog,
        role.identity,
        shape,
        isl=workload.isl,
        osl=workload.osl,
        batches=batches,
        ctx_tokens=budgets_tried,
    )
    fits = np.array(
        [batch <= limits[int(ctx)] for batch, ctx in zip(rows.batch, rows.ctx_tokens, strict=True)], dtype=np.bool_
    )
    if not fits.any():
        raise NoRow(f"no batch fills a pass of {min(limits)} tokens with prompts of {workload.isl} tokens")
    budgets = rows.ctx_tokens[fits]
    return ShapeData(shape, rows.shares, rows.plausibility), _Rows(
        batch=rows.batch[fits],
        batched_tokens=budgets,
        rate=rows.requests_per_s[fits],
        ttft_ms=rows.ttft_ms[fits],
        tpot_ms=rows.tpot_ms[fits],
        estimates=[by_budget[int(budget)] for budget in budgets],
    )


def _no_request(estimate: KvEstimate, workload: Workload) -> str:
    return (
        f"{estimate.tokens_per_rank:,} KV tokens per rank hold no request of {workload.isl} + {workload.osl} tokens"
    )
