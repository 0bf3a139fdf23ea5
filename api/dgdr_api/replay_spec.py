"""ReplaySpec: one deployment under one workload, complete enough to be scored alone.

The names of this document are used by other programs: fields may be added, those here keep name, place and unit.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, SerializationInfo, SerializerFunctionWrapHandler, model_serializer, model_validator

from dgdr_api.base import ApiModel
from dgdr_api.shape import Shape, total_gpus
from dgdr_api.terms import Backend, EncoderPlacement, RoleKind, Topology
from dgdr_api.workload import Images

Text = Annotated[str, Field(min_length=1, max_length=253)]
PositiveInt = Annotated[int, Field(ge=1, le=2**31 - 1)]
Milliseconds = Annotated[float, Field(ge=0)]
Weight = Annotated[float, Field(ge=0, le=1e6)]

ROLES_OF_TOPOLOGY: dict[Topology, tuple[RoleKind, ...]] = {"agg": ("agg",), "disagg": ("prefill", "decode")}


def _with_nulls(made: dict[str, Any], info: SerializationInfo, *names: str) -> dict[str, Any]:
    """Put back the names that every reader of the document finds, with null where nothing is set.

    Objects of the contract leave out what is null (`dgdr_api.base.wire`); this document names it.
    """
    if not info.exclude_none or info.exclude_unset:
        return made
    return made | {name: None for name in names if name not in made}


class Quantization(ApiModel):
    """The number formats that the performance data was read for, by the names of the performance model."""

    gemm: Text
    """Dense matrix products."""
    moe: Text
    """Expert matrix products; the gemm format for a dense model."""
    kv: Text
    """KV cache."""
    attention: Text
    """Attention of the context phase."""
    communication: Text
    """Collectives."""


class Engine(ApiModel):
    """The limits of one engine, per attention data-parallel rank."""

    max_num_seqs: PositiveInt
    """Sequences that run at once."""
    max_num_batched_tokens: PositiveInt
    """Tokens of one pass."""
    block_size: PositiveInt
    """Tokens of one KV block."""
    num_gpu_blocks: PositiveInt
    """KV blocks."""
    max_sequence_length: PositiveInt
    """Prompt plus output tokens of the longest request, the bound of the KV gate."""
    enable_prefix_caching: bool
    """Whether full blocks are kept for later requests."""
    enable_chunked_prefill: bool = True
    """Whether a prompt may be split over passes."""
    preemption: Literal["newest", "oldest"] = "newest"
    """Which running sequence gives way when blocks run out."""


class FixedTiming(ApiModel):
    """Every pass takes the same time."""

    type: Literal["fixed"] = "fixed"
    prefill_ms: Milliseconds
    """Milliseconds of the prefill term of a pass that has one."""
    decode_ms: Milliseconds
    """Milliseconds of the decode term of a pass that has one."""


class PolynomialTiming(ApiModel):
    """The public default polynomial of Dynamo's mocker."""

    type: Literal["polynomial"] = "polynomial"


class TableTiming(ApiModel):
    """Times from an npz file, linear between its points."""

    type: Literal["table"] = "table"
    path: Annotated[str, Field(min_length=1, max_length=4096)]
    """File with prefill_tokens, prefill_ms, decode_batch, decode_context and decode_ms[batch, context]."""


class PerformanceDataTiming(ApiModel):
    """Times from measured silicon: the performance identity of a role."""

    type: Literal["performanceData"] = "performanceData"
    model: Text
    sku: Text
    backend: Backend
    version: Text
    """Version of the performance data."""
    shape: Shape
    quantization: Quantization


Timing = Annotated[FixedTiming | PolynomialTiming | TableTiming | PerformanceDataTiming, Field(discriminator="type")]


class Role(ApiModel):
    """All workers of one kind: what they are and how many."""

    kind: RoleKind
    workers: PositiveInt
    """Replicas of the worker."""
    gpus_per_worker: PositiveInt
    """GPUs of one worker: the count of ``shape``."""
    backend: Backend
    sku: Text
    """GPU type of the role, by its canonical name."""
    engine_version: Text
    """Version of the engine that the runtime image carries."""
    data_version: Text
    """Version of the performance data that timed the role."""
    shape: Shape
    quantization: Quantization
    memory_fraction: Annotated[float, Field(gt=0, le=1)]
    """Share of GPU memory given to the engine, in the backend's own sense."""
    nextn: Annotated[int, Field(ge=0, le=5)] = 0
    """Draft tokens of multi-token prediction."""
    engine: Engine

    @model_validator(mode="after")
    def _one_gpu_count(self) -> "Role":
        if self.gpus_per_worker != self.shape.gpus:
            raise ValueError(
                f"gpusPerWorker = {self.gpus_per_worker}, but the shape {self.shape.label} takes {self.shape.gpus} GPUs"
            )
        return self


