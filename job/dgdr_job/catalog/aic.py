"""The module that knows aiconfigurator-core; `dgdr_job.catalog.aic_encoder` is its part for vision encoders.

It hides the package's edges: it never downloads (the name is looked up before the package sees it), takes literal
versions only, checks the calls that answer None or {} instead of raising, resolves number formats by the data that
exists, and turns the package's errors and warnings into `Unsupported` and notes (`dgdr_job.catalog.border`).

Engines are built from one cached database with the public spec builder (about 1 ms a shape): compiling through the
facade reads the version slots again for every shape (about 10 ms). The result is the same, byte for byte.

The module is long because no other may import the package.
"""

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import aiconfigurator_core
from aiconfigurator_core.sdk import common, engine, errors, memory, models, perf_database, utils
from aiconfigurator_core.sdk.backends.factory import get_backend
from aiconfigurator_core.sdk.backends.sglang_backend import derive_sglang_mem_fraction_static
from aiconfigurator_core.sdk.config_builders import build_model_config
from dgdr_api.shape import Shape

from dgdr_job.catalog import aic_encoder
from dgdr_job.catalog.agg_estimate import AggEstimate, AggregatedPoint
from dgdr_job.catalog.border import Reasons, border
from dgdr_job.catalog.errors import Reason, Unsupported
from dgdr_job.catalog.hardware import Hardware
from dgdr_job.catalog.identity import PerfIdentity
from dgdr_job.catalog.images import Images
from dgdr_job.catalog.kv import FRACTION_KIND, KvEstimate
from dgdr_job.catalog.model import ModelFacts
from dgdr_job.catalog.provenance import DataProvenance, OperatorTime, SourceShares, source_shares
from dgdr_job.catalog.quantization import Quantization, check_compute
from dgdr_job.catalog.tables import tables_of_operators
from dgdr_job.catalog.wheel import config_sha256, is_local, near, shipped_models, shipped_skus, wheel_version

_GIB = 1 << 30
_AMPLE_FRACTION = 0.9
"""Of memory without end: even a tiny fraction that was asked for then tells what takes the room."""
_FP8_BLOCK = 128
_GPT_OSS = frozenset({"openai/gpt-oss-120b", "openai/gpt-oss-20b"})
_digests: dict[str, str] = {}
"""Content of each model as it was first read: the package remembers configurations by name alone."""
_notes_of_data: defaultdict[tuple[str, str, str], list[str]] = defaultdict(list)
"""Warnings about the data of (SKU, backend, version): the package gives each once per process, whatever the model."""

# Errors that mean the same wherever they are raised.
_DATA: Reasons = {
    errors.PerfDataNotAvailableError: Reason.MISSING_OPERATOR_DATA,
    errors.InterpolationDataNotAvailableError: Reason.MISSING_OPERATOR_DATA,
    errors.EmpiricalNotImplementedError: Reason.MISSING_OPERATOR_DATA,
    errors.UnsupportedWideepConfigError: Reason.MISSING_OPERATOR_DATA,
    errors.MissingSystemFlopsError: Reason.UNSUPPORTED_DTYPE,
    errors.UnsupportedAttentionBackendError: Reason.UNSUPPORTED_FEATURE,
    errors.SolNotImplementedError: Reason.UNSUPPORTED_FEATURE,
    NotImplementedError: Reason.UNSUPPORTED_FEATURE,
}
# A local config.json is somebody's input: values that are missing or of another type surface as these.
_READING_MODEL: Reasons = {
    **_DATA,
    utils.HuggingFaceDownloadError: Reason.UNKNOWN_MODEL,
    AttributeError: Reason.UNKNOWN_MODEL,
    IndexError: Reason.UNKNOWN_MODEL,
    KeyError: Reason.UNKNOWN_MODEL,
    TypeError: Reason.UNKNOWN_MODEL,
    ValueError: Reason.UNKNOWN_MODEL,
    ZeroDivisionError: Reason.UNKNOWN_MODEL,
}
_READING_FORMATS: Reasons = {**_DATA, KeyError: Reason.UNSUPPORTED_DTYPE, ValueError: Reason.UNSUPPORTED_DTYPE}
# What a local config.json leads to when the first model is built of it: sizes that cannot be.
_BUILDING_LOCAL: Reasons = {
    **_READING_FORMATS,
    AssertionError: Reason.UNKNOWN_MODEL,
    OverflowError: Reason.UNKNOWN_MODEL,
    TypeError: Reason.UNKNOWN_MODEL,
    ZeroDivisionError: Reason.UNKNOWN_MODEL,
}
_OPENING_DATA: Reasons = {**_DATA, ValueError: Reason.NO_DATA}
_SPLITTING: Reasons = {
    **_DATA,
    AssertionError: Reason.NO_LEGAL_SHAPE,
    KeyError: Reason.NO_LEGAL_SHAPE,
    ValueError: Reason.NO_LEGAL_SHAPE,
}


