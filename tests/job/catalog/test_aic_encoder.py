"""The vision encoder against direct calls of the package, and against the peer's own figures."""

import os
from collections.abc import Iterator
from typing import Any

import pytest
from aiconfigurator_core.sdk import models, perf_database, utils
from aiconfigurator_core.sdk.backends.factory import get_backend
from aiconfigurator_core.sdk.config import ModelConfig, RuntimeConfig
from aiconfigurator_core.sdk.models.blocks.vit import EncoderOnlyModel, build_encoder_ops
from dgdr_api.shape import Shape
from dgdr_job.catalog.aic import PerformanceModel
from dgdr_job.catalog.errors import Reason, Unsupported
from dgdr_job.catalog.identity import PerfIdentity
from dgdr_job.catalog.images import Images

MODEL = "Qwen/Qwen3-VL-32B-Instruct"
QWEN_VL = PerfIdentity(MODEL, "h200_sxm", "vllm", "0.24.0")
ONE = Images(1024, 1024)


@pytest.fixture(scope="module")
def opened() -> PerformanceModel:
    return PerformanceModel(QWEN_VL)


@pytest.fixture(autouse=True)
def own_environment() -> Iterator[None]:
    """Direct calls of the package write its places into the environment."""
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


def database() -> Any:
    return perf_database.get_database("h200_sxm", "vllm", "0.24.0")


def runtime(images: Images, **more: Any) -> RuntimeConfig:
    return RuntimeConfig(
        image_height=images.height, image_width=images.width, num_images_per_request=images.count, **more
    )


class TestAlone:
    def test_the_peers_encode_worker(self, opened: PerformanceModel) -> None:
        """aiconfigurator 0.12.0 with --enable-epd: (e)tp 1, (e)bs 1, 13.192 ms, 1.165 GiB; at batch 4 48.149 ms."""
        one, four = opened.encode_worker(1).passes([1, 4], ONE)
        assert (one.latency_ms, four.latency_ms) == pytest.approx((13.192, 48.149), abs=5e-4)
        assert one.weights_gib + one.activations_gib == pytest.approx(1.165, abs=5e-4)

    @pytest.mark.parametrize("tp", [1, 2, 8])
    @pytest.mark.parametrize("images", [ONE, Images(500, 300, 3)])
    def test_equals_direct_calls(self, opened: PerformanceModel, tp: int, images: Images) -> None:
        vision = utils.get_model_config_from_model_path(MODEL)["extra_params"]
        model: Any = EncoderOnlyModel(
            encoder_ops=build_encoder_ops(vision, tp, enable_encoder_dp=False),
            encoder_config=vision,
            config=ModelConfig(tp_size=tp, enable_encoder_dp=False),
        )
        for batch, found in zip((1, 2, 8), opened.encode_worker(tp).passes([1, 2, 8], images), strict=True):
            ms, _, memory, _ = get_backend("vllm").run_encoder_static(model, database(), runtime(images), batch)
            assert found == (ms, memory["weights"], memory["activations"])

    def test_memory_beside_the_encoder_is_that_of_the_gpu_type(self, opened: PerformanceModel) -> None:
        misc = perf_database.load_system_spec("h200_sxm")["misc"]
        one, wide = opened.encode_worker(1), opened.encode_worker(8)
        assert one.runtime_gib * 2**30 == misc["other_mem"]
        assert one.communication_gib * 2**30 == misc["nccl_mem"][1]
        assert wide.communication_gib * 2**30 == misc["nccl_mem"][8]
        assert one.capacity_gib * 2**30 == opened.hardware.memory_bytes

    def test_sglang_takes_a_fifth_more_beside_it(self) -> None:
        sglang = PerformanceModel(PerfIdentity(MODEL, "h200_sxm", "sglang", "0.5.14"))
        misc = perf_database.load_system_spec("h200_sxm")["misc"]
        assert sglang.encode_worker(1).runtime_gib * 2**30 == pytest.approx(1.2 * misc["other_mem"])

    def test_a_split_that_the_encoder_does_not_have_is_no_legal_shape(self, opened: PerformanceModel) -> None:
        with pytest.raises(Unsupported, match="no communication data for an encoder on 3 GPUs") as refusal:
            opened.encode_worker(3)
        assert refusal.value.reason is Reason.NO_LEGAL_SHAPE
        with pytest.raises(Unsupported, match="must be divisible by tp_size") as refusal:
            opened.encode_worker(32)
        assert refusal.value.reason is Reason.NO_LEGAL_SHAPE


class TestBesideALanguageModel:
    @pytest.mark.parametrize("tp", [1, 2])
    def test_equals_direct_calls(self, opened: PerformanceModel, tp: int) -> None:
        model = models.get_model(MODEL, ModelConfig(tp_size=tp), "vllm")
        for batch, found in zip((1, 3), opened.worker(Shape(tp=tp)).encoder.passes([1, 3], ONE), strict=True):
            ms, _, memory, _ = get_backend("vllm").run_encoder_static(model, database(), runtime(ONE), batch)
            assert found == (ms, memory["weights"], memory["activations"])

    def test_aggregated_serving_adds_a_pass_over_the_images_of_the_batch(self, opened: PerformanceModel) -> None:
        worker, isl = opened.worker(Shape()), 3024
        (text,) = worker.aggregated([(8, isl)], isl, 300)
        (images,) = worker.aggregated([(8, isl)], isl, 300, ONE)
        (encoder,) = worker.encoder.passes([8], ONE)
        assert images.ttft_ms == pytest.approx(text.ttft_ms + encoder.latency_ms)
        assert images.tpot_ms == text.tpot_ms
        assert 8000 / images.requests_per_s == pytest.approx(8000 / text.requests_per_s + encoder.latency_ms)

    def test_one_output_token_waits_for_the_encoder_too(self, opened: PerformanceModel) -> None:
        worker, isl = opened.worker(Shape()), 3024
        (text,), (images,) = worker.aggregated([(8, isl)], isl, 1), worker.aggregated([(8, isl)], isl, 1, ONE)
        (encoder,) = worker.encoder.passes([8], ONE)
        assert 8000 / images.requests_per_s == pytest.approx(8000 / text.requests_per_s + encoder.latency_ms)


class TestByOperator:
    def test_the_operators_add_up_to_the_pass(self, opened: PerformanceModel) -> None:
        for encoder in (opened.encode_worker(2), opened.worker(Shape()).encoder):
            (whole,) = encoder.passes([1], ONE)
            assert encoder.one_gpu_ms(ONE) == pytest.approx(whole.latency_ms)

    def test_shares_sum_to_one_and_most_is_measured(self, opened: PerformanceModel) -> None:
        shares = opened.encode_worker(1).shares(ONE)
        assert shares.silicon + shares.empirical + shares.estimated + shares.borrowed == pytest.approx(1)
        assert shares.silicon > 0.8

    def test_the_roofline_lies_below(self, opened: PerformanceModel) -> None:
        encoder = opened.encode_worker(1)
        assert 0 < encoder.roofline_ms(ONE) < encoder.one_gpu_ms(ONE)


def test_a_text_model_has_no_encoder() -> None:
    text = PerformanceModel(PerfIdentity("Qwen/Qwen3-32B", "h200_sxm", "vllm", "0.24.0"))
    with pytest.raises(Unsupported, match="has no vision encoder") as refusal:
        text.encode_worker(1)
    assert refusal.value.reason is Reason.UNSUPPORTED_FEATURE
    with pytest.raises(Unsupported, match="has no vision encoder"):
        _ = text.worker(Shape()).encoder
