"""Images in the engine with the encoder inside the workers, and what is refused before any estimate."""

from dataclasses import replace
from typing import Any

import pytest
from dgdr_api.base import wire
from dgdr_api.errors import InvalidRequest
from dgdr_api.shape import Shape
from dgdr_api.terms import Topology
from dgdr_job.catalog.cache import DiskCache
from dgdr_job.catalog.catalog import Catalog
from dgdr_job.catalog.errors import Reason, Unsupported
from dgdr_job.catalog.identity import PerfIdentity
from dgdr_job.catalog.images import Images
from dgdr_job.search.branches import Branch, plan_branch
from dgdr_job.search.config import Encode, RateMatching, SmartSearchConfig
from dgdr_job.search.mapper import search_config
from dgdr_job.search.question import Question
from dgdr_job.search.resolved import version_chains
from dgdr_job.search.role_table import RoleTable, role_table
from dgdr_job.search.sweep import role_input
from dgdr_job.search.visual import images_of, visual_tokens
from dgdr_job.space.limits import Limits
from dgdr_job.timing.encoder import inline_encoder_rows
from dgdr_job.timing.rows import agg_rows, prefill_rows
from pydantic import ValidationError

from tests.job.search.runs import run, search

MODEL = "Qwen/Qwen3-VL-32B-Instruct"
QWEN_VL = PerfIdentity(MODEL, "h200_sxm", "vllm", "0.24.0")
ONE = Images(1024, 1024)
SIZE = {"height": 1024, "width": 1024}


def images_run(size: dict[str, int] | None = None, backend: str = "vllm", **changes: Any) -> Any:
    load = {"isl": 2000, "osl": 300, **({"images": size} if size else {})}
    static = {"static": load | changes.pop("load", {})}
    return run(backend, modelRef={"name": MODEL}, workload=static, **changes)


def config_of(catalog: Catalog, spec: Any) -> SmartSearchConfig:
    tokens = visual_tokens(catalog, spec.model_ref.name, images_of(spec))
    versions = {name: chain.performance_data for name, chain in version_chains(spec).items()}
    return search_config(spec, versions, tokens)


def plan(catalog: Catalog, spec: Any, topology: Topology = "disagg") -> tuple[SmartSearchConfig, Branch]:
    config = config_of(catalog, spec)
    (backend,) = spec.backends
    return config, plan_branch(catalog, config, backend, topology, version_chains(spec)[backend])


def table(catalog: Catalog, spec: Any, topology: Topology, index: int) -> RoleTable:
    config, branch = plan(catalog, spec, topology)
    narrow = replace(branch.roles[index], gated=replace(branch.roles[index].gated, kept=(Shape(),)))
    return role_table(catalog, role_input(config, branch, narrow), config.workload, RateMatching())


class TestVisualTokens:
    def test_they_are_part_of_the_prompt_everywhere(self, catalog: Catalog) -> None:
        config, branch = plan(catalog, images_run(SIZE))
        assert config.workload.visual_tokens == 1024
        assert config.workload.prompt_tokens == 3024
        assert branch.max_sequence_tokens == 3324
        assert config.rate_matching.agg_ctx_tokens == (512, 1024, 2048, 3024, 4096, 6048)

    def test_a_prompt_beyond_the_listed_budgets_gets_one_that_covers_it(self, catalog: Catalog) -> None:
        config, _ = plan(catalog, images_run(SIZE | {"count": 40}))
        assert config.search_space.prefill_max_num_batched_tokens == (8192, 16384, 32768, 65536)

    def test_decode_times_and_batches_are_those_of_a_text_prompt_as_long(self, catalog: Catalog) -> None:
        images = table(catalog, images_run(SIZE), "disagg", 1)
        text = table(catalog, images_run(load={"isl": 3024}), "disagg", 1)
        assert images.tpot_ms.tolist() == text.tpot_ms.tolist()
        assert images.batch.tolist() == text.batch.tolist()
        assert images.kv_tokens.tolist() == text.kv_tokens.tolist()

    def test_a_kv_load_ratio_counts_them(self, catalog: Catalog) -> None:
        load = {"saturated": None, "kvLoadRatio": 0.5}
        config = config_of(catalog, images_run(SIZE, load=load))
        question = Question(config.workload, config.goal.sla, Limits(gpu_budget=8), ("throughput",), pareto=False)
        assert question.mean_request_tokens == 2000 + 1024 + 150