def read_model(model: str) -> ModelFacts:
    """Reads a model's configuration.

    Raises:
        Unsupported: UnknownModel: not found (nothing is downloaded), incomplete, or of an unknown architecture.
    """
    digest = config_sha256(model)
    _refuse_download(model)
    if _digests.setdefault(model, digest) != digest:
        raise Unsupported(
            Reason.UNKNOWN_MODEL,
            f"{model}: the configuration changed after this process had read it, which the performance model cannot "
            "follow; start a new process",
        )
    with border(f"{model}: its config.json cannot be used", _READING_MODEL, []):
        info = utils.get_model_config_from_model_path(model)
        is_moe = bool(models.check_is_moe(model))
        raw = info["raw_config"]
        text = raw.get(common.MULTIMODAL_TEXT_CONFIG_KEY.get(info["architecture"], ""), raw)
        algorithm = raw.get("quant_algo")
        return ModelFacts(
            architecture=info["architecture"],
            layers=int(info["layers"]),
            attention_heads=int(info["n"] or 0),
            kv_heads=int(info["n_kv"] or 0),
            hidden_size=int(info["hidden_size"]),
            is_moe=is_moe,
            experts=int(info["num_experts"] or 0) if is_moe else 0,
            experts_per_token=int(info["topk"] or 0) if is_moe else 0,
            moe_intermediate_size=int(info["moe_inter_size"] or 0) if is_moe else 0,
            context_length=int(info["context"] or 0),
            vision=aic_encoder.vision_facts(info["extra_params"]),
            quantization=algorithm,
            quantization_block=_FP8_BLOCK if algorithm == "fp8_block" else None,
            nextn_predict_layers=int(text.get("num_nextn_predict_layers") or 0),
            config_sha256=digest,
            needs_remote_code=is_local(model) and bool(raw.get("auto_map")),
        )


def read_hardware(sku: str) -> Hardware:
    """Reads a SKU's description.

    Raises:
        Unsupported: UnknownHardware, with the names that resemble the asked one.
    """
    with border(sku, {}, []):
        spec = perf_database.load_system_spec(sku)
    if not spec:
        raise Unsupported(
            Reason.UNKNOWN_HARDWARE, f"{sku!r} is not one of {', '.join(shipped_skus())}{near(sku, shipped_skus())}"
        )
    gpu, node = spec["gpu"], spec["node"]
    return Hardware(
        sku=sku,
        memory_bytes=int(gpu["mem_capacity"]),
        memory_bytes_per_s=float(gpu["mem_bw"]),
        gpus_per_node=int(node["num_gpus_per_node"]),
        gpus_per_rack=int(node["num_gpus_per_rack"]) if node.get("num_gpus_per_rack") else None,
        sm_version=int(gpu["sm_version"]) if gpu.get("sm_version") else None,
        power_watts=float(gpu["power"]) if gpu.get("power") else None,
    )