class ReplayRole(Role):
    """A role with the source of its pass times."""

    timing: Timing


class KvTransfer(ApiModel):
    """How KV moves from prefill to decode workers."""

    bandwidth_gb_per_s: Annotated[float | None, Field(gt=0, alias="bandwidthGBps")] = None
    """Link bandwidth in GB/s; absent: the transfer is free."""
    bytes_per_token: Annotated[int | None, Field(ge=1)] = None
    latency_ms: Milliseconds = 0.0
    mode: Literal["fullPrompt", "destinationMissing"] = "fullPrompt"
    """Whether tokens that the destination already caches move too."""
    contention: bool = False
    """Whether transfers share the link."""

    @model_serializer(mode="wrap")
    def _written(self, write: SerializerFunctionWrapHandler, info: SerializationInfo) -> dict[str, Any]:
        return _with_nulls(write(self), info, "bandwidthGBps", "bytesPerToken")


class PrefillLoadModel(ApiModel):
    """How the router estimates prefill work."""

    type: Literal["none", "performanceData"] = "none"
    """none (default): by tokens. performanceData: by the time that performance data says."""
    sku: Text | None = None
    """The effective prefill SKU, when the model reads performance data."""


class Router(ApiModel):
    """How requests find a worker."""

    mode: Literal["roundRobin", "kv"] = "roundRobin"
    """roundRobin (default): workers in turn. kv: the worker with the least work, cached blocks considered."""
    overlap_credit: Weight = 1.0
    """Weight of cached blocks; 1.0 by default. Mode kv."""
    prefill_load_scale: Weight = 1.0
    """Weight of prefill work that waits; 1.0 by default. Mode kv."""
    temperature: Annotated[float, Field(ge=0, le=0)] = 0.0
    """Only 0: the cheapest worker, ties by its index."""
    prefill_load_model: PrefillLoadModel = PrefillLoadModel()
    """How prefill work is estimated. Mode kv."""


class Planner(ApiModel):
    """How worker counts follow the load."""

    mode: Literal["throughput", "load", "sla"]
    """What it scales by: measured throughput, present load, or the latency targets."""
    throughput_interval_seconds: PositiveInt = 180
    """Seconds between decisions by throughput; 180 by default."""
    load_interval_seconds: PositiveInt = 5
    """Seconds between decisions by load; 5 by default."""
    prefill_min_workers: PositiveInt | None = None
    """Fewest prefill workers."""
    prefill_max_workers: PositiveInt | None = None
    """Most prefill workers."""
    decode_min_workers: PositiveInt | None = None
    """Fewest decode workers."""
    decode_max_workers: PositiveInt | None = None
    """Most decode workers."""
    startup_seconds: Annotated[float, Field(ge=0, le=1e6)] = 0.0
    """Seconds until a started worker serves; 0 by default."""
    load_predictor: Annotated[str, Field(min_length=1, max_length=63)] | None = None
    """Predictor of the load, by its name in the planner."""


class ReplaySla(ApiModel):
    """Bounds in milliseconds, inclusive; absent: no bound."""

    ttft_ms: Annotated[float | None, Field(gt=0)] = None
    itl_ms: Annotated[float | None, Field(gt=0)] = None
    e2e_ms: Annotated[float | None, Field(gt=0)] = None

    @model_serializer(mode="wrap")
    def _written(self, write: SerializerFunctionWrapHandler, info: SerializationInfo) -> dict[str, Any]:
        return _with_nulls(write(self), info, "ttftMs", "itlMs", "e2eMs")


