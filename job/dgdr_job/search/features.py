"""What a request can ask for that this version does not do: each refused by name, never searched approximately."""

from collections.abc import Callable
from dataclasses import dataclass

from dgdr_api.request import SearchSpec

from dgdr_job.search.config import SmartSearchConfig


@dataclass(frozen=True)
class NotBuilt:
    """A field whose value asks for something that is not built."""

    field: str
    value: str
    why: str

    @property
    def message(self) -> str:
        """The refusal as a person reads it."""
        return f"{self.field}: {self.value} is not supported: {self.why}"


Check = Callable[[SearchSpec], NotBuilt | None]


def not_built(spec: SearchSpec) -> list[NotBuilt]:
    """Everything in the run that no branch of this version can search, in a fixed order."""
    found = (check(spec) for check in CHECKS)
    return [feature for feature in found if feature]


def _fidelity(spec: SearchSpec) -> NotBuilt | None:
    if spec.search.fidelity == "replay":
        return NotBuilt("search.fidelity", "replay", "there is no replay yet; set search.fidelity: static")
    return None


def _trace(spec: SearchSpec) -> NotBuilt | None:
    if spec.workload.trace is not None:
        return NotBuilt("workload.trace", spec.workload.trace.format, "a trace needs a replay; use workload.static")
    return None


def _planner(spec: SearchSpec) -> NotBuilt | None:
    if spec.search.planner is not None:
        return NotBuilt("search.planner", spec.search.planner.mode, "a planner needs a replay; leave it out")
    return None


def _router(spec: SearchSpec) -> NotBuilt | None:
    for index, router in enumerate(spec.search.router):
        if router.mode != "roundRobin":
            return NotBuilt(f"search.router[{index}].mode", router.mode, "it needs a replay; use roundRobin")
    if len(spec.search.router) > 1:
        return NotBuilt(
            "search.router", f"{len(spec.search.router)} choices", "a static estimate knows one, roundRobin"
        )
    return None


def _goodput(spec: SearchSpec) -> NotBuilt | None:
    for metric in spec.objective.all_metrics:
        if metric in ("goodput", "goodputPerGpu"):
            return NotBuilt("objective.metric", metric, "it counts requests of a replay; use throughput or minGpus")
    return None


def _one_token(spec: SearchSpec) -> NotBuilt | None:
    if spec.static_field("osl") == 1 and "throughputPerUser" in spec.objective.all_metrics:
        why = "with workload.static.osl 1 no token follows the first, so it has no value; choose other metrics"
        field = "objective.metric" if spec.objective.mode == "optimize" else "objective.metrics"
        return NotBuilt(field, "throughputPerUser", why)
    return None


def _replay_only_workload(spec: SearchSpec) -> NotBuilt | None:
    """Parts of a generated workload that a steady-state estimate cannot see."""
    plain = {"length_spread": 1.0, "shared_prefix_ratio": 0.0, "turns_per_session": 1, "turn_history": "fresh"}
    names = {
        "length_spread": "lengthSpread",
        "shared_prefix_ratio": "sharedPrefixRatio",
        "turns_per_session": "turnsPerSession",
        "turn_history": "turnHistory",
    }
    if spec.workload.static is None:
        return None
    for field, value in plain.items():
        found = spec.static_field(field)
        if found != value:
            return NotBuilt(
                f"workload.static.{names[field]}",
                str(found),
                f"a static estimate knows {value} only; it needs a replay",
            )
    return None


def _overrides(spec: SearchSpec) -> NotBuilt | None:
    if spec.overrides.dgd:
        return NotBuilt("overrides.dgd", ", ".join(sorted(spec.overrides.dgd)), "fragments are not merged yet")
    return None


def _budget(spec: SearchSpec) -> NotBuilt | None:
    """Limits of rounds, which a static search does not have: it matches each branch whole."""
    budget = spec.search.budget
    for name, value in (("maxRounds", budget.max_rounds), ("candidatesPerRound", budget.candidates_per_round)):
        if value is not None:
            why = "a static search evaluates a branch whole, in one round of exact matching; leave it out"
            return NotBuilt(f"search.budget.{name}", str(value), why)
    return None


CHECKS: tuple[Check, ...] = (
    _fidelity,
    _trace,
    _planner,
    _router,
    _goodput,
    _one_token,
    _replay_only_workload,
    _overrides,
    _budget,
)


def parameters_not_built(config: SmartSearchConfig) -> list[NotBuilt]:
    """Engine keys whose value asks for something that a static search does not do."""
    space, sweep, bare = config.search_space, config.sweep, "leave it out"
    asked: list[tuple[str, object, str]] = [
        ("search_space.nextn", space.nextn, f"draft tokens are not timed yet; {bare}"),
        (
            "search_space.kv_transfer_bandwidth",
            space.kv_transfer_bandwidth,
            f"a static estimate moves no KV, it needs a replay; {bare}",
        ),
        ("sweep.max_trials", sweep.max_trials, f"a static search matches the whole pool at once; {bare}"),
        (
            "sweep.strategy",
            sweep.strategy if sweep.strategy == "guided" else None,
            "a static search is exhaustive, guided needs a replay; use auto",
        ),
    ]
    return [NotBuilt(key, str(value), why) for key, value, why in asked if value is not None]
