import os
import subprocess
import sys
from pathlib import Path

import pytest
from dgdr_api.shape import Shape
from dgdr_job.catalog.cache import DiskCache
from dgdr_job.catalog.catalog import Catalog
from dgdr_job.catalog.errors import Unsupported
from dgdr_job.catalog.identity import PerfIdentity
from dgdr_job.catalog.images import Images
from dgdr_job.timing.encoder import encode_worker_rows, inline_encoder_rows

MODEL = "Qwen/Qwen3-VL-32B-Instruct"
QWEN_VL = PerfIdentity(MODEL, "h200_sxm", "vllm", "0.24.0")
IMAGES = Images(1024, 1024)


def test_an_encode_worker_at_each_batch(catalog: Catalog) -> None:
    found = encode_worker_rows(catalog, QWEN_VL, 1, images=IMAGES, batches=[1, 2, 4, 8])
    assert found.passes.batch.tolist() == [1, 2, 4, 8]
    assert found.passes.latency_ms == pytest.approx([13.192, 24.829, 48.149, 90.611], abs=5e-4)
    assert found.passes.weights_gib == pytest.approx(1.0997, abs=1e-4)
    assert list(found.passes.activations_gib) == sorted(found.passes.activations_gib)
    assert found.runtime_gib == 3.5
    assert found.capacity_gib == pytest.approx(141, abs=1)


def test_the_inline_encoder_shares_images_over_the_gpus_of_a_rank(catalog: Catalog) -> None:
    one = inline_encoder_rows(catalog, QWEN_VL, Shape(), images=IMAGES, batches=[1, 2])
    two = inline_encoder_rows(catalog, QWEN_VL, Shape(tp=2), images=IMAGES, batches=[1, 2])
    assert two.latency_ms[1] == two.latency_ms[0] < one.latency_ms[1]
    assert two.weights_gib == one.weights_gib


def test_another_image_is_another_result(catalog: Catalog) -> None:
    small = inline_encoder_rows(catalog, QWEN_VL, Shape(), images=Images(448, 448), batches=[1])
    large = inline_encoder_rows(catalog, QWEN_VL, Shape(), images=IMAGES, batches=[1])
    assert small.latency_ms[0] < large.latency_ms[0]


@pytest.mark.parametrize(("sku", "implausible"), [("b200_sxm", False), ("b300_sxm", True), ("gb300", True)])
def test_sglang_on_b300_and_gb300_is_implausible(catalog: Catalog, sku: str, *, implausible: bool) -> None:
    identity = PerfIdentity(MODEL, sku, "sglang", "0.5.14")
    found = encode_worker_rows(catalog, identity, 1, images=IMAGES, batches=[1]).passes.plausibility
    assert found.is_implausible is implausible
    assert found.roofline_ms < found.pass_ms


@pytest.mark.parametrize("side", [224, 448, 1024, 2048])
@pytest.mark.parametrize("sku", ["h100_sxm", "h200_sxm", "b200_sxm", "gb200", "l40s"])
def test_sound_data_is_plausible(catalog: Catalog, sku: str, side: int) -> None:
    identity = PerfIdentity(MODEL, sku, "vllm", "0.24.0")
    found = encode_worker_rows(catalog, identity, 1, images=Images(side, side), batches=[1])
    assert not found.passes.plausibility.is_implausible


def test_a_text_model_is_refused(catalog: Catalog) -> None:
    identity = PerfIdentity("Qwen/Qwen3-32B", "h200_sxm", "vllm", "0.24.0")
    with pytest.raises(Unsupported, match="has no vision encoder"):
        encode_worker_rows(catalog, identity, 1, images=IMAGES, batches=[1])


WARM = """
import sys
from pathlib import Path
from dgdr_api.shape import Shape
from dgdr_job.catalog.cache import DiskCache
from dgdr_job.catalog.catalog import Catalog
from dgdr_job.catalog.identity import PerfIdentity
from dgdr_job.catalog.images import Images
from dgdr_job.timing.encoder import encode_worker_rows, inline_encoder_rows
catalog = Catalog(DiskCache(Path(sys.argv[1])))
identity = PerfIdentity("Qwen/Qwen3-VL-32B-Instruct", "h200_sxm", "vllm", "0.24.0")
encode_worker_rows(catalog, identity, 1, images=Images(1024, 1024), batches=[1, 2])
inline_encoder_rows(catalog, identity, Shape(), images=Images(1024, 1024), batches=[1, 2])
print("aiconfigurator_core" in sys.modules)
"""


def test_warm_rows_import_no_performance_model(tmp_path: Path) -> None:
    cold = Catalog(DiskCache(tmp_path))
    encode_worker_rows(cold, QWEN_VL, 1, images=IMAGES, batches=[1, 2])
    inline_encoder_rows(cold, QWEN_VL, Shape(), images=IMAGES, batches=[1, 2])
    done = subprocess.run(
        [sys.executable, "-c", WARM, str(tmp_path)], check=True, capture_output=True, text=True, env=dict(os.environ)
    )
    assert done.stdout.strip() == "False"