class ReplayStaticWorkload(ApiModel):
    """A generated workload. Exactly one of concurrency, requestRate and saturated gives the load."""

    isl: PositiveInt
    """Input tokens of a request."""
    osl: PositiveInt
    """Output tokens of a request."""
    concurrency: PositiveInt | None = None
    """Requests in flight, held constant."""
    request_rate: Annotated[float | None, Field(gt=0)] = None
    """Requests per second."""
    saturated: Literal[True] | None = None
    """Capacity itself is asked for (static fidelity only)."""
    arrival: Literal["constant", "poisson"] = "poisson"
    """Arrival process of a request rate."""
    requests: PositiveInt | None = None
    """Requests in all, warm-up included; absent for a static estimate, which counts none."""
    warmup_requests: Annotated[int, Field(ge=0)] = 0
    """Requests left out of the metrics."""
    length_spread: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Lengths are drawn from [spread * n, n]."""
    shared_prefix_ratio: Annotated[float, Field(ge=0, le=1)] = 0.0
    prefix_groups: Annotated[int, Field(ge=0)] = 0
    turns_per_session: PositiveInt = 1
    inter_turn_delay_ms: Milliseconds = 0.0
    turn_history: Literal["fresh", "accumulate"] = "fresh"
    images: Images | None = None
    """Images that come with each request."""

    @model_serializer(mode="wrap")
    def _written(self, write: SerializerFunctionWrapHandler, info: SerializationInfo) -> dict[str, Any]:
        return _with_nulls(write(self), info, "concurrency", "requests")


class ReplayTraceWorkload(ApiModel):
    """A recorded workload."""

    path: Annotated[str, Field(min_length=1, max_length=4096)]
    format: Annotated[str, Field(max_length=63)] = "mooncake"
    block_size: PositiveInt = 512
    """Tokens of one block hash of the trace."""
    arrival_speedup_ratio: Annotated[float, Field(gt=0)] = 1.0
    concurrency: PositiveInt | None = None


class ReplayWorkload(ApiModel):
    """Exactly one of static and trace."""

    static: ReplayStaticWorkload | None = None
    trace: ReplayTraceWorkload | None = None

    @model_validator(mode="after")
    def _exactly_one(self) -> "ReplayWorkload":
        if (self.static is None) == (self.trace is None):
            raise ValueError("give exactly one of static and trace")
        return self


class ReplaySpec(ApiModel):
    """Everything that a score depends on."""

    api_version: Literal["dgdr/v1"] = "dgdr/v1"
    kind: Literal["ReplaySpec"] = "ReplaySpec"
    topology: Topology
    encoder: EncoderPlacement = "Inline"
    seed: Annotated[int, Field(ge=0, le=2**63 - 1)] = 42
    roles: Annotated[tuple[ReplayRole, ...], Field(min_length=1, max_length=3)]
    """One role of kind agg, or prefill and decode; with a disaggregated encoder also encode."""
    kv_transfer: KvTransfer = KvTransfer()
    router: Router = Router()
    planner: Planner | None = None
    host_overhead_ms: Milliseconds = 0.0
    """Time that the data leaves out, added to every pass."""
    workload: ReplayWorkload
    sla: ReplaySla = ReplaySla()

    @model_validator(mode="after")
    def _roles_of_the_topology(self) -> "ReplaySpec":
        check_roles(self.topology, self.encoder, self.roles)
        return self

    @model_serializer(mode="wrap")
    def _written(self, write: SerializerFunctionWrapHandler, info: SerializationInfo) -> dict[str, Any]:
        return _with_nulls(write(self), info, "planner")

    @property
    def used_gpus(self) -> int:
        """GPUs of the whole deployment."""
        return total_gpus((role.workers, role.shape) for role in self.roles)


def check_roles(topology: Topology, encoder: EncoderPlacement, roles: tuple[Role, ...]) -> None:
    """Raise ValueError unless the kinds of the roles are exactly those of the topology, in its order."""
    expected = ROLES_OF_TOPOLOGY[topology] + (("encode",) if encoder == "Disaggregated" else ())
    found = tuple(role.kind for role in roles)
    if found != expected:
        raise ValueError(f"roles are {', '.join(found)}; {topology} with encoder {encoder} has {', '.join(expected)}")


def roles_text(roles: Sequence[Role]) -> str:
    """The roles in one line, e.g. ``11 x prefill tp1, 2 x decode tp2``; with their GPU types where these differ."""
    mixed = len({role.sku for role in roles}) > 1
    return ", ".join(
        f"{role.workers} x {role.kind} {role.shape.label}{f' on {role.sku}' if mixed else ''}" for role in roles
    )
