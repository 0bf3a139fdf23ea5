"""SmartSearchConfig: the search in the engine's own words, as `search.parameters` spells its keys.

Source of names and defaults: engine.md section 1; of the rate-matching constants: section 6.
"""

from collections.abc import Mapping
from typing import Annotated, Any

from dgdr_api.bounds import MAX_GPUS
from dgdr_api.errors import VersionChainBroken
from dgdr_api.expressible import WORKER_GPUS
from dgdr_api.skus import resolve_sku
from dgdr_api.terms import BACKENDS, Backend, Fidelity, Metric, RoleKind, Topology
from dgdr_api.versions import common_data_version
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from dgdr_job.timing.corrections import DEFAULTS, Corrections

# Numbers are strict: a text or a truth value is never taken for one.
Count = Annotated[int, Field(strict=True, ge=1, le=2**31 - 1)]
Counts = Annotated[tuple[Count, ...], Field(min_length=1, max_length=64)]
Switches = Annotated[tuple[Annotated[bool, Field(strict=True)], ...], Field(min_length=1, max_length=2)]
Fraction = Annotated[float, Field(strict=True, gt=0, lt=1)]
Positive = Annotated[float, Field(strict=True, gt=0)]
Share = Annotated[float, Field(strict=True, gt=0, le=1)]
WorkerCount = Count | None
WorkerGpus = Annotated[int, Field(strict=True, ge=1, le=MAX_GPUS)]


class ConfigModel(BaseModel):
    """A part of the configuration: frozen, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)


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
    gpus_per_worker: Annotated[tuple[WorkerGpus, ...], Field(min_length=1, max_length=64)] = WORKER_GPUS
    """GPUs per worker that are tried."""
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
        named = (value.get(name) for name in ("hardware_sku", "prefill_hardware_sku", "decode_hardware_sku"))
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

    def sku_of(self, kind: RoleKind) -> str:
        """The GPU type of a role; aggregated workers always take ``hardware_sku``."""
        own = {"prefill": self.prefill_hardware_sku, "decode": self.decode_hardware_sku}
        return own.get(kind) or self.hardware_sku

    def gpus_per_node_of(self, kind: RoleKind) -> int:
        """GPUs of one node of a role's GPU type."""
        return self.gpus_per_node or resolve_sku(self.sku_of(kind)).gpus_per_node


class Workload(ConfigModel):
    """What is asked of the deployment. Exactly one of concurrency, request_rate, saturated and kv_load_ratios."""

    isl: Annotated[int, Field(ge=1)]
    """Input tokens of a request."""
    osl: Annotated[int, Field(ge=1)]
    """Output tokens of a request."""
    concurrency: int | None = None
    request_rate: float | None = None
    """Requests per second."""
    saturated: bool = False
    kv_load_ratios: Annotated[tuple[Positive, ...], Field(max_length=5)] = ()
    """Concurrency as a share of what the KV cache of a deployment holds; several are a dimension of the pool."""


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
