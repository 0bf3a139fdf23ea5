"""Events of wire version 1: what the sweeper tells the publisher, one JSON line each."""

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from dgdr_api.base import ApiModel
from dgdr_api.bounds import LargeCount
from dgdr_api.candidate import EvaluatedCandidate, Shares
from dgdr_api.not_modelled import NotModelled
from dgdr_api.terms import Backend, EncoderPlacement, Outcome, PointStatus, ReasonCategory, Topology

WIRE_VERSION = 1
RoundNumber = Annotated[LargeCount, Field(ge=1)]
PointId = Annotated[str, Field(min_length=1, max_length=64)]


def branch_name(backend: Backend, topology: Topology, encoder: EncoderPlacement = "Inline") -> str:
    """``<backend>/<topology>``, with ``+epd`` where images are encoded by workers of their own."""
    return f"{backend}/{topology}{'+epd' if encoder == 'Disaggregated' else ''}"


class BranchPlan(ApiModel):
    """One branch of the search: a backend, a topology, and where images are encoded."""

    name: Annotated[str, Field(max_length=63)]
    """``<backend>/<topology>``, with ``+epd`` for encode workers."""
    backend: Backend
    topology: Topology
    encoder: EncoderPlacement = "Inline"
    pool: LargeCount
    """Points that will be evaluated."""


class TupleCoverage(ApiModel):
    """What the performance data says about one tuple before anything is searched."""

    backend: Backend
    topology: Topology
    encoder: EncoderPlacement = "Inline"
    skus: dict[str, str]
    """SKU by role kind."""
    supported: bool
    reason: Annotated[str, Field(max_length=63)]
    """``Supported`` or a reason of the ``Supported`` condition."""
    message: Annotated[str, Field(max_length=1024)] = ""
    data_version: Annotated[str | None, Field(max_length=63)] = None
    shares: Shares | None = None
    not_modelled: tuple[NotModelled, ...] = ()
    """Features that run but that the estimates leave out: supported except these."""
    flags: Annotated[tuple[str, ...], Field(max_length=16)] = ()
    """Remarks on the data: implausible times, number formats other than the checkpoint's."""

    @property
    def name(self) -> str:
        """The branch that it judges."""
        return branch_name(self.backend, self.topology, self.encoder)


class VersionLink(ApiModel):
    """The version chain of one backend on one SKU."""

    backend: Backend
    sku: str
    runtime: str
    """Dynamo version of the runtime image."""
    engine: str
    """Engine version that this runtime carries."""
    performance_data: str
    """Version of the data that timed the candidates."""
    pinned: bool
    """Whether the data version was pinned by the request against the chain."""
    borrowed_tables: tuple[str, ...] = ()
    """Tables whose rows come from another version or backend."""


class Resolved(ApiModel):
    """The search space is known: data of ``search.resolved``."""

    branches: Annotated[tuple[BranchPlan, ...], Field(max_length=16)]
    coverage: tuple[TupleCoverage, ...]
    versions: tuple[VersionLink, ...]
    limits: dict[str, Any]
    """Resolved limits: GPU budget, maximum sequence length, reserve size, seed."""


class Evaluations(ApiModel):
    """A columnar batch of compact rows: data of ``evaluations``. Every column has one entry per point."""

    branch: str
    id: tuple[PointId, ...]
    status: tuple[PointStatus, ...]
    reason: tuple[ReasonCategory | None, ...]
    detail: tuple[str, ...]
    """Reason with its numbers; empty for a feasible point."""
    used_gpus: tuple[LargeCount, ...]
    summary: tuple[str, ...]
    """The deployment in one line."""
    metrics: dict[str, tuple[float | None, ...]]
    objectives: dict[str, tuple[float | None, ...]]

    @model_validator(mode="after")
    def _columns_have_one_length(self) -> "Evaluations":
        columns = {
            "id": self.id,
            "status": self.status,
            "reason": self.reason,
            "detail": self.detail,
            "usedGpus": self.used_gpus,
            "summary": self.summary,
            **{f"metrics.{name}": column for name, column in self.metrics.items()},
            **{f"objectives.{name}": column for name, column in self.objectives.items()},
        }
        for name, column in columns.items():
            if len(column) != len(self.id):
                raise ValueError(f"column {name} has {len(column)} entries, id has {len(self.id)}")
        return self


class Counters(ApiModel):
    """Evaluations by state."""

    scheduled: LargeCount = 0
    """Points that were given to the engine."""
    running: LargeCount = 0
    """Points that are being evaluated."""
    feasible: LargeCount = 0
    """Points that meet every bound."""
    infeasible: LargeCount = 0
    """Points that miss a bound."""
    unsupported: LargeCount = 0
    """Points that the performance model cannot time."""
    failed: LargeCount = 0
    """Points whose evaluation ended with an error."""
    timed_out: LargeCount = 0
    """Points whose evaluation took too long."""
    cache_hits: LargeCount = 0
    """Points whose result was known already."""
    pruned: LargeCount = 0
    """Points that cannot beat what is known, so were not evaluated."""
    remaining: LargeCount = 0
    """Points that are still to be evaluated."""


class RoundCompleted(ApiModel):
    """Data of ``round.completed``."""

    branch: str
    round: RoundNumber
    total: RoundNumber
    counters: Counters
    reserve: tuple[PointId, ...]
    """Ids of the current reserve, best first."""


class Completed(ApiModel):
    """Data of ``search.completed``."""

    outcome: Outcome
    message: Annotated[str, Field(max_length=1024)]
    counters: Counters
    reserve: tuple[PointId, ...]
    """Final ids, best first; more than will be published."""
    pareto_front: LargeCount = 0
    """Size of the front before thinning; 0 in optimize mode."""
    proven_best: bool
    """Whether nothing in the pool can be better than the first."""


class Failed(ApiModel):
    """Data of ``search.failed``."""

    reason: Annotated[str, Field(max_length=63)]
    message: Annotated[str, Field(max_length=500)]
    counters: Counters


class _Envelope(ApiModel):
    seq: Annotated[int, Field(ge=1)]
    """Starts at 1 for each attempt, without gaps."""
    attempt: Annotated[str, Field(min_length=1, max_length=63)]
    """Pod uid; ``laptop`` without a cluster."""
    run_uid: Annotated[str, Field(min_length=1, max_length=63)]
    time: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$")]
    """UTC, RFC 3339."""


class ResolvedEvent(_Envelope):
    """The first event."""

    type: Literal["search.resolved"] = "search.resolved"
    data: Resolved


class EvaluationsEvent(_Envelope):
    """Evaluated points."""

    type: Literal["evaluations"] = "evaluations"
    data: Evaluations


class CandidateEvent(_Envelope):
    """A point that entered the current reserve or front."""

    type: Literal["candidate"] = "candidate"
    data: EvaluatedCandidate


class RoundCompletedEvent(_Envelope):
    """A round ended."""

    type: Literal["round.completed"] = "round.completed"
    data: RoundCompleted


class CompletedEvent(_Envelope):
    """The search ended."""

    type: Literal["search.completed"] = "search.completed"
    data: Completed


class FailedEvent(_Envelope):
    """The search failed."""

    type: Literal["search.failed"] = "search.failed"
    data: Failed


Event = Annotated[
    ResolvedEvent | EvaluationsEvent | CandidateEvent | RoundCompletedEvent | CompletedEvent | FailedEvent,
    Field(discriminator="type"),
]
EventData = Resolved | Evaluations | EvaluatedCandidate | RoundCompleted | Completed | Failed