class TestInlineEncoder:
    def test_disaggregated_ttft_is_both_passes_with_queueing(self, catalog: Catalog) -> None:
        found = table(catalog, images_run(SIZE), "disagg", 0)
        encoder = inline_encoder_rows(catalog, QWEN_VL, Shape(), images=ONE, batches=[1]).latency_ms[0]
        prefill = prefill_rows(catalog, QWEN_VL, Shape(), isl=3024, batches=[1]).latency_ms[0]
        assert found.ttft_ms == pytest.approx([1.8 * (encoder + 1.1 * prefill)])
        assert found.rate == pytest.approx([0.9 * 1000 / (encoder + 1.1 * prefill)])

    def test_aggregated_ttft_is_the_encoder_and_then_the_rest(self, catalog: Catalog) -> None:
        """The core encodes the images of a whole batch before the rest of it; nothing else of the row changes."""
        batch = 16
        (text,) = agg_rows(catalog, QWEN_VL, Shape(), isl=3024, osl=300, points=[(batch, 3024)]).ttft_ms
        encoder = inline_encoder_rows(catalog, QWEN_VL, Shape(), images=ONE, batches=[batch]).latency_ms[0]
        found = agg_rows(catalog, QWEN_VL, Shape(), isl=3024, osl=300, points=[(batch, 3024)], images=ONE)
        assert found.ttft_ms == pytest.approx([text + encoder])

    @pytest.mark.parametrize(("topology", "index"), [("disagg", 0), ("agg", 0)])
    def test_weights_and_activations_come_out_of_the_kv_cache(
        self, catalog: Catalog, topology: Topology, index: int
    ) -> None:
        images = table(catalog, images_run(SIZE), topology, index)
        text = table(catalog, images_run(load={"isl": 3024}), topology, index)
        mine = {(b, t): (kv, w) for b, t, kv, w in _memory(images)}
        other = {(b, t): (kv, w) for b, t, kv, w in _memory(text)}
        both = mine.keys() & other.keys()
        assert len(both) > len(other) / 2
        per_token = catalog.kv(QWEN_VL, Shape(), 8192).kv_bytes_per_token
        for batch, tokens in both:
            encoder = inline_encoder_rows(catalog, QWEN_VL, Shape(), images=ONE, batches=[batch])
            taken = (encoder.weights_gib + encoder.activations_gib[0]) * 2**30 / per_token
            assert other[batch, tokens][0] - mine[batch, tokens][0] == pytest.approx(taken, abs=1)
            assert mine[batch, tokens][1] == pytest.approx(other[batch, tokens][1] + encoder.weights_gib)

    def test_a_decode_worker_has_no_encoder(self, catalog: Catalog) -> None:
        _, branch = plan(catalog, images_run(SIZE))
        assert [role.images for role in branch.roles] == [ONE, None]


class TestCandidate:
    def test_it_says_what_was_evaluated(self, catalog: Catalog) -> None:
        told = search(images_run(SIZE | {"count": 2}), catalog)
        for each in told.reserve:
            images = each.replay_spec.workload.static.images  # type: ignore[union-attr]
            assert wire(images) == {"height": 1024, "width": 1024, "count": 2, "visualTokens": 2048}  # type: ignore[arg-type]
            splits = {role.kind: role.encoder_split for role in each.candidate.roles}
            assert splits in ({"agg": "data"}, {"prefill": "data", "decode": None})
            assert each.candidate.encoder == "Inline"

    def test_a_text_request_says_nothing_of_images(self, catalog: Catalog) -> None:
        (best, *_) = search(images_run(), catalog).reserve
        assert "images" not in wire(best)["replaySpec"]["workload"]["static"]
        assert all("encoderSplit" not in role for role in wire(best)["candidate"]["roles"])


