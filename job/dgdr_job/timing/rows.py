"""Raw rows of a role: what one worker of a shape does at each batch, as columns.

Raw means uncorrected (`dgdr_job.timing.corrections` holds the constants). Batches are per attention data-parallel rank;
the caller bounds them by the KV cache (`dgdr_job.timing.batches`). One cached file per identity, shape, role, lengths
and list of batches. Every function raises `Unsupported` when the shape's own data is missing or not a positive time.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from dgdr_api.shape import Shape
from pydantic import JsonValue, TypeAdapter

from dgdr_job.catalog.catalog import Catalog
from dgdr_job.catalog.identity import PerfIdentity
from dgdr_job.catalog.images import Images
from dgdr_job.catalog.provenance import SourceShares
from dgdr_job.timing.plausibility import Plausibility, plausibility

if TYPE_CHECKING:
    from dgdr_job.catalog.aic import PerformanceModel

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PrefillRows:
    """One prefill pass per row.

    Attributes:
        identity: Model, SKU, backend and version.
        shape: The worker's shape.
        isl: Prompt tokens of a request, visual tokens included.
        batch: Prompts of the pass on each rank.
        latency_ms: Raw time of the pass.
        shares: Where the time at the first batch comes from.
        plausibility: Judgement of the shape's decode step of one request at this prompt length.
    """

    identity: PerfIdentity
    shape: Shape
    isl: int
    batch: IntArray
    latency_ms: FloatArray
    shares: SourceShares
    plausibility: Plausibility


@dataclass(frozen=True, eq=False)
class DecodeRows:
    """One batch of decoding requests per row.

    Attributes:
        identity: Model, SKU, backend and version.
        shape: The worker's shape.
        isl: Prompt tokens of a request, visual tokens included.
        osl: Output tokens of a request.
        batch: Requests on each rank.
        decode_total_ms: Raw time of the ``osl - 1`` steps after the first token.
        shares: Where the time of a step in the middle of the output, at the middle batch, comes from.
        plausibility: Judgement of the shape's decode step of one request.
    """

    identity: PerfIdentity
    shape: Shape
    isl: int
    osl: int
    batch: IntArray
    decode_total_ms: FloatArray
    shares: SourceShares
    plausibility: Plausibility


@dataclass(frozen=True, eq=False)
class AggRows:
    """One aggregated operating point per row: a batch and a number of context tokens per pass.

    Attributes:
        identity: Model, SKU, backend and version.
        shape: The worker's shape.
        isl: Prompt tokens of a request, visual tokens included.
        osl: Output tokens of a request.
        batch: Requests on each rank.
        ctx_tokens: Prompt tokens of a pass; ``batch`` decode tokens come on top in the core's estimate.
        ttft_ms: Time to first token.
        tpot_ms: Time per output token after the first, 0 for one output token.
        requests_per_s: Requests of the whole worker.
        shares: Where the time of a mixed pass in the middle row comes from.
        plausibility: Judgement of the shape's decode step of one request.
    """

    identity: PerfIdentity
    shape: Shape
    isl: int
    osl: int
    batch: IntArray
    ctx_tokens: IntArray
    ttft_ms: FloatArray
    tpot_ms: FloatArray
    requests_per_s: FloatArray
    shares: SourceShares
    plausibility: Plausibility


@dataclass(frozen=True)
class _Stored:
    """What a file holds: times by column, and the two judgements."""

    columns: dict[str, list[float]]
    shares: SourceShares
    plausibility: Plausibility


_STORED = TypeAdapter(_Stored)


def prefill_rows(
    catalog: Catalog, identity: PerfIdentity, shape: Shape, *, isl: int, batches: Sequence[int]
) -> PrefillRows:
    """Raw prefill passes.

    Args:
        catalog: The catalog.
        identity: Model, SKU, backend and version.
        shape: The worker's shape.
        isl: Prompt tokens, visual tokens included, at least 1.
        batches: Prompts of a pass on each rank, not empty.

    Raises:
        Unsupported: NoLegalShape, MissingOperatorData, UnsupportedDtype, InvalidData, or what the identity lacks.
    """

    def compute(performance: "PerformanceModel") -> _Stored:
        worker = performance.worker(shape)
        latency_ms = worker.prefill_ms(batches, isl)
        shares = worker.prefill_shares(batches[0], isl)
        return _Stored({"latency_ms": latency_ms}, shares, _judge(performance, shape, isl, 2))

    inputs = _inputs(shape, isl=isl, batches=list(batches))
    stored = catalog.recall("prefill", identity, inputs, _STORED, compute)
    return PrefillRows(
        identity=identity,
        shape=shape,
        isl=isl,
        batch=integers(batches),
        latency_ms=floats(stored.columns["latency_ms"]),
        shares=stored.shares,
        plausibility=stored.plausibility,
    )


def decode_rows(
    catalog: Catalog, identity: PerfIdentity, shape: Shape, *, isl: int, osl: int, batches: Sequence[int]
) -> DecodeRows:
    """Raw decode times over the whole output.

    Args:
        catalog: The catalog.
        identity: Model, SKU, backend and version.
        shape: The worker's shape.
        isl: Prompt tokens, visual tokens included, at least 1.
        osl: Output tokens, at least 1.
        batches: Requests on each rank, not empty.

    Raises:
        Unsupported: As for `prefill_rows`.
    """

    def compute(performance: "PerformanceModel") -> _Stored:
        worker = performance.worker(shape)
        total_ms = worker.decode_total_ms(batches, isl, osl)
        shares = worker.decode_shares(batches[len(batches) // 2], isl, max(osl, 2))
        return _Stored({"decode_total_ms": total_ms}, shares, _judge(performance, shape, isl, osl))

    inputs = _inputs(shape, isl=isl, osl=osl, batches=list(batches))
    stored = catalog.recall("decode", identity, inputs, _STORED, compute)
    return DecodeRows(
        identity=identity,
        shape=shape,
        isl=isl,
        osl=osl,
        batch=integers(batches),
        decode_total_ms=floats(stored.columns["decode_total_ms"]),
        shares=stored.shares,
        plausibility=stored.plausibility,
    )


def agg_rows(
    catalog: Catalog,
    identity: PerfIdentity,
    shape: Shape,
    *,
    isl: int,
    osl: int,
    points: Sequence[tuple[int, int]],
    images: Images | None = None,
) -> AggRows:
    """The core's aggregated estimate at each point.

    Args:
        catalog: The catalog.
        identity: Model, SKU, backend and version.
        shape: The worker's shape.
        isl: Prompt tokens, visual tokens included, at least 1.
        osl: Output tokens, at least 1.
        points: (requests on each rank, prompt tokens of a pass), each a steady state (see `is_steady`).
        images: Images of one request that the worker encodes itself; their tokens are part of ``isl``.

    Raises:
        Unsupported: As for `prefill_rows`.
    """

    def compute(performance: "PerformanceModel") -> _Stored:
        worker = performance.worker(shape)
        answers = worker.aggregated(points, isl, osl, images)
        batch, ctx = points[len(points) // 2] if points else (1, isl)
        columns = {
            "ttft_ms": [answer.ttft_ms for answer in answers],
            "tpot_ms": [answer.tpot_ms for answer in answers],
            "requests_per_s": [answer.requests_per_s for answer in answers],
        }
        shares = worker.mixed_shares(batch, ctx, isl, osl)
        return _Stored(columns, shares, _judge(performance, shape, isl, osl))

    inputs = _inputs(shape, isl=isl, osl=osl, points=[list(point) for point in points])
    if images is not None:
        inputs["images"] = [images.height, images.width, images.count]
    stored = catalog.recall("agg", identity, inputs, _STORED, compute)
    return AggRows(
        identity=identity,
        shape=shape,
        isl=isl,
        osl=osl,
        batch=integers([batch for batch, _ in points]),
        ctx_tokens=integers([ctx for _, ctx in points]),
        ttft_ms=floats(stored.columns["ttft_ms"]),
        tpot_ms=floats(stored.columns["tpot_ms"]),
        requests_per_s=floats(stored.columns["requests_per_s"]),
        shares=stored.shares,
        plausibility=stored.plausibility,
    )


def is_steady(isl: int, batch: int, ctx_tokens: int) -> bool:
    """Whether a mixed pass of so many prompt tokens can go on and on with so many requests.

    A pass holds the prompts of ceil(ctx / isl) requests, and at least one more request must be decoding; a batch of one
    alternates. The core answers beyond this too, with more prompt tokens than the batch has; aiconfigurator's sweep
    (``sweep.py``, ``_sweep_one_parallel_agg``) leaves the same points out.
    """
    return ctx_tokens >= 1 and -(-ctx_tokens // isl) + (1 if batch > 1 else 0) <= batch


def _judge(performance: "PerformanceModel", shape: Shape, isl: int, osl: int) -> Plausibility:
    worker = performance.worker(shape)
    return plausibility(
        worker.decode_step_ms(1, isl, osl),
        weights_bytes=worker.weights_read_bytes(1),
        memory_bytes_per_s=performance.hardware.memory_bytes_per_s,
        layers=performance.facts.layers,
    )


def _inputs(shape: Shape, **lengths: JsonValue) -> dict[str, JsonValue]:
    return {"shape": list(shape.key), **lengths}


def integers(values: Sequence[int]) -> IntArray:
    """A column of whole numbers that cannot be written."""
    column = np.array(values, dtype=np.int64)
    column.flags.writeable = False
    return column


def floats(values: Sequence[float]) -> FloatArray:
    """A column of numbers that cannot be written."""
    column = np.array(values, dtype=np.float64)
    column.flags.writeable = False
    return column
