import json
import math
import os
from pathlib import Path
from typing import Any

import pytest
from aiconfigurator_core.sdk.engine import EngineHandle, compile_engine
from aiconfigurator_core.sdk.memory import estimate_kv_cache
from dgdr_api.shape import Shape
from dgdr_job.catalog.aic import PerformanceModel, read_model
from dgdr_job.catalog.catalog import Catalog
from dgdr_job.catalog.errors import Reason, Unsupported
from dgdr_job.catalog.identity import PerfIdentity
from dgdr_job.catalog.model import ModelFacts
from dgdr_job.catalog.wheel import wheel_path

QWEN = PerfIdentity("Qwen/Qwen3-32B", "h200_sxm", "vllm", "0.24.0")
QWEN_MOE = PerfIdentity("Qwen/Qwen3-30B-A3B", "h200_sxm", "vllm", "0.24.0")
DEEPSEEK = PerfIdentity("deepseek-ai/DeepSeek-R1", "h200_sxm", "sglang", "0.5.14")
NVFP4 = PerfIdentity("nvidia/Qwen3-235B-A22B-NVFP4", "h200_sxm", "vllm", "0.24.0")
NEMOTRON = PerfIdentity("nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-NVFP4", "h200_sxm", "trtllm", "1.3.0rc20")


def config_of(model: str) -> dict[str, object]:
    path = wheel_path() / "model_configs" / f"{model.replace('/', '--')}_config.json"
    content: dict[str, object] = json.loads(path.read_text())
    return content


def local(folder: Path, config: object) -> str:
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    return str(folder)


def facts_or_refusal(path: str) -> ModelFacts | Unsupported:
    try:
        return read_model(path)
    except Unsupported as refusal:
        return refusal


class TestModel:
    def test_facts_of_a_dense_model(self) -> None:
        facts = read_model("Qwen/Qwen3-32B")
        assert facts == ModelFacts(
            architecture="Qwen3ForCausalLM",
            layers=64,
            attention_heads=64,
            kv_heads=8,
            hidden_size=5120,
            is_moe=False,
            experts=0,
            experts_per_token=0,
            moe_intermediate_size=0,
            context_length=40960,
            vision=None,
            quantization=None,
            quantization_block=None,
            nextn_predict_layers=0,
            config_sha256=facts.config_sha256,
        )

    def test_facts_of_a_block_quantized_mixture_of_experts(self) -> None:
        facts = read_model("deepseek-ai/DeepSeek-R1")
        assert (facts.is_moe, facts.experts, facts.experts_per_token, facts.moe_intermediate_size) == (
            True,
            256,
            8,
            2048,
        )
        assert (facts.quantization, facts.quantization_block, facts.is_fp8_block) == ("fp8_block", 128, True)
        assert facts.nextn_predict_layers == 1

    def test_a_vision_language_model_is_one(self) -> None:
        facts = read_model("Qwen/Qwen3-VL-30B-A3B-Instruct")
        assert (facts.is_vision_language, facts.layers, facts.experts) == (True, 48, 128)

    def test_an_id_that_is_shipped_but_not_on_the_packages_list_is_read(self) -> None:
        assert read_model("mistralai/Mixtral-8x7B-v0.1").experts == 8

    def test_a_local_directory_has_the_facts_of_its_config(self, tmp_path: Path) -> None:
        path = local(tmp_path / "mine", {**config_of("Qwen/Qwen3-32B"), "num_hidden_layers": 40})
        assert read_model(path).layers == 40

    def test_an_architecture_that_is_not_modelled_is_named(self, tmp_path: Path) -> None:
        path = local(tmp_path / "mine", {**config_of("Qwen/Qwen3-32B"), "architectures": ["MambaForever"]})
        with pytest.raises(Unsupported, match=r"MambaForever is not supported\. Supported architectures: ") as refused:
            read_model(path)
        assert refused.value.reason == Reason.UNKNOWN_MODEL

    @pytest.mark.parametrize("key", sorted(config_of("Qwen/Qwen3-30B-A3B")))
    @pytest.mark.parametrize("change", ["missing", "null", "text"])
    def test_a_damaged_config_has_facts_or_is_refused(self, tmp_path: Path, key: str, change: str) -> None:
        config = config_of("Qwen/Qwen3-30B-A3B")
        config[key] = None if change == "null" else "text"
        if change == "missing":
            del config[key]
        path = local(tmp_path / "mine", config)
        answer = facts_or_refusal(path)
        if isinstance(answer, Unsupported):
            assert answer.reason == Reason.UNKNOWN_MODEL
            assert answer.message.startswith(f"{path}: its config.json cannot be used")
        else:
            assert answer.layers == 48

    def test_a_config_that_is_not_json_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "config.json").write_text("{")
        with pytest.raises(Unsupported, match="cannot be used") as refused:
            read_model(str(tmp_path))
        assert refused.value.reason == Reason.UNKNOWN_MODEL

    def test_a_directory_that_changes_under_the_process_is_refused_and_never_confused(self, tmp_path: Path) -> None:
        path = local(tmp_path / "mine", {**config_of("Qwen/Qwen3-32B"), "num_hidden_layers": 40})
        read_model(path)
        local(tmp_path / "mine", {**config_of("Qwen/Qwen3-32B"), "num_hidden_layers": 20})
        with pytest.raises(Unsupported, match="changed after this process had read it"):
            read_model(path)


