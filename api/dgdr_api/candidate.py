"""Candidate: one deployment that the search evaluated, as the renderer gets it, together with its ReplaySpec."""

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from dgdr_api.base import ApiModel
from dgdr_api.not_modelled import NotModelled
from dgdr_api.replay_spec import Planner, ReplaySpec, Role, Router, Text, check_roles
from dgdr_api.shape import total_gpus
from dgdr_api.terms import Backend, EncoderPlacement, Topology


class Candidate(ApiModel):
    """What would be deployed: model, topology, roles with worker counts, router and planner.

    ``parameters`` holds the resolved evaluation inputs that are no field of a deployment (load, lengths, fidelity,
    seed); together with the rendered spec they make the point hash.
    """

    model: Text
    """Hugging Face id or name, as the request gives it."""
    topology: Topology
    encoder: EncoderPlacement = "Inline"
    backend: Backend
    roles: Annotated[tuple[Role, ...], Field(min_length=1, max_length=3)]
    router: Router = Router()
    planner: Planner | None = None
    parameters: dict[str, Any]

    @model_validator(mode="after")
    def _roles_of_the_topology(self) -> "Candidate":
        check_roles(self.topology, self.encoder, self.roles)
        return self

    @property
    def used_gpus(self) -> int:
        """GPUs of the whole deployment: the one count of `dgdr_api.shape`."""
        return total_gpus((role.workers, role.shape) for role in self.roles)

    @classmethod
    def of_replay_spec(cls, spec: ReplaySpec, *, model: str, parameters: dict[str, Any]) -> "Candidate":
        """The deployment that a ReplaySpec scores."""
        roles = tuple(Role.model_validate(role.model_dump(exclude={"timing"})) for role in spec.roles)
        return cls(
            model=model,
            topology=spec.topology,
            encoder=spec.encoder,
            backend=roles[0].backend,
            roles=roles,
            router=spec.router,
            planner=spec.planner,
            parameters=parameters,
        )


class Shares(ApiModel):
    """Shares of time by the origin of the performance data; they sum to 1."""

    silicon: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Measured on the GPU itself."""
    empirical: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Scaled from measurements of another shape or format."""
    estimated: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Computed from the hardware's limits."""
    borrowed: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Rows taken from another version or backend."""


class RoleMemory(ApiModel):
    """Memory of one rank of a role."""

    weights_gib: Annotated[float, Field(ge=0, alias="weightsGiB")]
    """Weights in GiB."""
    kv_tokens: Annotated[int, Field(ge=0)]
    """KV tokens per rank."""


class Evaluation(ApiModel):
    """What the search found out about a candidate. Metrics carry their unit in the name."""

    score: float
    """Higher is better."""
    used_gpus: Annotated[int, Field(ge=1)]
    objectives: dict[str, float]
    """Value of each objective in its natural direction, by metric name."""
    metrics: dict[str, float]
    memory: dict[str, RoleMemory]
    """By role kind."""
    provenance: Shares
    flags: Annotated[tuple[str, ...], Field(max_length=16)] = ()
    """Remarks on the data, e.g. ``implausible: decode``."""
    not_modelled: dict[NotModelled, str] = Field(default_factory=dict)
    """Features that the deployment uses and the estimate leaves out, with what uses them."""


class EvaluatedCandidate(ApiModel):
    """A document of its own: what an event carries, and what ``dgdr render`` and ``dgdr verify`` read."""

    api_version: Literal["dgdr/v1"] = "dgdr/v1"
    kind: Literal["Candidate"] = "Candidate"
    id: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
    """Names the point in its run: its events, its report."""
    candidate: Candidate
    replay_spec: ReplaySpec
    evaluation: Evaluation

    @model_validator(mode="after")
    def _evaluated_is_published(self) -> "EvaluatedCandidate":
        scored = Candidate.of_replay_spec(
            self.replay_spec, model=self.candidate.model, parameters=self.candidate.parameters
        )
        if scored != self.candidate:
            raise ValueError("the ReplaySpec scores another deployment than the candidate")
        if self.evaluation.used_gpus != self.candidate.used_gpus:
            raise ValueError(
                f"evaluation.usedGpus = {self.evaluation.used_gpus}, "
                f"but the candidate takes {self.candidate.used_gpus} GPUs"
            )
        return self
