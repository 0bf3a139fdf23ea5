import math

import pytest
from aiconfigurator_core.sdk.memory import estimate_kv_cache
from dgdr_api.shape import Shape
from dgdr_job.catalog.catalog import Catalog
from dgdr_job.catalog.identity import PerfIdentity
from dgdr_job.catalog.kv import KvEstimate

MODEL = "Qwen/Qwen3-VL-32B-Instruct"
GIB = 1 << 30


@pytest.mark.parametrize(("backend", "version"), [("vllm", "0.24.0"), ("sglang", "0.5.14"), ("trtllm", "1.3.0rc20")])
@pytest.mark.parametrize("tp", [1, 2])
def test_an_encoder_takes_memory_as_if_the_gpu_had_less(catalog: Catalog, backend: str, version: str, tp: int) -> None:
    identity = PerfIdentity(MODEL, "h200_sxm", backend, version)  # type: ignore[arg-type]
    alone = catalog.kv(identity, Shape(tp=tp), 8192)
    weights, activations = 1.0996627807617188, 0.5234375
    less = (weights + activations) / (1 if alone.fraction_kind == "of_free" else alone.memory_fraction)
    expected = estimate_kv_cache(
        MODEL,
        "h200_sxm",
        backend,
        version,
        max_num_tokens=8192,
        max_batch_size=1,
        memory_fraction_kind=alone.fraction_kind,
        memory_fraction_value=alone.memory_fraction,
        tp_size=tp,
        gpu_memory_capacity_bytes_override=math.floor((alone.capacity_gib - less) * GIB),
    )
    found = alone.beside_encoder(weights, activations)
    assert found.tokens_per_rank == expected["total_kv_size_tokens"]
    assert found.tokens_per_rank < alone.tokens_per_rank
    assert found.weights_gib == alone.weights_gib + weights
    assert found.activations_gib == alone.activations_gib + activations
    assert found.reason is None


def test_an_encoder_that_leaves_nothing_says_so() -> None:
    alone = KvEstimate(1000, 0.5, "of_total", 8192, 100.0, 40.0, 5.0, 3.0, 1.0, 1000)
    found = alone.beside_encoder(0.75, 0.25)
    assert found.tokens_per_rank == 0
    assert found.reason == (
        "the vision encoder's 0.75 GiB of weights and 0.25 GiB of activations leave no KV cache in 100.00 GiB at "
        "memory fraction 0.5"
    )


def test_what_had_no_room_before_keeps_its_reason() -> None:
    alone = KvEstimate(0, 0.5, "of_total", 8192, 100.0, 70.0, 5.0, 3.0, 1.0, 1000, "weights")
    assert alone.beside_encoder(1.0, 1.0).reason == "weights"
