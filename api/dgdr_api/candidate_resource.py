"""DynamoGraphDeploymentCandidate: a deployment that the search found, ready to be promoted."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from dgdr_api.base import ApiModel
from dgdr_api.bounds import Gpus, Path, Version
from dgdr_api.candidate import RoleMemory, Shares
from dgdr_api.conditions import Conditions
from dgdr_api.group import API_VERSION, CANDIDATE_KIND, ApiVersion
from dgdr_api.metadata import ObjectMeta
from dgdr_api.rules import Rule, RuledModel, given

Numbers = Annotated[dict[str, float], Field(max_length=128)]
"""Numbers by name; the unit is part of the name."""
Words = Annotated[dict[str, Annotated[str, Field(max_length=63)]], Field(max_length=64)]
"""Rounded values with their unit, by name."""


class CandidateEvaluation(ApiModel):
    """What the search found out about the candidate."""

    score: float
    """Score, higher is better."""
    used_gpus: Gpus
    """GPUs of the whole deployment."""
    gpus_by_role: Annotated[str, Field(max_length=128)] = ""
    """GPUs of each role in one line, e.g. prefill 2x4, decode 1x8."""
    objectives: Numbers = Field(default_factory=dict)
    """Value of each objective in its natural direction."""
    metrics: Numbers = Field(default_factory=dict)
    """All metrics of the evaluation."""
    display: Words = Field(default_factory=dict)
    """Rounded values for a reader; the printed columns show mode, score, ttft, itl and throughputPerGpu."""
    memory: Annotated[dict[str, RoleMemory], Field(max_length=4)] = Field(default_factory=dict)
    """Memory of one rank, by role kind."""
    provenance: Shares | None = None
    """Shares of time by the origin of the performance data."""
    replay_spec: dict[str, Any] = Field(default_factory=dict)
    """The ReplaySpec that was scored; `dgdr replay` scores it again. A name without a value is null: the API server
    keeps it (only a merge patch, in which null means removal, would drop it)."""


class MaterializedValue(RuledModel):
    """Where one evaluated value stands in the spec, or why it needs no place."""

    rules: ClassVar = (
        Rule(
            id="destination-or-reason",
            cel="has(self.destination) != has(self.reason)",
            message="give exactly one of destination and reason",
            holds=lambda entry: (entry.destination is None) != (entry.reason is None),
            found=given("destination", "reason"),
        ),
    )

    parameter: Annotated[str, Field(min_length=1, max_length=253)]
    """Name of the evaluated value, e.g. decode.engine.maxNumSeqs."""
    value: Path
    """The value, as JSON text."""
    destination: Path | None = None
    """JSON pointer into the spec."""
    reason: Path | None = None
    """Why it needs no place in the spec."""


class CandidateStatus(ApiModel):
    """How the candidate was evaluated and rendered."""

    rank: Annotated[int, Field(ge=1, le=50)] | None = None
    """Place among the candidates of the run, 1 is best; absent for points of a front."""
    conditions: Conditions = ()
    """Evaluated, Materialized and VersionBound."""
    evaluation: CandidateEvaluation | None = None
    """What the search found out about it."""
    materialization: Annotated[tuple[MaterializedValue, ...], Field(max_length=256)] = ()
    """Every evaluated value with its place in the spec, or the reason why it needs none."""
    renderer_version: Version | None = None
    """Version of the templates that rendered it."""


class DynamoGraphDeploymentCandidate(ApiModel):
    """A deployment that a run found. Its spec is that of a DynamoGraphDeployment (v1beta1) plus parameters.

    Promote it with `kubectl dgdr promote NAME --name DEPLOYMENT`.
    """

    api_version: ApiVersion = API_VERSION
    """Group and version of this kind."""
    kind: Literal["DynamoGraphDeploymentCandidate"] = CANDIDATE_KIND
    """This kind."""
    metadata: ObjectMeta
    """Name and identity of the object."""
    spec: dict[str, Any]
    """The fields of a DynamoGraphDeployment's spec, and under parameters the evaluation inputs that are no field of
    a deployment. Immutable; at most 64 KiB."""
    status: CandidateStatus | None = None
    """How the candidate was evaluated and rendered."""
