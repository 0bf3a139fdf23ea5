"""Raw rows of vision encoders: what an encode worker, or the encoder beside a language model, does at each batch.

Raw means uncorrected. A batch is a number of requests, with all of their images. Results are cached as those of
`dgdr_job.timing.rows`; every function raises `Unsupported` when the data is missing or a time is not positive.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import JsonValue, TypeAdapter

from dgdr_job.catalog.catalog import Catalog
from dgdr_job.catalog.identity import PerfIdentity
from dgdr_job.catalog.images import Images
from dgdr_job.catalog.provenance import SourceShares
from dgdr_job.timing.plausibility import EncoderPlausibility, encoder_plausibility
from dgdr_job.timing.rows import FloatArray, IntArray, floats, integers

if TYPE_CHECKING:
    from dgdr_api.shape import Shape

    from dgdr_job.catalog.aic import PerformanceModel
    from dgdr_job.catalog.aic_encoder import EncoderModel


@dataclass(frozen=True, eq=False)
class EncoderRows:
    """One pass over the images of a batch of requests per row.

    Attributes:
        batch: Requests.
        latency_ms: Raw time of the pass.
        activations_gib: Activations on one GPU.
        weights_gib: Weights of the encoder on one GPU.
        shares: Where the time of one request's images comes from.
        plausibility: Judgement of that time.
    """

    batch: IntArray
    latency_ms: FloatArray
    activations_gib: FloatArray
    weights_gib: float
    shares: SourceShares
    plausibility: EncoderPlausibility


@dataclass(frozen=True, eq=False)
class EncodeWorkerRows:
    """Rows of an encode worker, and the rest of the memory of one of its GPUs.

    Attributes:
        passes: A pass at each batch.
        runtime_gib: Driver, library and allocator overhead.
        communication_gib: Collective buffers.
        capacity_gib: Memory of the GPU.
    """

    passes: EncoderRows
    runtime_gib: float
    communication_gib: float
    capacity_gib: float


@dataclass(frozen=True)
class _Stored:
    latency_ms: list[float]
    activations_gib: list[float]
    weights_gib: float
    shares: SourceShares
    plausibility: EncoderPlausibility


@dataclass(frozen=True)
class _StoredWorker:
    passes: _Stored
    runtime_gib: float
    communication_gib: float
    capacity_gib: float


_STORED = TypeAdapter(_Stored)
_STORED_WORKER = TypeAdapter(_StoredWorker)


def encode_worker_rows(
    catalog: Catalog, identity: PerfIdentity, tp: int, *, images: Images, batches: Sequence[int]
) -> EncodeWorkerRows:
    """Passes of an encoder alone on ``tp`` GPUs.

    Args:
        catalog: The catalog.
        identity: Model, SKU of the encode worker, backend and version.
        tp: GPUs that its weights are split over.
        images: Images of one request.
        batches: Requests of a pass, not empty.

    Raises:
        Unsupported: UnsupportedFeature (no encoder), NoLegalShape, MissingOperatorData, InvalidData, or what the
            identity lacks.
    """

    def compute(performance: "PerformanceModel") -> _StoredWorker:
        worker = performance.encode_worker(tp)
        passes = _passes(performance, worker, images, batches)
        return _StoredWorker(passes, worker.runtime_gib, worker.communication_gib, worker.capacity_gib)

    inputs: dict[str, JsonValue] = {"tp": tp, **_inputs(images, batches)}
    stored = catalog.recall("encode", identity, inputs, _STORED_WORKER, compute)
    return EncodeWorkerRows(
        _rows(stored.passes, batches), stored.runtime_gib, stored.communication_gib, stored.capacity_gib
    )


def inline_encoder_rows(
    catalog: Catalog, identity: PerfIdentity, shape: "Shape", *, images: Images, batches: Sequence[int]
) -> EncoderRows:
    """Passes of the encoder beside the language model of a worker; a batch is that of one data-parallel rank.

    Args:
        catalog: The catalog.
        identity: Model, SKU, backend and version.
        shape: The worker's shape.
        images: Images of one request.
        batches: Requests of a pass, not empty.

    Raises:
        Unsupported: As for `encode_worker_rows`.
    """

    def compute(performance: "PerformanceModel") -> _Stored:
        return _passes(performance, performance.worker(shape).encoder, images, batches)

    inputs: dict[str, JsonValue] = {"shape": list(shape.key), **_inputs(images, batches)}
    return _rows(catalog.recall("encoder", identity, inputs, _STORED, compute), batches)


def _passes(
    performance: "PerformanceModel", encoder: "EncoderModel", images: Images, batches: Sequence[int]
) -> _Stored:
    found = encoder.passes(batches, images)
    vision = performance.facts.vision
    return _Stored(
        latency_ms=[each.latency_ms for each in found],
        activations_gib=[each.activations_gib for each in found],
        weights_gib=found[0].weights_gib,
        shares=encoder.shares(images),
        plausibility=encoder_plausibility(
            encoder.one_gpu_ms(images),
            roofline_ms=encoder.roofline_ms(images),
            layers=vision.layers if vision else 0,
        ),
    )


def _rows(stored: _Stored, batches: Sequence[int]) -> EncoderRows:
    return EncoderRows(
        batch=integers(batches),
        latency_ms=floats(stored.latency_ms),
        activations_gib=floats(stored.activations_gib),
        weights_gib=stored.weights_gib,
        shares=stored.shares,
        plausibility=stored.plausibility,
    )


def _inputs(images: Images, batches: Sequence[int]) -> dict[str, JsonValue]:
    return {"images": [images.height, images.width, images.count], "batches": list(batches)}