def read_version_slots(sku: str, backend: str) -> dict[str, str]:
    """Versions that can be asked for: ``current`` and, where they exist, ``previous`` and ``next``.

    Returns:
        Slot to literal version; empty when the backend has no data on this SKU.
    """
    with border(f"{backend} on {sku}", {}, []):
        return dict(perf_database.get_version_slots(sku, backend) or {})


def _refuse_download(model: str) -> None:
    """Stops a name that the package would look up on the network.

    The package loads its own copy only of ids on a list, which forgets four of those that it ships.
    """
    common.DefaultHFModels.update(shipped_models())
    if not is_local(model) and model not in common.DefaultHFModels:
        raise Unsupported(
            Reason.UNKNOWN_MODEL, f"{model!r} is not shipped and nothing is downloaded{near(model, shipped_models())}"
        )


class PerformanceModel:
    """The data of one identity, loaded; workers of any shape are made from it.

    Not for concurrent use by threads.

    Raises:
        Unsupported: UnknownModel, UnknownHardware, NoData (with the versions that exist) or UnsupportedDtype.
    """

    def __init__(self, identity: PerfIdentity) -> None:
        self.identity = identity
        self.facts = read_model(identity.model)
        self.hardware = read_hardware(identity.sku)
        self._notes: list[str] = []
        self._data_notes = _notes_of_data[identity.sku, identity.backend, identity.data_version]
        self._database = self._open_database()
        self._workers: dict[tuple[int, ...], WorkerModel] = {}
        self._changed: dict[str, Any] = {}
        self.quantization = self._resolve_formats()
        check_compute(identity.label, self.quantization, perf_database.load_system_spec(identity.sku)["gpu"])

    def worker(self, shape: Shape) -> "WorkerModel":
        """The model split by a shape; the same object for the same shape.

        Raises:
            Unsupported: NoLegalShape or UnsupportedFeature.
        """
        if shape.key not in self._workers:
            self._workers[shape.key] = WorkerModel(self, shape)
        return self._workers[shape.key]

    def encode_worker(self, tp: int) -> aic_encoder.EncodeWorker:
        """The model's vision encoder alone, split over ``tp`` GPUs.

        Raises:
            Unsupported: UnsupportedFeature or NoLegalShape.
        """
        return aic_encoder.EncodeWorker(self, tp)

    @cached_property
    def provenance(self) -> DataProvenance:
        """What stands behind the estimates, for the operators of this model."""
        used = self.worker(Shape()).tables
        notes = {*self._notes, *self._data_notes}
        own = {t: [r for r in self._records(t) if r["channel"] == "primary"] for t in used}
        other = {t: [r for r in self._records(t) if r["channel"] != "primary"] for t in used}
        return DataProvenance(
            wheel_version=wheel_version(),
            borrowed_tables=tuple(sorted(t for t in used if other[t] and not own[t])),
            filled_tables=tuple(sorted(t for t in used if other[t] and own[t])),
            notes=tuple(
                sorted(n for n in notes if "_perf.parquet" not in n or any(f"{t}_perf.parquet" in n for t in used))
            ),
        )

    @contextmanager
    def guarded(self, what: str, reasons: Reasons = _DATA) -> Iterator[None]:
        """The border, with this identity as subject."""
        with border(f"{self.identity.label}{what}", reasons, self._notes):
            yield

    def built(self, shape: Shape) -> tuple[Any, str]:
        """The package's model object of a shape, and its compiled engine in wire form."""
        config = self._model_config(shape, self._changed)
        identity = self.identity
        what = f"{identity.label}, shape {shape.label}"
        with border(what, _SPLITTING, self._notes):
            model = models.get_model(identity.model, config, identity.backend)
        with border(what, _SPLITTING, self._data_notes):
            return model, self.spec(model)

    def spec(self, model: Any) -> str:  # noqa: ANN401  (an object of the untyped package)
        """The package's compiled engine of one of its model objects, in wire form."""
        identity = self.identity
        made: str = engine.build_engine_spec_json(
            model,
            model_path=identity.model,
            system=identity.sku,
            backend=identity.backend,
            backend_version=identity.data_version,
            kv_block_size=None,
            systems_path=None,
            nextn=0,
            database=self._database,
        )
        return made

    @property
    def database(self) -> Any:  # noqa: ANN401  (an object of the untyped package)
        """The package's database object."""
        return self._database

    def changed_modes(self) -> dict[str, Any]:
        """Formats to pass explicitly: only those that differ from what the package infers by itself."""
        return dict(self._changed)

    def borrowed(self, tables: Iterable[str]) -> bool:
        """Whether any of the tables has rows, but none of its own version."""
        return any(
            records and all(r["channel"] != "primary" for r in records) for records in map(self._records, tables)
        )

    def _records(self, table: str) -> list[dict[str, Any]]:
        return [r for r in self._database.data_provenance.get(f"{table}_perf.parquet", ()) if r["exists"]]

    def _open_database(self) -> Any:  # noqa: ANN401
        identity = self.identity
        if identity.backend not in FRACTION_KIND:
            raise Unsupported(Reason.NO_DATA, f"{identity.backend!r} is not one of {', '.join(sorted(FRACTION_KIND))}")
        slots = read_version_slots(identity.sku, identity.backend)
        if identity.data_version not in slots.values():
            known = ", ".join(f"{version} ({slot})" for slot, version in slots.items()) or "none"
            raise Unsupported(
                Reason.NO_DATA,
                f"{identity.sku} has no {identity.backend} data of version {identity.data_version!r}; "
                f"versions with data: {known}",
            )
        with border(identity.label, _OPENING_DATA, self._data_notes):
            database = perf_database.get_database(identity.sku, identity.backend, identity.data_version)
            if database is None:
                raise Unsupported(Reason.NO_DATA, f"{identity.label}: the data cannot be loaded")
            # Touching any table's formats makes the package list the files behind every table.
            database.supported_quant_mode["nccl"]
        return database

    def _model_config(self, shape: Shape, modes: dict[str, Any]) -> Any:  # noqa: ANN401
        config = build_model_config(
            tp_size=shape.tp,
            pp_size=shape.pp,
            attention_dp_size=shape.attention_dp,
            moe_tp_size=shape.moe_tp,
            moe_ep_size=shape.moe_ep,
            **modes,
        )
        config.cp_size = shape.cp
        return config

    def _resolve_formats(self) -> Quantization:
        """Chooses formats that the hardware and the data have.

        What the package infers from the checkpoint stays, except: NVFP4 becomes weight-only below Blackwell; gpt-oss
        experts take MXFP8 activations on Blackwell with TensorRT-LLM; some architectures' experts have a format per
        hardware generation; FP8 attention over the prompt becomes BF16 where the tables have no FP8 rows.
        """
        identity = self.identity
        with self.guarded("", _BUILDING_LOCAL if is_local(identity.model) else _READING_FORMATS):
            declared = self._model_config(Shape(), {})
            models.get_model(identity.model, declared, identity.backend)
            resolved = self._model_config(Shape(), {})
            is_blackwell = perf_database.is_blackwell_system(identity.sku)
            if identity.backend == "trtllm" and identity.model in _GPT_OSS and is_blackwell:
                resolved.moe_quant_mode = common.MoEQuantMode.w4a8_mxfp4_mxfp8
            models.resolve_dsv4_moe_arch(
                resolved, identity.model, system_name=identity.sku, backend_name=identity.backend
            )
            models.resolve_nvfp4_for_system(resolved, identity.sku, identity.model, backend_name=identity.backend)
            self._changed = _modes(resolved)
            if declared.fmha_quant_mode == common.FMHAQuantMode.fp8 and not self._answers_prefill():
                models.resolve_context_fmha_by_data(
                    resolved, identity.model, self._database, identity.backend, is_context_role=True
                )
                self._changed = _modes(resolved)
            models.get_model(identity.model, resolved, identity.backend)
        chosen, inferred = _formats(resolved), _formats(declared)
        if _declares_fp8_attention(utils.get_model_config_from_model_path(identity.model)["raw_config"]):
            inferred["attention"] = "fp8"
        return Quantization(
            **chosen, inferred=tuple((field, inferred[field]) for field in chosen if inferred[field] != chosen[field])
        )

    def _answers_prefill(self) -> bool:
        """Whether one prefill has data: cheaper than loading the attention table to ask for its formats."""
        try:
            WorkerModel(self, Shape()).prefill_ms([1], 128)
        except Unsupported:
            return False
        return True


