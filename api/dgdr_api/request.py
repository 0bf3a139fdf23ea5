"""DynamoGraphDeploymentRequest: what a user asks for."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from dgdr_api.base import ApiModel
from dgdr_api.bounds import Name, Version
from dgdr_api.conditions import Conditions
from dgdr_api.group import API_VERSION, REQUEST_KIND, ApiVersion
from dgdr_api.hardware import Hardware
from dgdr_api.metadata import ObjectMeta
from dgdr_api.model_ref import ModelRef
from dgdr_api.objective import Objective
from dgdr_api.pod_texts import ImageReference
from dgdr_api.rules import Distinct, Rule, RuledModel
from dgdr_api.search_options import Overrides, Recommendation, Search
from dgdr_api.terms import BACKENDS, Backend, RoleKind
from dgdr_api.workload import Workload

RUNTIME_VERSION = r"^(0|[1-9][0-9]{0,3})[.](0|[1-9][0-9]{0,3})[.](0|[1-9][0-9]{0,3})$"

DataVersions = Annotated[
    dict[str, Version],
    Field(max_length=len(BACKENDS)),
    Rule(
        id="data-version-backend",
        cel="self.all(backend, backend in ['vllm', 'sglang', 'trtllm'])",
        message="keys are backends: vllm, sglang and trtllm",
        holds=lambda pins: all(backend in BACKENDS for backend in pins),
    ),
]


class Runtime(ApiModel):
    """The runtime image, whose version binds engine and performance data."""

    image: ImageReference
    """Runtime image that the deployment will run, e.g. nvcr.io/nvidia/ai-dynamo/sglang-runtime:1.3.1. With several
    backends the last path component is swapped for each (vllm-runtime, sglang-runtime, tensorrtllm-runtime)."""
    version_override: Annotated[str, Field(max_length=14, pattern=RUNTIME_VERSION)] | None = None
    """Dynamo version of the image, MAJOR.MINOR.PATCH. Parsed from the tag by default; required when the tag is no
    semantic version."""
    performance_data_version: DataVersions | None = None
    """Version of the performance data by backend, e.g. {vllm: 0.24.0}. By default the version of the engine in the
    image; another one is accepted and shown as VersionBound=False on every candidate."""


class Rerun(ApiModel):
    """Asks for another run of the same request."""

    reason: Annotated[str, Field(min_length=1, max_length=1024)]
    """Every new value requests one run."""


class SearchSpec(RuledModel):
    """What a request and its run have in common: the whole description of one search."""

    rules: ClassVar = (
        Rule(
            id="ratio-range-pareto",
            cel="!has(self.workload.static) || !has(self.workload.static.kvLoadRatioRange) || "
            "self.objective.mode == 'pareto'",
            message="kvLoadRatioRange needs objective.mode pareto",
            holds=lambda spec: spec.static_field("kv_load_ratio_range") is None or spec.objective.mode == "pareto",
            field=".workload.static.kvLoadRatioRange",
        ),
        Rule(
            id="saturated-static",
            cel="!has(self.workload.static) || !has(self.workload.static.saturated) || "
            "(has(self.search) && has(self.search.fidelity) && self.search.fidelity == 'static')",
            message="saturated needs search.fidelity static",
            holds=lambda spec: spec.static_field("saturated") is None or spec.search.fidelity == "static",
            field=".workload.static.saturated",
        ),
        Rule(
            id="saturated-min-gpus",
            cel="!has(self.workload.static) || !has(self.workload.static.saturated) || "
            "((!has(self.objective.metric) || self.objective.metric != 'minGpus') && "
            "(!has(self.objective.metrics) || !self.objective.metrics.exists(m, m == 'minGpus')))",
            message="minGpus needs a load; saturated asks for capacity",
            holds=lambda spec: spec.static_field("saturated") is None or "minGpus" not in spec.objective.named_metrics,
            field=".workload.static.saturated",
        ),
        Rule(
            id="trace-replay",
            cel="!has(self.workload.trace) || !has(self.search) || !has(self.search.fidelity) || "
            "self.search.fidelity == 'replay'",
            message="a trace needs search.fidelity replay",
            holds=lambda spec: spec.workload.trace is None or spec.search.fidelity == "replay",
            field=".workload.trace",
        ),
        Rule(
            id="prefill-sku-disagg",
            cel="!has(self.hardware.gpu.prefillSku) || !has(self.search) || !has(self.search.topologies) || "
            "self.search.topologies.exists(t, t == 'disagg')",
            message="prefillSku needs disagg in search.topologies",
            holds=lambda spec: spec.hardware.gpu.prefill_sku is None or "disagg" in spec.search.topologies,
            field=".hardware.gpu.prefillSku",
        ),
        Rule(
            id="decode-sku-disagg",
            cel="!has(self.hardware.gpu.decodeSku) || !has(self.search) || !has(self.search.topologies) || "
            "self.search.topologies.exists(t, t == 'disagg')",
            message="decodeSku needs disagg in search.topologies",
            holds=lambda spec: spec.hardware.gpu.decode_sku is None or "disagg" in spec.search.topologies,
            field=".hardware.gpu.decodeSku",
        ),
        Rule(
            id="encoder-sku",
            cel="!has(self.hardware.gpu.encoderSku) || (has(self.search) && has(self.search.encoder) && "
            "self.search.encoder != 'Inline')",
            message="encoderSku needs search.encoder Disaggregated or Both",
            holds=lambda spec: spec.hardware.gpu.encoder_sku is None or spec.search.encoder != "Inline",
            field=".hardware.gpu.encoderSku",
        ),
        Rule(
            id="encoder-images",
            cel="!has(self.search) || !has(self.search.encoder) || self.search.encoder == 'Inline' || "
            "(has(self.workload.static) && has(self.workload.static.images))",
            message="search.encoder Disaggregated or Both needs workload.static.images",
            holds=lambda spec: spec.search.encoder == "Inline" or spec.static_field("images") is not None,
            field=".search.encoder",
        ),
    )

    model_ref: ModelRef
    """The model to serve."""
    backends: Annotated[tuple[Backend, ...], Field(min_length=1, max_length=3), Distinct()]
    """Inference engines to search: vllm, sglang, trtllm."""
    image: ImageReference | None = None
    """Image of the search Job; the operator's own by default."""
    runtime: Runtime
    """The runtime image that the deployment will run."""
    hardware: Hardware
    """The hardware to plan for."""
    workload: Workload
    """The load to carry."""
    objective: Objective
    """What "best" means."""
    search: Search = Search()
    """How the search is done."""
    recommendation: Recommendation = Recommendation()
    """How many candidates are published."""
    overrides: Overrides = Overrides()
    """Changes to generated objects."""

    def static_field(self, name: str) -> object:
        """A field of the generated workload; None for a trace."""
        return None if self.workload.static is None else getattr(self.workload.static, name)

    @property
    def role_kinds(self) -> tuple[RoleKind, ...]:
        """The kinds of role that any candidate of this search may have."""
        kinds: list[RoleKind] = []
        if "agg" in self.search.topologies:
            kinds.append("agg")
        if "disagg" in self.search.topologies:
            kinds += ["prefill", "decode"]
        if self.search.encoder != "Inline":
            kinds.append("encode")
        return tuple(kinds)


