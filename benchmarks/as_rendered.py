"""The peer's best row once more, timed by our engine for the same shapes and batches.

Both manifests start the engine's default kernels, and so our engine times them. Where the peer timed others, as
DeepEP's all-to-all, the figures part. Rows with encode workers are taken as they are.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from dgdr_api.shape import Shape
from dgdr_job.catalog.catalog import Catalog
from dgdr_job.search.config import RateMatching
from dgdr_job.timing.corrections import agg_waiting_ms, correct_decode, correct_prefill
from dgdr_job.timing.rows import agg_rows, decode_rows, prefill_rows

from benchmarks.works import Work

CONSTANTS = RateMatching()


@dataclass(frozen=True)
class Served:
    """What a deployment serves."""

    requests_per_s: float
    ttft_ms: float
    tpot_ms: float


def timed(work: Work, row: Mapping[str, str], topology: str, catalog: Catalog) -> Served:
    """The row of the peer by our times; latencies obey Little's law (engine.md section 6, docs/decisions.md)."""
    if row.get("(e)workers", "0") != "0":
        return Served(float(row["seq/s"]), float(row["ttft"]), float(row["tpot"]))
    return _aggregated(work, row, catalog) if topology == "agg" else _disaggregated(work, row, catalog)


def _disaggregated(work: Work, row: Mapping[str, str], catalog: Catalog) -> Served:
    of_prefill, of_decode = work.identities
    shape = shape_of(row, "(p)")
    prefill = prefill_rows(catalog, of_prefill, shape, isl=work.isl, batches=[int(row["(p)bs"])])
    at_prefill = correct_prefill(
        prefill.batch, prefill.latency_ms, ranks=shape.attention_dp * shape.pp, corrections=CONSTANTS.corrections
    )
    shape = shape_of(row, "(d)")
    decode = decode_rows(catalog, of_decode, shape, isl=work.isl, osl=work.osl, batches=[int(row["(d)bs"])])
    at_decode = correct_decode(
        decode.batch,
        decode.decode_total_ms,
        osl=work.osl,
        ranks=shape.attention_dp * shape.pp,
        corrections=CONSTANTS.corrections,
    )
    rate = min(
        float(at_prefill.requests_per_s[0]) * CONSTANTS.prefill_rate * int(row["(p)workers"]),
        float(at_decode.requests_per_s[0]) * CONSTANTS.decode_rate * int(row["(d)workers"]),
    )
    return Served(rate, float(at_prefill.ttft_ms[0]), float(at_decode.tpot_ms[0]))


def _aggregated(work: Work, row: Mapping[str, str], catalog: Catalog) -> Served:
    shape, point = shape_of(row, ""), (int(row["bs"]), int(row["ctx_tokens"]))
    found = agg_rows(catalog, work.identities[0], shape, isl=work.isl, osl=work.osl, points=[point])
    slots = np.array([point[0] * shape.attention_dp * shape.pp], dtype=np.int64)
    waiting = agg_waiting_ms(slots, found.requests_per_s, found.ttft_ms, found.tpot_ms, osl=work.osl)
    return Served(float(found.requests_per_s[0]), float((found.ttft_ms + waiting)[0]), float(found.tpot_ms[0]))


def shape_of(row: Mapping[str, str], mark: str) -> Shape:
    """The shape of a worker of the peer's row; ``mark`` begins the names of its columns."""

    def size(name: str) -> int:
        return int(float(row.get(f"{mark}{name}") or 1)) or 1

    return Shape(
        tp=size("tp"),
        pp=size("pp"),
        attention_dp=size("dp"),
        moe_tp=size("moe_tp"),
        moe_ep=size("moe_ep"),
        cp=size("cp"),
    )
