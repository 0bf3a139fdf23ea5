"""DynamoGraphDeploymentRun: one search, with everything it was asked and how far it is."""

from typing import Annotated, Literal

from pydantic import Field

from dgdr_api.base import ApiModel
from dgdr_api.bounds import Count, Label, LargeCount, Line, Name, Time, Version
from dgdr_api.candidate import Shares
from dgdr_api.conditions import Conditions
from dgdr_api.events import Counters
from dgdr_api.group import API_VERSION, RUN_KIND, ApiVersion
from dgdr_api.metadata import ObjectMeta
from dgdr_api.request import SearchSpec
from dgdr_api.terms import Backend, Topology

MAX_BRANCHES = 16
MAX_VERSIONS = 9
MAX_CANDIDATES = 50

Phase = Literal["Pending", "Running", "Succeeded", "Failed"]


class RunSpec(SearchSpec):
    """A request's spec with every default explicit, without suspend and rerun. It never changes."""


class JobRef(ApiModel):
    """The Job of the run."""

    name: Name
    """Name of the Job."""
    uid: Label | None = None
    """Uid of the Job."""


class RunOutcome(ApiModel):
    """How the search ended, as the sweeper reported it."""

    reason: Label
    """One of the reasons of Completed=True."""
    message: Line = ""
    """What happened, for a reader."""
    time: Time
    """When."""


class Rounds(ApiModel):
    """Rounds of a branch."""

    completed: LargeCount
    """Rounds that are done."""
    total: LargeCount
    """Rounds that are planned."""


class BranchProgress(ApiModel):
    """How far one branch is."""

    name: Label
    """Backend and topology, e.g. vllm/disagg."""
    rounds: Rounds
    """Rounds of the branch."""
    pool: LargeCount
    """Points of the branch."""


class CandidateCounts(ApiModel):
    """Candidates by what became of them."""

    pareto_front: LargeCount = 0
    """Points on the front, before thinning; 0 in mode optimize."""
    published: LargeCount = 0
    """Candidates in the cluster."""
    unrenderable: LargeCount = 0
    """Points that could not be rendered or did not verify."""


class Progress(ApiModel):
    """How far the search is."""

    summary: Annotated[str, Field(max_length=63)] = ""
    """Evaluated of pool, e.g. 120/340."""
    branches: Annotated[
        tuple[BranchProgress, ...],
        Field(
            max_length=MAX_BRANCHES,
            json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
        ),
    ] = ()
    """Each branch: a backend and a topology."""
    evaluations: Counters = Counters()
    """Evaluations by state."""
    candidates: CandidateCounts = CandidateCounts()
    """Candidates by what became of them."""
    proven_best: bool = False
    """Whether nothing in the pool can be better than the first candidate."""
    eta_seconds: Annotated[float, Field(ge=0, le=1e9)] | None = None
    """Seconds that the rest will take, estimated."""


class Best(ApiModel):
    """The best candidate so far; in mode pareto the knee."""

    score: float
    """Its score, higher is better."""
    display: Annotated[str, Field(max_length=63)]
    """The score rounded, with its unit."""
    used_gpus: Count
    """GPUs that it takes."""
    mode: Topology
    """Its topology."""
    backend: Backend
    """Its backend."""
    summary: Annotated[str, Field(max_length=512)] = ""
    """The deployment in one line."""


class CandidateRef(ApiModel):
    """Names a candidate."""

    name: Name
    """Name of the candidate."""


class BoundVersion(ApiModel):
    """The version chain of one backend on one GPU type."""

    backend: Backend
    """Backend."""
    sku: Label
    """GPU type."""
    runtime: Version
    """Dynamo version of the image."""
    engine: Version
    """Engine version in the image."""
    performance_data: Version
    """Version of the data that timed the candidates."""
    renderer: Version | None = None
    """Template version that rendered them."""


class Provenance(ApiModel):
    """What the result was made with."""

    sweeper_version: Version | None = None
    """Version of the sweeper."""
    performance_model_version: Version | None = None
    """Version of the performance model."""
    seed: Annotated[int, Field(ge=0, le=2**63 - 1)] | None = None
    """Seed of every random draw."""
    data: Shares | None = None
    """Shares of time by the origin of the performance data, over the published candidates."""


class RunStatus(ApiModel):
    """How far the run is and what it found."""

    phase: Phase | None = None
    """One word for a reader; the conditions are exact."""
    conditions: Conditions = ()
    """Supported, VersionBound, Published and Completed."""
    job_ref: JobRef | None = None
    """The Job that searches."""
    outcome: RunOutcome | None = None
    """How the search ended, once it has."""
    progress: Progress | None = None
    """How far the search is."""
    best: Best | None = None
    """The best candidate so far."""
    candidate_refs: Annotated[tuple[CandidateRef, ...], Field(max_length=MAX_CANDIDATES)] = ()
    """Published candidates, best first: the only ranking while the search runs."""
    versions: Annotated[
        tuple[BoundVersion, ...],
        Field(
            max_length=MAX_VERSIONS,
            json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["backend", "sku"]},
        ),
    ] = ()
    """The version chain per backend and GPU type."""
    report_ref: CandidateRef | None = None
    """The first ConfigMap of the report."""
    provenance: Provenance | None = None
    """What the result was made with."""
    start_time: Time | None = None
    """When the run started."""
    completion_time: Time | None = None
    """When it ended."""
    last_progress_time: Time | None = None
    """When the last event came."""
    message: Line | None = None
    """What happens now, for a reader."""


class DynamoGraphDeploymentRun(ApiModel):
    """One search for one generation of a request.

    The operator creates it; its spec never changes. Follow status.progress, then see the candidates that it names.
    """

    api_version: ApiVersion = API_VERSION
    """Group and version of this kind."""
    kind: Literal["DynamoGraphDeploymentRun"] = RUN_KIND
    """This kind."""
    metadata: ObjectMeta
    """Name and identity of the object."""
    spec: RunSpec
    """What is searched; immutable."""
    status: RunStatus | None = None
    """How far the search is and what it found."""
