import pytest
from dgdr_api.shape import Shape
from dgdr_api.terms import Backend
from dgdr_job.catalog.catalog import Catalog
from dgdr_job.catalog.identity import PerfIdentity
from dgdr_job.timing.plausibility import plausibility
from dgdr_job.timing.rows import decode_rows


@pytest.mark.parametrize(
    ("decode_step_ms", "layers", "expected"),
    [
        (0.999, 1, True),
        (1.0, 1, False),
        (20.0, 1, False),
        (20.001, 1, True),
        (20.001, 100, False),
        (25.001, 100, True),
    ],
)
def test_bounds_are_inclusive(decode_step_ms: float, layers: int, expected: bool) -> None:  # noqa: FBT001
    judged = plausibility(decode_step_ms, weights_bytes=2e9, memory_bytes_per_s=2e12, layers=layers)
    assert judged.roofline_ms == 1.0
    assert judged.is_implausible is expected


@pytest.mark.parametrize(
    ("model", "sku", "backend", "version", "shape", "expected"),
    [
        ("Qwen/Qwen3-32B", "h200_sxm", "vllm", "0.24.0", Shape(), False),
        ("Qwen/Qwen3-32B", "h200_sxm", "vllm", "0.24.0", Shape(tp=16), False),
        ("Qwen/Qwen3-0.6B", "h200_sxm", "vllm", "0.24.0", Shape(tp=8), False),
        ("Qwen/Qwen3-30B-A3B", "h200_sxm", "vllm", "0.24.0", Shape(), False),
        ("Qwen/Qwen3-32B-FP8", "gb200", "sglang", "0.5.14", Shape(), False),
        ("Qwen/Qwen3-32B-FP8", "gb200", "vllm", "0.24.0", Shape(), True),
    ],
)
def test_bad_data_is_flagged_and_small_models_are_not(
    catalog: Catalog,
    model: str,
    sku: str,
    backend: Backend,
    version: str,
    shape: Shape,
    expected: bool,  # noqa: FBT001
) -> None:
    rows = decode_rows(catalog, PerfIdentity(model, sku, backend, version), shape, isl=1000, osl=100, batches=[1])
    assert rows.plausibility.is_implausible is expected, rows.plausibility