class TestFormats:
    def test_a_checkpoint_whose_formats_have_data_keeps_them(self, catalog: Catalog) -> None:
        performance = catalog.performance(QWEN)
        assert performance.quantization.inferred == ()
        assert performance.changed_modes() == {}

    def test_fp8_attention_without_rows_becomes_bf16_and_says_so(self, catalog: Catalog) -> None:
        performance = catalog.performance(DEEPSEEK)
        assert performance.quantization.attention == "bfloat16"
        assert performance.quantization.inferred == (("attention", "fp8"),)
        assert performance.changed_modes() == {"fmha_quant_mode": "bfloat16"}
        assert any("falling back to bfloat16 FMHA" in note for note in performance.provenance.notes)

    def test_nvfp4_becomes_weight_only_below_blackwell(self, catalog: Catalog) -> None:
        quantization = catalog.performance(NVFP4).quantization
        assert (quantization.gemm, quantization.moe) == ("nvfp4_wo", "nvfp4_wo")
        assert quantization.inferred == (("gemm", "nvfp4"), ("moe", "nvfp4"), ("attention", "fp8"))

    def test_nvfp4_stays_on_blackwell(self) -> None:
        performance = PerformanceModel(PerfIdentity(NVFP4.model, "b200_sxm", "trtllm", "1.3.0rc20"))
        assert (performance.quantization.gemm, performance.quantization.moe) == ("nvfp4", "nvfp4")

    def test_gpt_oss_takes_mxfp8_activations_on_blackwell_with_tensorrt_llm(self) -> None:
        performance = PerformanceModel(PerfIdentity("openai/gpt-oss-120b", "b200_sxm", "trtllm", "1.3.0rc20"))
        assert performance.quantization.moe == "w4a8_mxfp4_mxfp8"
        assert performance.quantization.inferred == (("moe", "w4a16_mxfp4"),)


SHAPES = [
    (QWEN, Shape()),
    (QWEN, Shape(tp=2)),
    (QWEN, Shape(tp=4, pp=2)),
    (QWEN_MOE, Shape(attention_dp=4, moe_ep=4)),
    (QWEN_MOE, Shape(tp=4, moe_tp=4)),
    (DEEPSEEK, Shape(tp=8, moe_ep=8)),
    (DEEPSEEK, Shape(tp=2, attention_dp=8, moe_ep=16)),
]


def keywords(shape: Shape) -> dict[str, Any]:
    return {
        "tp_size": shape.tp,
        "pp_size": shape.pp,
        "attention_dp_size": shape.attention_dp,
        "moe_tp_size": shape.moe_tp,
        "moe_ep_size": shape.moe_ep,
    }


