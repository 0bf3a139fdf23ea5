"""SmartSearchConfig: the search in the engine's own words, as `search.parameters` spells its keys.

Source of names and defaults: engine.md section 1; of the rate-matching constants: section 6.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from dgdr_api.errors import VersionChainBroken
from dgdr_api.expressible import WORKER_GPUS
from dgdr_api.shape import Shape
from dgdr_api.skus import resolve_sku
from dgdr_api.terms import BACKENDS, Backend, EncoderPlacement, Fidelity, Metric, RoleKind, Topology
from dgdr_api.versions import common_data_version
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from dgdr_job.catalog.images import Images
from dgdr_job.timing.corrections import DEFAULTS, Corrections

# Numbers are strict: a text or a truth value is never taken for one.
Count = Annotated[int, Field(strict=True, ge=1, le=2**31 - 1)]
Counts = Annotated[tuple[Count, ...], Field(min_length=1, max_length=64)]
Switches = Annotated[tuple[Annotated[bool, Field(strict=True)], ...], Field(min_length=1, max_length=2)]
Degree = Annotated[int, Field(strict=True, ge=1, le=65_536)]
Fraction = Annotated[float, Field(strict=True, gt=0, lt=1)]
Positive = Annotated[float, Field(strict=True, gt=0)]
Encoder = Literal["inline", "disaggregated", "both"]
Share = Annotated[float, Field(strict=True, gt=0, le=1)]
WorkerCount = Count | None
MAX_ENCODER_BATCH = 8
"""Requests that an encode worker takes at once at most: the default limit of the engines (SGLang
``SGLANG_ENCODER_MAX_BATCH_SIZE``)."""


class ConfigModel(BaseModel):
    """A part of the configuration: frozen, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


PLACEMENTS: dict[Encoder, tuple[EncoderPlacement, ...]] = {
    "inline": ("Inline",),
    "disaggregated": ("Disaggregated",),
    "both": ("Inline", "Disaggregated"),
}
"""Where images are encoded, in the branches of each choice."""