class RequestSpec(SearchSpec):
    """What a user asks for."""

    rerun: Rerun | None = None
    """Asks for another run of the same request."""
    suspend: bool = False
    """true cancels the live run and starts none."""


class RunRef(ApiModel):
    """Names a run."""

    name: Name
    """Name of the run."""


class RequestStatus(ApiModel):
    """What became of a request."""

    observed_generation: Annotated[int, Field(ge=0)] | None = None
    """Generation that this status answers."""
    active_run_ref: RunRef | None = None
    """The run that is live."""
    recent_run_refs: Annotated[tuple[RunRef, ...], Field(max_length=10)] = ()
    """The last runs, newest first; older ones are deleted."""
    conditions: Conditions = ()
    """Accepted: whether the request became a run, or why not."""


class DynamoGraphDeploymentRequest(ApiModel):
    """Asks for the best deployments of a model on given GPUs under a given load.

    Each accepted generation starts one run; its candidates can be promoted to a DynamoGraphDeployment.
    """

    api_version: ApiVersion = API_VERSION
    """Group and version of this kind."""
    kind: Literal["DynamoGraphDeploymentRequest"] = REQUEST_KIND
    """This kind."""
    metadata: ObjectMeta
    """Name and identity of the object."""
    spec: RequestSpec
    """What is asked for."""
    status: RequestStatus | None = None
    """What became of it; written by the operator."""