class TestRefused:
    """Nothing is estimated: the catalog of these tests has no performance model."""

    @pytest.fixture
    def blind(self, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Catalog:
        catalog = Catalog(DiskCache(tmp_path))

        def no_model(*_: Any) -> None:
            raise AssertionError("an estimate was asked for")

        monkeypatch.setattr(catalog, "performance", no_model)
        return catalog

    def test_a_text_model_with_images(self, blind: Catalog) -> None:
        spec = images_run(SIZE).model_copy(update={"model_ref": run().model_ref})
        told = search(spec, blind)
        assert told.completed.outcome == "Unsupported"
        assert told.completed.message == (
            "UnsupportedFeature: workload.static.images: 1 image of 1024 x 1024, but Qwen/Qwen3-32B has no vision "
            "encoder that is modelled (the Qwen3-VL family has); leave them out for a text workload"
        )
        assert {each.reason for each in told.resolved.coverage} == {"UnsupportedFeature"}

    def test_an_image_that_the_processor_refuses(self, blind: Catalog) -> None:
        told = search(images_run({"height": 4020, "width": 20}), blind)
        assert told.completed.outcome == "Unsupported"
        assert "4,020 x 20 pixels has an aspect ratio of 201; the processor takes at most 200" in told.completed.message

    def test_images_beyond_the_models_context(self, blind: Catalog) -> None:
        told = search(images_run({"height": 65_536, "width": 65_536}), blind)
        assert told.completed.outcome == "Unsupported"
        assert "4,194,304 tokens, but Qwen/Qwen3-VL-32B-Instruct takes sequences of at most 262,144" in (
            told.completed.message
        )

    def test_a_sequence_beyond_the_models_context_names_all_of_it(self, blind: Catalog) -> None:
        spec = images_run(SIZE | {"count": 255})
        config = config_of(blind, spec)
        with pytest.raises(Unsupported, match=r"isl 2,000 \+ 261,120 visual tokens \+ osl 300 = 263,420 tokens") as no:
            plan_branch(blind, config, "vllm", "agg", version_chains(spec)["vllm"])
        assert no.value.reason is Reason.UNSUPPORTED_FEATURE

    def test_a_sequence_bound_below_the_visual_tokens(self, blind: Catalog) -> None:
        load = {"static": {"isl": 2000, "osl": 300, "images": SIZE, "saturated": True}, "maxSequenceLength": 3000}
        spec = run(modelRef={"name": MODEL}, workload=load)
        with pytest.raises(InvalidRequest, match=r"isl 2,000 \+ 1,024 visual tokens \+ osl 300 = 3,324; give at least"):
            search(spec, blind)

    @pytest.mark.parametrize(
        ("parameters", "text"),
        [
            ({"batch_size": [1, 9]}, "must be at most 8, found 9"),
            ({"batch_size": [0]}, "must be at least 1, found 0"),
            ({"batch_size": []}, "has 0 values, at least 1 are needed"),
            ({"latency_correction": 0.0}, "must be above 0, found 0.0"),
            ({"latency_correction": -1.0}, "must be above 0"),
            ({"rate_degradation": 1.5}, "must be at most 1"),
            ({"tp": [0]}, "must be at least 1"),
            ({"max_workers": 0}, "must be at least 1"),
            ({"batches": [1]}, "is no key of the engine; near: batch_size"),
            ({"hardware_sku": "l40s"}, "is set by hardware.gpu.encoderSku; change that field instead"),
        ],
    )
    def test_wrong_keys_of_encode_workers(self, blind: Catalog, parameters: dict[str, Any], text: str) -> None:
        keys = {"search_space": {"encode": parameters}}
        spec = images_run(SIZE, search={"encoder": "Disaggregated", "parameters": keys})
        with pytest.raises(InvalidRequest, match=text):
            search(spec, blind)

    @pytest.mark.parametrize("value", [float("inf"), float("nan"), 0.0, -0.5])
    def test_a_correction_that_is_no_positive_finite_number(self, value: float) -> None:
        with pytest.raises(ValidationError, match="latency_correction"):
            Encode(latency_correction=value)

    def test_encode_keys_without_encode_workers(self, blind: Catalog) -> None:
        keys = {"search_space": {"encode": {"tp": [1]}}}
        with pytest.raises(InvalidRequest, match=r"search_space.encode.*needs search.encoder Disaggregated or Both"):
            search(images_run(SIZE, search={"parameters": keys}), blind)


def _memory(found: RoleTable) -> list[tuple[int, int, int, float]]:
    columns = (found.batch, found.batched_tokens, found.kv_tokens, found.weights_gib)
    return list(zip(*(column.tolist() for column in columns), strict=True))