class Encode(ConfigModel):
    """Encode workers of a vision-language model. Only with an encoder that is not inline."""

    hardware_sku: str | None = None
    """GPU type of encode workers; absent: hardware_sku."""
    tp: Counts = (1, 2, 4, 8)
    """GPUs of one worker, over which the encoder's weights are split."""
    batch_size: Annotated[
        tuple[Annotated[int, Field(strict=True, ge=1, le=MAX_ENCODER_BATCH)], ...], Field(min_length=1, max_length=64)
    ] = (1, 2, 4, 8)
    """Requests whose images are encoded together. What the backend has no flag for makes no row: a batch above one
    has a flag in TensorRT-LLM only."""
    free_batch: Annotated[bool, Field(strict=True)] = False
    """Whether batches without a flag are searched all the same, to compare estimates: they cannot be rendered."""
    max_workers: WorkerCount = None
    latency_correction: Positive = DEFAULTS.encoder_latency
    """Factor on the time of a pass of an encode worker."""
    rate_degradation: Share = DEFAULTS.encoder_rate
    """Part of the encode workers' rate that matching counts on."""

    @field_validator("tp", "batch_size", mode="after")
    @classmethod
    def _ascending(cls, values: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(sorted(set(values)))


class ParallelConfig(ConfigModel):
    """One explicit parallel shape of a worker; what is left out is 1."""

    tp: Degree = 1
    """Attention tensor parallelism inside one data-parallel rank."""
    pp: Degree = 1
    """Pipeline parallelism."""
    attention_dp: Degree = 1
    """Attention data-parallel ranks."""
    moe_tp: Degree = 1
    """Tensor parallelism of the experts."""
    moe_ep: Degree = 1
    """Expert parallelism."""
    cp: Degree = 1
    """Context parallelism."""

    @property
    def shape(self) -> Shape:
        """The shape; a ValueError where experts do not fill the worker (`dgdr_job.search.explicit` says it better)."""
        return Shape(**self.model_dump())


class SearchSpace(ConfigModel):
    """What may be deployed. Lists are tried value by value, per role."""

    model_name: str
    """Hugging Face id, or a local directory with a config.json."""
    hardware_sku: str
    """GPU type of aggregated workers, and of every role that has none of its own."""
    prefill_hardware_sku: str | None = None
    """GPU type of prefill workers; absent: hardware_sku. Only with disagg among the modes."""
    decode_hardware_sku: str | None = None
    """GPU type of decode workers; absent: hardware_sku. Only with disagg among the modes."""
    deployment_mode: tuple[Topology, ...]
    backend: tuple[Backend, ...]
    backend_version: dict[Backend, str]
    """Performance-data version by backend, the same on every GPU type. One text is that of all backends; absent: the
    default version, which all GPU types must share."""
    gpu_budget: Annotated[int, Field(ge=1)] = 32
    """GPUs of one deployment, a hard cap."""
    gpu_budget_by_sku: dict[str, Count] = {}
    """Further hard caps by GPU type; roles on the same type share its cap."""
    min_gpu_budget: Annotated[int, Field(ge=1)] = 1
    context_length: int | None = None
    """Bound of the KV gate in tokens; absent: what the workload needs."""
    gpus_per_node: Count | None = None
    """GPUs per node of every GPU type; absent: those of the catalog."""
    gpus_per_worker: Counts = WORKER_GPUS
    """GPUs per worker that are tried."""
    parallel_configs: Annotated[tuple[ParallelConfig, ...], Field(min_length=1, max_length=64)] | None = None
    """Shapes of workers in place of all patterns; each is tried in every role that can have it."""
    max_prefill_workers: WorkerCount = None
    max_decode_workers: WorkerCount = None
    max_prefill_gpus: WorkerCount = None
    max_decode_gpus: WorkerCount = None
    prefill_max_num_batched_tokens: Counts = (8192, 16384, 32768)
    decode_max_num_batched_tokens: Counts = (8192,)
    agg_max_num_batched_tokens: Counts = (8192, 16384, 32768)
    prefill_max_num_seqs: Counts = (1, 2, 4, 8, 16, 32, 64, 128, 256)
    decode_max_num_seqs: Counts = (256, 512, 1024)
    agg_max_num_seqs: Counts = (256, 512, 1024)
    prefill_block_size: Counts | None = None
    """Absent: the backend's default, 64 tokens for vLLM, 1 for SGLang, 32 for TensorRT-LLM."""
    decode_block_size: Counts | None = None
    agg_block_size: Counts | None = None
    prefill_gpu_memory_utilization: Fraction | None = None
    """Absent: the backend's default for the data version."""
    decode_gpu_memory_utilization: Fraction | None = None
    agg_gpu_memory_utilization: Fraction | None = None
    prefill_enable_prefix_caching: Switches = (True,)
    decode_enable_prefix_caching: Switches = (False,)
    agg_enable_prefix_caching: Switches = (True,)
    encoder: Encoder = "inline"
    """Where images are encoded: in prefill or aggregated workers (inline), in workers of their own (disaggregated), or
    both are searched."""
    encode: Encode = Encode()

    @field_validator("gpus_per_worker", mode="after")
    @classmethod
    def _ascending(cls, values: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(sorted(set(values)))

    @model_validator(mode="before")
    @classmethod
    def _one_version_on_every_sku(cls, value: Any) -> Any:  # noqa: ANN401 - not validated yet
        """Write the version of each backend out, before any shape is looked up."""
        if not isinstance(value, Mapping) or isinstance(value.get("backend_version"), Mapping):
            return value
        asked, backends = value.get("backend_version"), value.get("backend", ())
        named = [value.get(name) for name in ("hardware_sku", "prefill_hardware_sku", "decode_hardware_sku")]
        encode = value.get("encode")
        named.append(encode.get("hardware_sku") if isinstance(encode, Mapping) else None)
        skus = [sku for sku in named if sku is not None]
        try:
            versions = {
                backend: asked or common_data_version(backend, skus) for backend in backends if backend in BACKENDS
            }
        except VersionChainBroken as error:
            raise ValueError(str(error)) from error
        return {**value, "backend_version": versions}

    @model_validator(mode="after")
    def _own_skus_need_roles(self) -> "SearchSpace":
        own = (self.prefill_hardware_sku, self.decode_hardware_sku)
        if "disagg" not in self.deployment_mode and any(sku is not None for sku in own):
            raise ValueError("prefill_hardware_sku and decode_hardware_sku need disagg in deployment_mode")
        return self

    @model_validator(mode="after")
    def _encode_needs_encode_workers(self) -> "SearchSpace":
        if self.encoder == "inline" and self.encode.model_fields_set:
            given = ", ".join(f"encode.{name}" for name in sorted(self.encode.model_fields_set))
            raise ValueError(f"{given} needs encoder disaggregated or both")
        return self

    @property
    def encoders(self) -> tuple[EncoderPlacement, ...]:
        """The places of the encoder that are searched, the inline one first."""
        return PLACEMENTS[self.encoder]

    @model_validator(mode="after")
    def _one_way_to_name_shapes(self) -> "SearchSpace":
        if self.parallel_configs is not None and "gpus_per_worker" in self.model_fields_set:
            raise ValueError("gpus_per_worker and parallel_configs exclude each other: leave one out")
        return self

    @property
    def explicit_shapes(self) -> tuple[Shape, ...] | None:
        """The listed shapes, each once; None: the patterns of engine.md section 3."""
        if self.parallel_configs is None:
            return None
        return tuple(dict.fromkeys(config.shape for config in self.parallel_configs))

    def sku_of(self, kind: RoleKind) -> str:
        """The GPU type of a role; aggregated workers always take ``hardware_sku``."""
        own = {
            "prefill": self.prefill_hardware_sku,
            "decode": self.decode_hardware_sku,
            "encode": self.encode.hardware_sku,
        }
        return own.get(kind) or self.hardware_sku

    def gpus_per_node_of(self, kind: RoleKind) -> int:
        """GPUs of one node of a role's GPU type."""
        return self.gpus_per_node or resolve_sku(self.sku_of(kind)).gpus_per_node


class ImageInput(ConfigModel):
    """The images of one request."""

    height: Count
    """Pixels."""
    width: Count
    """Pixels."""
    count: Count = 1

    @property
    def images(self) -> Images:
        """The same as the catalog takes it."""
        return Images(self.height, self.width, self.count)


class Workload(ConfigModel):
    """What is asked of the deployment. Exactly one of concurrency, request_rate, saturated and kv_load_ratios."""

    isl: Annotated[int, Field(ge=1)]
    """Input tokens of a request, those of its images apart."""
    osl: Annotated[int, Field(ge=1)]
    """Output tokens of a request."""
    concurrency: int | None = None
    request_rate: float | None = None
    """Requests per second."""
    saturated: bool = False
    kv_load_ratios: Annotated[tuple[Positive, ...], Field(max_length=5)] = ()
    """Concurrency as a share of what the KV cache of a deployment holds; several are a dimension of the pool."""
    images: ImageInput | None = None
    """Images of a request, for a vision-language model."""
    visual_tokens: Annotated[int, Field(ge=0)] = 0
    """Tokens that the images of a request add to its prompt: found from the model (`dgdr_job.search.visual`)."""

    @property
    def prompt_tokens(self) -> int:
        """Tokens of a request's prompt: isl and those of its images."""
        return self.isl + self.visual_tokens


class Sla(ConfigModel):
    """Bounds on means in milliseconds, inclusive."""

    ttft_ms: Positive | None = None
    itl_ms: Positive | None = None
    e2e_ms: Positive | None = None
    strict: bool = True
    """Whether a bound gates, or only shapes goodput."""


class Goal(ConfigModel):
    """What is best: one metric, or the front over two to four."""

    metrics: Annotated[tuple[Metric, ...], Field(min_length=1, max_length=4)]
    pareto: bool = False
    sla: Sla = Sla()
    gpu_cost_per_hour: dict[str, Positive] = {}
    """Price of one GPU by GPU type."""


class Sweep(ConfigModel):
    """How the search goes about it."""

    fidelity: Fidelity = "replay"
    seed: Annotated[int, Field(strict=True, ge=0, le=2**63 - 1)] = 42
    max_seconds: Positive | None = None
    """Longest search; what is known then is kept."""
    reserve: Annotated[int, Field(ge=1)] = 20
    """Candidates that are sent in order; the publisher takes the first that render."""


class RateMatching(ConfigModel):
    """Constants of the static estimate (engine.md section 6); `dgdr_job.timing.corrections` says what each is."""

    prefill_batches: Counts = (1,)
    """Prompts of one prefill pass, per attention data-parallel rank."""
    agg_ctx_tokens: Annotated[tuple[Count, ...], Field(max_length=64)] = ()
    """Prompt tokens of an aggregated pass that are tried besides the listed agg_max_num_batched_tokens; rendered is the
    budget that holds them and a token of each decoding sequence. A request that lists no budgets of its own gets 512,
    1024, 2048, 4096, isl and 2 isl."""
    prefill_latency: Positive = DEFAULTS.prefill_latency
    decode_latency: Positive = DEFAULTS.decode_latency
    prefill_rate: Share = DEFAULTS.prefill_rate
    decode_rate: Share = DEFAULTS.decode_rate
    disagg_ttft: Positive = DEFAULTS.disagg_ttft

    @property
    def corrections(self) -> Corrections:
        """The constants as timing takes them."""
        return Corrections(**self.model_dump(exclude={"prefill_batches", "agg_ctx_tokens"}))


class SmartSearchConfig(ConfigModel):
    """The whole configuration of one search."""

    search_space: SearchSpace
    workload: Workload
    goal: Goal
    sweep: Sweep = Sweep()
    rate_matching: RateMatching = RateMatching()

    @model_validator(mode="after")
    def _encode_workers_need_images(self) -> "SmartSearchConfig":
        if self.search_space.encoder != "inline" and self.workload.images is None:
            raise ValueError(f"search_space.encoder {self.search_space.encoder} needs workload.images")
        return self
