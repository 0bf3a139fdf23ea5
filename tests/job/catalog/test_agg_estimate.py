"""The aggregated estimate against the core's own ``run_agg``, bit by bit."""

from typing import Any

import pytest
from aiconfigurator_core.sdk.backends.factory import get_backend
from aiconfigurator_core.sdk.config import RuntimeConfig
from dgdr_api.shape import Shape
from dgdr_job.catalog.agg_estimate import AggregatedPoint
from dgdr_job.catalog.catalog import Catalog
from dgdr_job.catalog.identity import PerfIdentity
from dgdr_job.catalog.images import Images

DENSE = PerfIdentity("Qwen/Qwen3-32B", "h200_sxm", "vllm", "0.24.0")
MOE = PerfIdentity("Qwen/Qwen3-235B-A22B-FP8", "h200_sxm", "trtllm", "1.3.0rc20")
MLA = PerfIdentity("deepseek-ai/DeepSeek-R1", "h200_sxm", "sglang", "0.5.14")
VISION = PerfIdentity("Qwen/Qwen3-VL-32B-Instruct", "h200_sxm", "vllm", "0.24.0")
BATCHES = (1, 2, 3, 7, 16, 61, 200, 512)


def by_the_core(
    catalog: Catalog, identity: PerfIdentity, shape: Shape, runtime: RuntimeConfig, ctx_tokens: int
) -> AggregatedPoint:
    """What the core answers; without a rate of its own (one output token), requests over the time of all passes."""
    performance = catalog.performance(identity)
    model, _ = performance.built(shape)
    backend: Any = get_backend(identity.backend)
    with performance.guarded(", run_agg"):  # the package leaves paths in the environment
        summary = backend.run_agg(model, performance.database, runtime, ctx_tokens=ctx_tokens)
    row, passes = summary.get_result_dict(), summary.get_per_ops_data()["scheduling"]
    if runtime.osl == 1:
        all_ms = row["encoder_latency"] + passes["num_mix_steps"] * passes["mix_step_latency_ms"]
        return AggregatedPoint(row["ttft"], 0.0, 1000 * row["concurrency"] / all_ms)
    return AggregatedPoint(row["ttft"], row["tpot"], row["request_rate"])


@pytest.mark.parametrize(("isl", "osl"), [(3000, 300), (777, 2), (100, 4000), (3000, 1)])
@pytest.mark.parametrize(
    ("identity", "shape"),
    [
        (DENSE, Shape(tp=2)),
        (DENSE, Shape(tp=2, pp=2)),
        (MOE, Shape(tp=8, moe_ep=8)),
        (MLA, Shape(attention_dp=8, moe_ep=8)),
    ],
)
def test_equals_the_core_in_every_bit(
    catalog: Catalog, identity: PerfIdentity, shape: Shape, isl: int, osl: int
) -> None:
    points = [(b, ctx) for b in BATCHES for ctx in (64, 512, isl, 2 * isl + 1, 8192) if ctx <= (b - 1) * isl or b == 1]
    found = catalog.performance(identity).worker(shape).aggregated(points, isl, osl)
    expected = [
        by_the_core(
            catalog, identity, shape, RuntimeConfig(batch_size=b, beam_width=1, isl=isl, osl=osl, prefix=0), ctx
        )
        for b, ctx in points
    ]
    assert found == expected


def test_images_are_encoded_as_the_core_encodes_them(catalog: Catalog) -> None:
    points = [(b, ctx) for b in (1, 4, 30) for ctx in (512, 3000)]
    worker = catalog.performance(VISION).worker(Shape(tp=2))
    found = worker.aggregated(points, 2000 + 1024, 300, Images(height=1024, width=1024, count=1))
    expected = [
        by_the_core(
            catalog,
            VISION,
            Shape(tp=2),
            RuntimeConfig(
                batch_size=b,
                beam_width=1,
                isl=2000,
                osl=300,
                prefix=0,
                image_height=1024,
                image_width=1024,
                num_images_per_request=1,
            ),
            ctx,
        )
        for b, ctx in points
    ]
    assert found == expected