class TestEngine:
    @pytest.mark.parametrize(("identity", "shape"), SHAPES)
    def test_the_cheap_engine_is_the_one_that_the_facade_compiles(
        self, catalog: Catalog, identity: PerfIdentity, shape: Shape
    ) -> None:
        performance = catalog.performance(identity)
        worker = performance.worker(shape)
        modes = performance.changed_modes()
        compiled = compile_engine(
            identity.model, identity.sku, identity.backend, identity.data_version, **keywords(shape), **modes
        )
        assert worker.spec_bytes == compiled
        handle = EngineHandle(compiled)
        assert worker.prefill_ms([1, 2, 7], 3000) == [handle.predict_prefill_latency(b, 3000) for b in (1, 2, 7)]
        assert worker.decode_total_ms([1, 30, 216], 3000, 300) == [
            handle.predict_decode_latency(b, 3000, 300) for b in (1, 30, 216)
        ]

    @pytest.mark.parametrize(("identity", "shape"), SHAPES)
    def test_kv_tokens_are_the_facades(self, catalog: Catalog, identity: PerfIdentity, shape: Shape) -> None:
        performance = catalog.performance(identity)
        worker = performance.worker(shape)
        for tokens in (1, 8192, 32768):
            estimate = worker.kv(tokens, 0.9)
            facade = estimate_kv_cache(
                identity.model,
                identity.sku,
                identity.backend,
                identity.data_version,
                max_num_tokens=tokens,
                max_batch_size=1,
                memory_fraction_kind="of_total",
                memory_fraction_value=0.9,
                **keywords(shape),
                **performance.changed_modes(),
            )
            assert estimate.tokens_per_rank == facade["total_kv_size_tokens"]
            assert estimate.weights_gib * 2**30 == facade["memory_breakdown"]["weights_bytes"]

    def test_one_output_token_needs_no_decoding_but_has_an_aggregated_rate(self, catalog: Catalog) -> None:
        worker = catalog.performance(QWEN).worker(Shape(tp=2))
        assert worker.decode_total_ms([1, 8], 3000, 1) == [0.0, 0.0]
        (point,) = worker.aggregated([(4, 3000)], 3000, 1)
        assert point.tpot_ms == 0
        prefill_ms = worker.prefill_ms([1], 3000)[0]
        assert math.isclose(point.requests_per_s, 1000 / prefill_ms, rel_tol=0.1)

    def test_the_process_environment_is_left_as_it_was(self, catalog: Catalog) -> None:
        before = dict(os.environ)
        catalog.performance(QWEN).worker(Shape(tp=2)).aggregated([(4, 3000)], 3000, 300)
        assert dict(os.environ) == before

    def test_at_least_the_weights_are_read(self, catalog: Catalog) -> None:
        dense = catalog.performance(QWEN)
        bf16_without_embedding = 2 * (32.76e9 - 151_936 * 5120)
        assert math.isclose(dense.worker(Shape()).weights_read_bytes(1), bf16_without_embedding, rel_tol=0.01)
        assert dense.worker(Shape()).weights_read_bytes(64) == dense.worker(Shape()).weights_read_bytes(1)
        experts = catalog.performance(QWEN_MOE).worker(Shape())
        assert math.isclose(experts.weights_read_bytes(1), 2 * 3.0e9, rel_tol=0.1)
        assert math.isclose(experts.weights_read_bytes(16), 2 * 30.2e9, rel_tol=0.03)