class WorkerModel:
    """One worker shape, ready to be asked for times.

    Times are of the whole worker: ``batch`` requests on each of its attention data-parallel ranks.

    Attributes:
        shape: The shape.
        tables: Tables that the operators of this shape read.
    """

    def __init__(self, performance: PerformanceModel, shape: Shape) -> None:
        self._performance = performance
        self._identity = performance.identity
        self.shape = shape
        self._model, spec_json = performance.built(shape)
        self.spec_bytes = bytes(aiconfigurator_core.engine_spec_bincode_from_json(spec_json))
        spec = json.loads(spec_json)
        tables = tables_of_operators([*spec["context_ops"], *spec["generation_ops"]])
        self.tables = frozenset().union(*tables.values())
        self._borrowed = frozenset(name for name, found in tables.items() if performance.borrowed(found))

    @cached_property
    def _engine(self) -> Any:  # noqa: ANN401
        return engine.EngineHandle(self.spec_bytes)

    def prefill_ms(self, batches: Sequence[int], isl: int) -> list[float]:
        """Time of one prefill pass over ``batch`` prompts of ``isl`` new tokens.

        Raises:
            Unsupported: MissingOperatorData, UnsupportedDtype or InvalidData.
        """
        with self._asking(f"prefill of {isl} tokens"):
            times = [self._engine.predict_prefill_latency(batch, isl) for batch in batches]
        return self._checked(times, f"prefill of {isl} tokens")

    def decode_total_ms(self, batches: Sequence[int], isl: int, osl: int) -> list[float]:
        """Time of the ``osl - 1`` decode steps of ``batch`` requests, by the core's quadrature of stride 32.

        Raises:
            Unsupported: MissingOperatorData, UnsupportedDtype or InvalidData.
        """
        if osl <= 1:
            return [0.0] * len(batches)
        what = f"decode of {osl} tokens after {isl}"
        with self._asking(what):
            times = [self._engine.predict_decode_latency(batch, isl, osl) for batch in batches]
        return self._checked(times, what)

    @cached_property
    def encoder(self) -> aic_encoder.EncoderModel:
        """The vision encoder inside this worker.

        Raises:
            Unsupported: UnsupportedFeature: the model has none.
        """
        return aic_encoder.beside_language_model(self._performance, self._model, self.spec_bytes)

    def aggregated(
        self, points: Sequence[tuple[int, int]], isl: int, osl: int, images: Images | None = None
    ) -> list[AggregatedPoint]:
        """The core's aggregated estimate (``run_agg``) at (batch, context tokens per pass).

        With images the worker encodes them too: the core adds one pass over the images of the whole batch to the time
        to first token and to the time in which the batch is served. ``isl`` counts their tokens.

        Raises:
            Unsupported: MissingOperatorData, UnsupportedDtype or InvalidData.
        """
        what = f"aggregated serving of {isl}/{osl} tokens"
        encoder_ms: dict[int, float] = {}
        if images is not None and self._performance.facts.vision is not None:
            batches = sorted({batch for batch, _ in points})
            passes = self.encoder.passes(batches, images)
            encoder_ms = {batch: found.latency_ms for batch, found in zip(batches, passes, strict=True)}
        with self._asking(what):
            backend: Any = get_backend(self._identity.backend)
            estimate = AggEstimate(backend, self._model, self._engine, isl=isl, osl=osl)
            answers = [estimate.point(batch, ctx, encoder_ms.get(batch, 0.0)) for batch, ctx in points]
        self._checked([value for a in answers for value in (a.ttft_ms, a.requests_per_s)], what)
        if osl > 1:
            self._checked([a.tpot_ms for a in answers], what)
        return answers

    def prefill_shares(self, batch: int, isl: int) -> SourceShares:
        """Where the time of one prefill pass comes from."""
        with self._asking("prefill by operator"):
            context, _ = self._engine.run_static_per_op(batch_size=batch, isl=isl, osl=1, mode="static_ctx")
        return self._shares(context)

    def decode_shares(self, batch: int, isl: int, osl: int) -> SourceShares:
        """Where the time of one decode step in the middle of the output comes from."""
        with self._asking("decode by operator"):
            return self._shares(self._engine.decode_step_per_op(batch, isl, osl))

    def mixed_shares(self, batch: int, ctx_tokens: int, isl: int, osl: int) -> SourceShares:
        """Where the time of one pass over ``ctx_tokens`` of prompts and ``batch`` decoding requests comes from."""
        with self._asking("mixed pass by operator"):
            parts = self._engine.mixed_step_breakdown_per_op(ctx_tokens, batch, isl, osl)
        return self._shares([entry for part in parts for entry in part])

    def decode_step_ms(self, batch: int, isl: int, osl: int) -> float:
        """Time of one decode step in the middle of the output."""
        with self._asking("decode step"):
            return float(self._engine.decode_step_latency(batch, isl, osl))

    def weights_read_bytes(self, batch: int) -> float:
        """Bytes of weights on one GPU that one decode step must read at least.

        All weights but the embedding; of the experts the share that the tokens of a pass can reach,
        ``batch * attention_dp * experts_per_token / experts``, at most all. Pipeline stages are read one after another.
        """
        facts = self._performance.facts
        reached = 1.0
        if facts.experts:
            reached = min(1.0, batch * self.shape.attention_dp * facts.experts_per_token / facts.experts)
        parts = {"Embedding": 0.0, "MoE": reached}
        return float(sum(op.get_weights() * parts.get(type(op).__name__, 1.0) for op in self._model.context_ops))

    def default_memory_fraction(self) -> float:
        """The backend's own default for its version, memory and shape."""
        identity, shape = self._identity, self.shape
        if identity.backend == "sglang":
            return float(
                derive_sglang_mem_fraction_static(
                    self._performance.hardware.memory_bytes, shape.tp, shape.pp, shape.attention_dp
                )
            )
        with self._asking("memory fraction"):
            backend: Any = get_backend(identity.backend)
            return float(backend.get_default_free_gpu_memory_fraction(identity.data_version))

    def kv(self, max_num_batched_tokens: int, memory_fraction: float) -> KvEstimate:
        """KV tokens of one rank (``estimate_kv_cache``, no naive fallback).

        Returns:
            The estimate; 0 tokens with a reason when weights and buffers leave nothing.

        Raises:
            Unsupported: The model cannot be built in this shape.
        """
        reason = None
        with self._asking("KV cache", _SPLITTING):
            try:
                found = self._estimate_kv(max_num_batched_tokens, memory_fraction)
            except ValueError as error:
                if not str(error).startswith("no KV budget"):
                    raise
                # Asked again with memory without end, the package tells what takes the room.
                found = self._estimate_kv(max_num_batched_tokens, _AMPLE_FRACTION, capacity_bytes=1 << 50)
                found["total_kv_size_tokens"] = 0
        parts = {key: value / _GIB for key, value in found["memory_breakdown"].items()}
        capacity_gib = self._performance.hardware.memory_bytes / _GIB
        tokens = int(found["total_kv_size_tokens"])
        if tokens <= 0:
            reason = (
                f"weights {parts['weights_bytes']:.2f} GiB and buffers "
                f"{math.fsum(parts.values()) - parts['weights_bytes']:.2f} GiB leave no KV cache in "
                f"{capacity_gib:.2f} GiB at memory fraction {memory_fraction:g} on {self._identity.sku}, "
                f"shape {self.shape.label}"
            )
        return KvEstimate(
            tokens_per_rank=max(tokens, 0),
            memory_fraction=memory_fraction,
            fraction_kind=FRACTION_KIND[self._identity.backend],
            max_num_batched_tokens=max_num_batched_tokens,
            capacity_gib=capacity_gib,
            weights_gib=parts["weights_bytes"],
            activations_gib=parts["activations_bytes"],
            runtime_gib=parts["runtime_overhead_bytes"],
            communication_gib=parts["comm_overhead_bytes"],
            kv_bytes_per_token=int(found["kv_size_per_token_bytes"]),
            reason=reason,
        )

    def _estimate_kv(self, tokens: int, fraction: float, *, capacity_bytes: int | None = None) -> dict[str, Any]:
        identity, shape = self._identity, self.shape
        # The call knows no context parallelism, which splits neither attention weights nor KV: for a mixture of
        # experts its ranks weigh what as many data-parallel ranks weigh, since the experts are spread over all.
        ranks = shape.attention_dp * (shape.cp if shape.moe_tp * shape.moe_ep > 1 else 1)
        found: dict[str, Any] = memory.estimate_kv_cache(
            identity.model,
            identity.sku,
            identity.backend,
            identity.data_version,
            max_num_tokens=tokens,
            max_batch_size=1,
            memory_fraction_kind=FRACTION_KIND[identity.backend],
            memory_fraction_value=fraction,
            tp_size=shape.tp,
            pp_size=shape.pp,
            attention_dp_size=ranks,
            moe_tp_size=shape.moe_tp,
            moe_ep_size=shape.moe_ep,
            gpu_memory_capacity_bytes_override=capacity_bytes,
            **self._performance.changed_modes(),
        )
        return found

    @contextmanager
    def _asking(self, what: str, reasons: Reasons = _DATA) -> Iterator[None]:
        with self._performance.guarded(f", shape {self.shape.label}, {what}", reasons):
            yield

    def _shares(self, entries: Iterable[tuple[Any, ...]]) -> SourceShares:
        return source_shares((OperatorTime(e[0], e[1], e[3]) for e in entries), self._borrowed)

    def _checked(self, times: list[float], what: str) -> list[float]:
        for time in times:
            if not (math.isfinite(time) and time > 0):
                raise Unsupported(
                    Reason.INVALID_DATA,
                    f"{self._identity.label}, shape {self.shape.label}, {what}: {time} is not a positive time",
                )
        return times


def _modes(config: Any) -> dict[str, Any]:  # noqa: ANN401
    """Formats set on a configuration, by the keyword that passes them."""
    keys = ("gemm_quant_mode", "moe_quant_mode", "kvcache_quant_mode", "fmha_quant_mode", "comm_quant_mode")
    return {key: mode.name for key in keys if (mode := getattr(config, key)) is not None}


def _formats(config: Any) -> dict[str, str]:  # noqa: ANN401
    """Formats of a configuration that a model was built with, by our names."""
    return {
        "gemm": config.gemm_quant_mode.name,
        "moe": config.moe_quant_mode.name,
        "kv": config.kvcache_quant_mode.name,
        "attention": config.fmha_quant_mode.name,
        "communication": config.comm_quant_mode.name,
    }


def _declares_fp8_attention(raw_config: dict[str, Any]) -> bool:
    """Whether the checkpoint's own formats mean FP8 attention, before any table is asked."""
    return (
        raw_config.get("quant_algo") in ("fp8", "fp8_block", "nvfp4") or raw_config.get("kv_cache_quant_algo") == "fp8"
    )
