"""SmartSearchConfig: the search in the engine's own words, as `search.parameters` spells its keys.

Source of names and defaults: engine.md section 1; of the rate-matching constants: section 6.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

from dgdr_api.bounds import INT32_MAX, MAX_GPUS, MAX_NUMBER
from dgdr_api.errors import UnknownSku, VersionChainBroken
from dgdr_api.expressible import WORKER_GPUS
from dgdr_api.replay_spec import Planner, Router
from dgdr_api.shape import Shape
from dgdr_api.skus import resolve_sku
from dgdr_api.terms import BACKENDS, TOPOLOGIES, Backend, EncoderPlacement, Fidelity, Metric, RoleKind, Topology
from dgdr_api.versions import common_data_version
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema, field_validator, model_validator

from dgdr_job.catalog.images import Images
from dgdr_job.timing.corrections import DEFAULTS, Corrections

T = TypeVar("T")


def _sku(name: str) -> str:
    try:
        return resolve_sku(name).name
    except UnknownSku as error:
        raise ValueError(str(error)) from error


def _each_once(values: tuple[T, ...]) -> tuple[T, ...]:
    if len(set(values)) < len(values):
        raise ValueError("no value may be given twice")
    return values


def _in_order(values: tuple[T, ...], vocabulary: tuple[T, ...]) -> tuple[T, ...]:
    return tuple(value for value in vocabulary if value in _each_once(values))


# Numbers are strict: a text or a truth value is never taken for one.
Count = Annotated[int, Field(strict=True, ge=1, le=INT32_MAX)]
Gpus = Annotated[int, Field(strict=True, ge=1, le=MAX_GPUS)]
Counts = Annotated[tuple[Count, ...], Field(min_length=1, max_length=64)]
Switches = Annotated[tuple[Annotated[bool, Field(strict=True)], ...], Field(min_length=1, max_length=2)]
Degree = Annotated[int, Field(strict=True, ge=1, le=65_536)]
Fraction = Annotated[float, Field(strict=True, gt=0, lt=1)]
Positive = Annotated[float, Field(strict=True, gt=0, le=MAX_NUMBER)]
Encoder = Literal["inline", "disaggregated", "both"]
Share = Annotated[float, Field(strict=True, gt=0, le=1)]
WorkerCount = Count | None
MAX_ENCODER_BATCH = 8
"""Requests that an encode worker takes at once at most: the default limit of the engines (SGLang
``SGLANG_ENCODER_MAX_BATCH_SIZE``)."""
SkuName = Annotated[str, AfterValidator(_sku)]
"""A GPU type by its canonical name; its aliases are taken."""
Text = Annotated[str, Field(min_length=1)]


_VERSION_SCHEMA = {
    "anyOf": [{"type": "string"}, {"type": "object", "additionalProperties": {"type": "string"}}, {"type": "null"}]
}


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

    hardware_sku: SkuName | None = None
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
    """Most encode workers."""
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
    def gpus(self) -> int:
        """GPUs of one worker, legal or not: `Shape.gpus`."""
        return self.tp * self.pp * self.attention_dp * self.cp

    @property
    def shape(self) -> Shape:
        """The shape; a ValueError where experts do not fill the worker (`dgdr_job.search.explicit` says it better)."""
        return Shape(**self.model_dump())


class SearchSpace(ConfigModel):
    """What may be deployed. Lists are tried value by value, per role."""

    model_name: Text
    """Hugging Face id or name."""
    model_config_path: Text | None = None
    """Local directory with the config.json of a model that is not shipped; nothing is downloaded."""
    hardware_sku: SkuName
    """GPU type of aggregated workers, and of every role that has none of its own."""
    prefill_hardware_sku: SkuName | None = None
    """GPU type of prefill workers; absent: hardware_sku. Only with disagg among the modes."""
    decode_hardware_sku: SkuName | None = None
    """GPU type of decode workers; absent: hardware_sku. Only with disagg among the modes."""
    deployment_mode: Annotated[tuple[Topology, ...], Field(min_length=1)] = TOPOLOGIES
    """Topologies; both by default."""
    backend: Annotated[tuple[Backend, ...], Field(min_length=1)] = ("vllm",)
    """Inference engines."""
    backend_version: Annotated[dict[Backend, Text], WithJsonSchema(_VERSION_SCHEMA)] = {}
    """Performance-data version by backend, the same on every GPU type. One text is that of all backends; absent: the
    default version, which all GPU types must share."""
    gpu_budget: Gpus = 32
    """GPUs of one deployment, a hard cap."""
    gpu_budget_by_sku: dict[SkuName, Gpus] = {}
    """Further hard caps by GPU type; roles on the same type share its cap."""
    min_gpu_budget: Gpus = 1
    """Fewest GPUs of one deployment."""
    context_length: Count | None = None
    """Bound of the KV gate in tokens; absent: what the workload needs."""
    gpus_per_node: Gpus | None = None
    """GPUs per node of every GPU type; absent: those of the catalog."""
    gpus_per_worker: Annotated[tuple[Gpus, ...], Field(min_length=1, max_length=64)] = WORKER_GPUS
    """GPUs per worker that are tried."""
    parallel_configs: Annotated[tuple[ParallelConfig, ...], Field(min_length=1, max_length=64)] | None = None
    """Shapes of workers in place of all patterns; each is tried in every role that can have it."""
    max_prefill_workers: WorkerCount = None
    """Cap on the prefill workers of a disaggregated deployment."""
    max_decode_workers: WorkerCount = None
    """Cap on its decode workers."""
    max_prefill_gpus: WorkerCount = None
    """Cap on the GPUs of its prefill workers."""
    max_decode_gpus: WorkerCount = None
    """Cap on the GPUs of its decode workers."""
    prefill_max_num_batched_tokens: Counts = (8192, 16384, 32768)
    """Tokens of one pass of prefill workers, per attention data-parallel rank."""
    decode_max_num_batched_tokens: Counts = (8192,)
    """Tokens of one pass of decode workers, per attention data-parallel rank."""
    agg_max_num_batched_tokens: Counts = (8192, 16384, 32768)
    """Tokens of one pass of aggregated workers, per attention data-parallel rank."""
    prefill_max_num_seqs: Counts = (1, 2, 4, 8, 16, 32, 64, 128, 256)
    """Sequences that run at once in prefill workers, per attention data-parallel rank."""
    decode_max_num_seqs: Counts = (256, 512, 1024)
    """Sequences that run at once in decode workers, per attention data-parallel rank."""
    agg_max_num_seqs: Counts = (256, 512, 1024)
    """Sequences that run at once in aggregated workers, per attention data-parallel rank."""
    prefill_block_size: Counts | None = None
    """Absent: the backend's default, 64 tokens for vLLM, 1 for SGLang, 32 for TensorRT-LLM."""
    decode_block_size: Counts | None = None
    """Tokens of one KV block of decode workers; absent: the backend's default."""
    agg_block_size: Counts | None = None
    """Tokens of one KV block of aggregated workers; absent: the backend's default."""
    prefill_gpu_memory_utilization: Fraction | None = None
    """Absent: the backend's default for the data version."""
    decode_gpu_memory_utilization: Fraction | None = None
    """Share of GPU memory of decode workers; absent: the backend's default."""
    agg_gpu_memory_utilization: Fraction | None = None
    """Share of GPU memory of aggregated workers; absent: the backend's default."""
    prefill_enable_prefix_caching: Switches = (True,)
    """Whether prefill workers keep full blocks for later requests."""
    decode_enable_prefix_caching: Switches = (False,)
    """Whether decode workers keep full blocks for later requests."""
    agg_enable_prefix_caching: Switches = (True,)
    """Whether aggregated workers keep full blocks for later requests."""
    kv_transfer_bandwidth: Positive | None = None
    """GB/s of the link over which KV moves from prefill to decode workers; absent: the transfer is free."""
    nextn: Annotated[int, Field(strict=True, ge=1, le=5)] | None = None
    """Draft tokens of multi-token prediction; absent: none."""
    encoder: Encoder = "inline"
    """Where images are encoded: in prefill or aggregated workers (inline), in workers of their own (disaggregated), or
    both are searched."""
    encode: Encode = Encode()
    """Encode workers. Only with an encoder that is not inline."""

    @field_validator("deployment_mode", mode="after")
    @classmethod
    def _topologies(cls, values: tuple[Topology, ...]) -> tuple[Topology, ...]:
        return _in_order(values, TOPOLOGIES)

    @field_validator("backend", mode="after")
    @classmethod
    def _backends(cls, values: tuple[Backend, ...]) -> tuple[Backend, ...]:
        return _in_order(values, BACKENDS)

    @field_validator("gpus_per_worker", mode="after")
    @classmethod
    def _ascending(cls, values: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(sorted(set(values)))

    @model_validator(mode="before")
    @classmethod
    def _one_version_on_every_sku(cls, value: Any) -> Any:  # noqa: ANN401 - not validated yet
        """Write the version of each backend out, before any shape is looked up."""
        if not isinstance(value, Mapping):
            return value
        asked = value.get("backend_version")
        if asked is not None and not isinstance(asked, str | Mapping):
            raise ValueError("backend_version must be a version, or versions by backend")
        return {**value, "backend_version": _data_versions(value, asked)}

    @model_validator(mode="after")
    def _own_skus_need_roles(self) -> "SearchSpace":
        for name in ("prefill_hardware_sku", "decode_hardware_sku"):
            if getattr(self, name) is not None and "disagg" not in self.deployment_mode:
                raise ValueError(f"{name} needs disagg in deployment_mode")
        return self

    @model_validator(mode="after")
    def _encode_needs_encode_workers(self) -> "SearchSpace":
        plain = Encode()
        given = [name for name in Encode.model_fields if getattr(self.encode, name) != getattr(plain, name)]
        if self.encoder == "inline" and given:
            names = ", ".join(f"encode.{name}" for name in given)
            raise ValueError(f"{names} needs encoder disaggregated or both")
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

    @property
    def worker_widths(self) -> tuple[int, ...]:
        """GPUs of one worker that are tried, ascending."""
        configs = self.parallel_configs
        return self.gpus_per_worker if configs is None else tuple(sorted({config.gpus for config in configs}))

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

    height: Annotated[int, Field(strict=True, ge=1, le=65_536)]
    """Pixels."""
    width: Annotated[int, Field(strict=True, ge=1, le=65_536)]
    """Pixels."""
    count: Annotated[int, Field(strict=True, ge=1, le=1_024)] = 1
    """Images of a request."""

    @property
    def images(self) -> Images:
        """The same as the catalog takes it."""
        return Images(self.height, self.width, self.count)


class Workload(ConfigModel):
    """What is asked of the deployment. Exactly one of concurrency, request_rate, saturated and kv_load_ratios."""

    isl: Count
    """Input tokens of a request, those of its images apart."""
    osl: Count
    """Output tokens of a request."""
    concurrency: Count | None = None
    """Requests in flight."""
    request_rate: Positive | None = None
    """Requests per second."""
    saturated: Annotated[bool, Field(strict=True)] = False
    """Capacity itself is asked for."""
    kv_load_ratios: Annotated[tuple[Positive, ...], Field(max_length=5)] = ()
    """Concurrency as a share of what the KV cache of a deployment holds; several are a dimension of the pool."""
    images: ImageInput | None = None
    """Images of a request, for a vision-language model."""
    visual_tokens: Annotated[int, Field(ge=0, exclude=True)] = 0
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
    strict: Annotated[bool, Field(strict=True)] = True
    """Whether a bound gates, or only shapes goodput."""


class Goal(ConfigModel):
    """What is best: one metric, or the front over two to four."""

    metrics: Annotated[tuple[Metric, ...], Field(min_length=1, max_length=4), AfterValidator(_each_once)]
    """The metric that is best, or two to four of a front."""
    pareto: Annotated[bool, Field(strict=True)] = False
    """Whether the front is asked for, or the best by the one metric."""
    sla: Sla = Sla()
    """Latency bounds."""
    gpu_cost_per_hour: dict[SkuName, Positive] = {}
    """Price of one GPU by GPU type."""


class Sweep(ConfigModel):
    """How the search goes about it."""

    fidelity: Fidelity = "replay"
    """How closely candidates are evaluated. static: rate matching only."""
    seed: Annotated[int, Field(strict=True, ge=0, le=2**63 - 1)] = 42
    """Of every random draw; a static search has none."""
    max_seconds: Positive | None = None
    """Longest search; what is known then is kept."""
    max_rounds: Count | None = None
    """Rounds per branch; absent: until the whole pool is evaluated. A static search is one round."""
    candidates_per_round: Count | None = None
    """Candidates of one round; absent: the whole pool."""
    parallel_evals: Count | None = None
    """Evaluations at the same time, at most; absent: the number of cores. A static search makes one after another."""
    max_eval_seconds: Positive = 600.0
    """Longest evaluation of one candidate. A static one takes microseconds."""
    max_trials: Count | None = None
    """Evaluations in all; absent: no limit."""
    strategy: Literal["auto", "exhaustive", "guided"] = "auto"
    """exhaustive: the whole pool. guided: best bound first. auto: exhaustive wherever that fits the time."""
    reserve: Annotated[int, Field(strict=True, ge=1, le=200)] = 20
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
    """Factor on the time of a prefill pass."""
    decode_latency: Positive = DEFAULTS.decode_latency
    """Factor on the time of a decode step."""
    prefill_rate: Share = DEFAULTS.prefill_rate
    """Share of the prefill rate that is kept."""
    decode_rate: Share = DEFAULTS.decode_rate
    """Share of the decode rate that is kept."""
    disagg_ttft: Positive = DEFAULTS.disagg_ttft
    """Factor on the prefill latency for requests that queue, disaggregated."""

    @property
    def corrections(self) -> Corrections:
        """The constants as timing takes them."""
        return Corrections(**self.model_dump(exclude={"prefill_batches", "agg_ctx_tokens"}))


class Adapters(ConfigModel):
    """What stands around the engines, in the words of the request's search.router and search.planner."""

    router: Annotated[tuple[Router, ...], Field(min_length=1, max_length=16)] = (Router(),)
    """Router choices, each a dimension of the pool."""
    planner: Planner | None = None
    """A planner that changes worker counts with the load."""


class Runtime(ConfigModel):
    """The image that what is found will run.

    Absent: the known Dynamo runtime that carries exactly the engines of the data, where there is one; else nothing is
    rendered.
    """

    image: Text
    """Runtime image, e.g. nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.4.2."""
    version_override: Text | None = None
    """Dynamo version of the image, where its tag does not say it."""


class SmartSearchConfig(ConfigModel):
    """The whole configuration of one search."""

    search_space: SearchSpace
    """What may be deployed."""
    workload: Workload
    """What is asked of the deployment."""
    goal: Goal
    """What is best."""
    sweep: Sweep = Sweep()
    """How the search goes about it."""
    adapters: Adapters = Adapters()
    """Router and planner."""
    rate_matching: RateMatching = RateMatching()
    """Constants of the static estimate."""
    runtime: Runtime | None = None
    """The image that what is found will run."""

    @model_validator(mode="after")
    def _encode_workers_need_images(self) -> "SmartSearchConfig":
        if self.search_space.encoder != "inline" and self.workload.images is None:
            raise ValueError(f"search_space.encoder {self.search_space.encoder} needs workload.images")
        return self


def _data_versions(space: Mapping[str, Any], asked: str | Mapping[str, Any] | None) -> dict[str, Any]:
    """The data version of each backend: the one that is given, or the default that all GPU types share.

    Backends and GPU types that do not exist are passed over; their fields are refused for themselves.

    Raises:
        ValueError: the defaults of the GPU types differ, or one has no data.
    """
    listed = space.get("backend", SearchSpace.model_fields["backend"].default)
    backends = [backend for backend in BACKENDS if isinstance(listed, list | tuple) and backend in listed]
    given: dict[str, Any] = {**dict.fromkeys(backends, asked)} if isinstance(asked, str) else dict(asked or {})
    encode = space.get("encode")
    own = encode.get("hardware_sku") if isinstance(encode, Mapping) else None
    names = ("hardware_sku", "prefill_hardware_sku", "decode_hardware_sku")
    named = [sku for sku in (*(space.get(name) for name in names), own) if isinstance(sku, str)]
    try:
        skus = [resolve_sku(name).name for name in named]
        for backend in backends:
            if skus and backend not in given:
                given[backend] = common_data_version(backend, skus)
    except UnknownSku:
        return given
    except VersionChainBroken as error:
        raise ValueError(str(error)) from error
    return given