class TestRefusals:
    def refusal(self, catalog: Catalog, identity: PerfIdentity, shape: Shape) -> Unsupported:
        with pytest.raises(Unsupported) as refused:
            catalog.performance(identity).worker(shape).prefill_ms([1], 3000)
        assert str(wheel_path()) not in refused.value.message
        return refused.value

    def test_unknown_model(self, catalog: Catalog) -> None:
        refusal = self.refusal(catalog, PerfIdentity("Qwen/Qwen3-32C", "h200_sxm", "vllm", "0.24.0"), Shape())
        assert refusal.reason == Reason.UNKNOWN_MODEL
        assert refusal.message.endswith("did you mean Qwen/Qwen3-32B, Qwen/Qwen3-8B, Qwen/Qwen3-32B-FP8?")

    def test_unknown_hardware(self, catalog: Catalog) -> None:
        refusal = self.refusal(catalog, PerfIdentity(QWEN.model, "H100-SXM5-80GB", "vllm", "0.24.0"), Shape())
        assert refusal.reason == Reason.UNKNOWN_HARDWARE
        assert refusal.message.endswith("did you mean h100_sxm?")

    @pytest.mark.parametrize("version", ["0.19.0", "current", ""])
    def test_a_version_without_data_names_those_with_data(self, catalog: Catalog, version: str) -> None:
        refusal = self.refusal(catalog, PerfIdentity(QWEN.model, "h200_sxm", "vllm", version), Shape())
        assert refusal.reason == Reason.NO_DATA
        assert refusal.message == (
            f"h200_sxm has no vllm data of version {version!r}; versions with data: 0.24.0 (current), 0.27.0 (next)"
        )

    def test_finding_sglang_0_5_9_names_the_data_versions_that_exist(self, catalog: Catalog) -> None:
        refusal = self.refusal(catalog, PerfIdentity(QWEN.model, "h200_sxm", "sglang", "0.5.9"), Shape())
        assert refusal.message.endswith("versions with data: 0.5.14 (current), 0.5.16 (next)")

    def test_hardware_without_data_has_none(self, catalog: Catalog) -> None:
        refusal = self.refusal(catalog, PerfIdentity(QWEN.model, "l4", "vllm", "0.24.0"), Shape())
        assert (refusal.reason, refusal.message) == (
            Reason.NO_DATA,
            "l4 has no vllm data of version '0.24.0'; versions with data: none",
        )

    def test_a_backend_that_is_none_has_no_data(self, catalog: Catalog) -> None:
        refusal = self.refusal(catalog, PerfIdentity(QWEN.model, "h200_sxm", "tgi", "1"), Shape())  # type: ignore[arg-type]
        assert (refusal.reason, refusal.message) == (Reason.NO_DATA, "'tgi' is not one of sglang, trtllm, vllm")

    def test_fp8_on_a100_is_an_unsupported_dtype(self, catalog: Catalog) -> None:
        refusal = self.refusal(catalog, PerfIdentity("Qwen/Qwen3-32B-FP8", "a100_sxm", "vllm", "0.14.0"), Shape())
        assert refusal.reason == Reason.UNSUPPORTED_DTYPE
        assert "the checkpoint's weights are fp8_block, and this GPU has no FP8 compute" in refusal.message

    @pytest.mark.parametrize(
        ("identity", "table"),
        [(NEMOTRON, "the GEMM table has no row for quant nvfp4_wo, only for bfloat16"), (NVFP4, "nvfp4_wo")],
    )
    def test_an_operator_that_was_not_measured_is_named(
        self, catalog: Catalog, identity: PerfIdentity, table: str
    ) -> None:
        refusal = self.refusal(catalog, identity, Shape(tp=8, moe_ep=8))
        assert refusal.reason == Reason.MISSING_OPERATOR_DATA
        assert table in refusal.message
        assert f" on {identity.sku} with " in refusal.message

    def test_heads_that_cannot_be_split_are_no_legal_shape(self, catalog: Catalog) -> None:
        refusal = self.refusal(catalog, QWEN, Shape(tp=3))
        assert refusal.reason == Reason.NO_LEGAL_SHAPE

    def test_blocks_that_cannot_be_split_are_no_legal_shape(self, catalog: Catalog) -> None:
        identity = PerfIdentity("Qwen/Qwen3-235B-A22B-FP8", "h200_sxm", "vllm", "0.24.0")
        refusal = self.refusal(catalog, identity, Shape(tp=8, moe_tp=8))
        assert refusal.reason == Reason.NO_LEGAL_SHAPE
        assert "128" in refusal.message

    def test_context_parallelism_where_it_is_not_modelled_is_an_unsupported_feature(self, catalog: Catalog) -> None:
        refusal = self.refusal(catalog, QWEN, Shape(cp=2))
        assert refusal.reason == Reason.UNSUPPORTED_FEATURE
        assert "Context parallelism (cp_size=2)" in refusal.message

    @pytest.mark.parametrize("time", [math.nan, math.inf, 0.0, -1.0])
    def test_a_time_that_is_none_is_invalid_data(
        self, catalog: Catalog, monkeypatch: pytest.MonkeyPatch, time: float
    ) -> None:
        worker = catalog.performance(QWEN).worker(Shape())
        monkeypatch.setattr(EngineHandle, "predict_prefill_latency", lambda *_: time)
        with pytest.raises(
            Unsupported, match=f"shape tp1, prefill of 3000 tokens: {time} is not a positive"
        ) as refused:
            worker.prefill_ms([1], 3000)
        assert refused.value.reason == Reason.INVALID_DATA

    def test_a_defect_of_the_performance_model_passes(self, catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
        worker = catalog.performance(QWEN).worker(Shape())

        def defect(*_: object) -> float:
            raise TypeError("a defect")

        monkeypatch.setattr(EngineHandle, "predict_prefill_latency", defect)
        with pytest.raises(TypeError, match="a defect"):
            worker.prefill_ms([1], 3000)

    def test_nothing_is_printed(self, capfd: pytest.CaptureFixture[str]) -> None:
        performance = PerformanceModel(PerfIdentity("deepseek-ai/DeepSeek-R1", "h200_sxm", "trtllm", "1.3.0rc20"))
        performance.worker(Shape(tp=8, moe_ep=8)).aggregated([(8, 3000)], 3000, 300)
        assert capfd.readouterr() == ("", "")
        assert any("low-fidelity fallback rows for mla_bmm" in note for note in performance.provenance.notes)
