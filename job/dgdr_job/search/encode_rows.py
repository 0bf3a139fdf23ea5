"""The rows of one shape of an encode worker: every batch whose images it holds, and that is worth its latency.

Source: engine.md section 6, "Encode workers". For one split batches are taken ascending: the first whose memory reaches
the GPU's ends the split, equality too, and a batch is kept only if its rate beats all before it. W6: 20 GiB, 5 GiB of
overhead, 10, 15 and 25 GiB at batches 1, 2 and 4 leave batch 1.
"""

import numpy as np
from dgdr_api.shape import Shape

from dgdr_job.catalog.catalog import Catalog
from dgdr_job.catalog.kv import FRACTION_KIND, KvEstimate
from dgdr_job.search.config import RateMatching, Workload
from dgdr_job.search.role_rows import NoRow, RoleInput, Rows, ShapeData
from dgdr_job.timing.encoder import EncodeWorkerRows, encode_worker_rows


def encode(
    catalog: Catalog, role: RoleInput, shape: Shape, workload: Workload, constants: RateMatching
) -> tuple[ShapeData, Rows]:
    """Rows of an encode worker.

    Raises:
        NoRow: the images of the smallest batch do not fit into memory.
        Unsupported: the shape has no data.
    """
    del constants
    if role.images is None:
        raise ValueError("an encode worker needs images")
    batches = role.knobs.max_num_seqs
    found = encode_worker_rows(catalog, role.identity, shape.tp, images=role.images, batches=batches)
    kept = worthwhile(batches, found)
    if not kept:
        raise NoRow("resource_limit", _no_room(shape, batches[0], found))
    latency = role.encode.latency_correction * found.passes.latency_ms[kept]
    batch = found.passes.batch[kept]
    fraction = catalog.default_memory_fraction(role.identity, Shape())
    return ShapeData(shape, found.passes.shares, None, found.passes.plausibility), Rows(
        batch=batch,
        batched_tokens=batch * workload.visual_tokens,
        rate=role.encode.rate_degradation * 1000.0 * batch / latency,
        ttft_ms=role.ttft_factor * latency,
        tpot_ms=np.zeros(len(kept)),
        estimates=tuple(_memory(role, found, index, fraction) for index in kept),
    )


def worthwhile(batches: tuple[int, ...], worker: EncodeWorkerRows) -> list[int]:
    """Positions of the batches that fit into memory and whose rate beats all before them.

    Args:
        batches: ascending.
        worker: memory and latency at each.
    """
    kept: list[int] = []
    best = 0.0
    for index, batch in enumerate(batches):
        if _taken_gib(worker, index) >= worker.capacity_gib:
            break
        rate = batch / float(worker.passes.latency_ms[index])
        if rate > best:
            best = rate
            kept.append(index)
    return kept


def _taken_gib(worker: EncodeWorkerRows, index: int) -> float:
    passes = worker.passes
    of_batch = passes.weights_gib + float(passes.activations_gib[index])
    return of_batch + worker.runtime_gib + worker.communication_gib


def _memory(role: RoleInput, worker: EncodeWorkerRows, index: int, fraction: float) -> KvEstimate:
    """Memory of one GPU; an encode worker has no KV cache."""
    return KvEstimate(
        tokens_per_rank=0,
        memory_fraction=fraction,
        fraction_kind=FRACTION_KIND[role.identity.backend],
        max_num_batched_tokens=1,
        capacity_gib=worker.capacity_gib,
        weights_gib=worker.passes.weights_gib,
        activations_gib=float(worker.passes.activations_gib[index]),
        runtime_gib=worker.runtime_gib,
        communication_gib=worker.communication_gib,
        kv_bytes_per_token=1,
        reason="an encode worker has no KV cache",
    )


def _no_room(shape: Shape, batch: int, worker: EncodeWorkerRows) -> str:
    return (
        f"{shape.label}: {_taken_gib(worker, 0):.2f} GiB for the images of {batch} request{'' if batch == 1 else 's'} "
        f"are not below the {worker.capacity_gib:.2f} GiB of a GPU"
    )
