"""How the search is done, and how much of it is recommended."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from dgdr_api.base import ApiModel
from dgdr_api.bounds import Digits32
from dgdr_api.duration import Duration
from dgdr_api.replay_spec import Planner, Router
from dgdr_api.rules import Distinct, Rule, RuledModel
from dgdr_api.terms import TOPOLOGIES, Fidelity, Topology


class SearchBudget(ApiModel):
    """Limits of the search itself."""

    max_rounds: Digits32 | None = None
    """Rounds per branch. Absent: until the whole pool is evaluated."""
    candidates_per_round: Digits32 | None = None
    """Candidates of one round. Absent: the whole pool."""
    parallel_evaluations: Digits32 | None = None
    """Evaluations at the same time; the number of cores by default."""
    max_evaluation_duration: Duration = "600s"
    """Longest evaluation of one candidate, e.g. 90s; 600s by default."""
    max_duration: Duration | None = None
    """Longest search, e.g. 1h30m. Reaching it keeps the results (BudgetExhausted)."""


class Search(RuledModel):
    """What is searched and how closely."""

    rules: ClassVar = (
        Rule(
            id="planner-encoder",
            cel="!has(self.planner) || !has(self.encoder) || self.encoder == 'Inline'",
            message="planner needs encoder Inline",
            holds=lambda search: search.planner is None or search.encoder == "Inline",
            field=".planner",
        ),
    )

    fidelity: Fidelity = "replay"
    """replay (default): each candidate is simulated. static: rate matching only."""
    topologies: Annotated[tuple[Topology, ...], Field(min_length=1, max_length=2), Distinct()] = TOPOLOGIES
    """agg (workers do prefill and decode), disagg (workers of their own for each); both by default."""
    encoder: Literal["Inline", "Disaggregated", "Both"] = "Inline"
    """Where a vision-language model's encoder runs: in the prefill or aggregated worker (Inline, the default), in
    workers of its own (Disaggregated), or both are searched. Needs workload.static.images unless Inline."""
    router: Annotated[tuple[Router, ...], Field(min_length=1, max_length=16)] = (Router(),)
    """Router choices to search, 1 to 16; round robin by default."""
    planner: Planner | None = None
    """A planner that changes worker counts with the load. Only with encoder Inline."""
    budget: SearchBudget = SearchBudget()
    """Limits of the search."""
    parameters: dict[str, Any] = Field(default_factory=dict)
    """Engine keys that no field of the request owns, nested as the engine's configuration, e.g. sweep.seed. At most
    64 KiB; an unknown key is refused."""


class Recommendation(ApiModel):
    """How many candidates are published."""

    max_candidates: Annotated[int, Field(ge=1, le=50)] = 5
    """Candidates to publish at most, 1 to 50; 5 by default."""


class Overrides(ApiModel):
    """Changes to generated objects."""

    dgd: dict[str, Any] | None = None
    """Fragment of a DynamoGraphDeployment (v1beta1), merged into every candidate that it fits, before hashing. At
    most 64 KiB."""
    profiling_job: dict[str, Any] | None = None
    """Fragment of the search Job's spec: tolerations, node selection, affinity, priority class, pull secrets, the
    sweeper's resources, time limits, labels and annotations. At most 64 KiB."""
