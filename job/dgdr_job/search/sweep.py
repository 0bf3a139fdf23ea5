"""One search from its run to its last event: preflight, evaluate branch by branch, rank, report."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from dgdr_api.candidate import EvaluatedCandidate
from dgdr_api.events import Completed, EventData, RoundCompleted, TupleCoverage, branch_name
from dgdr_api.expressible import pair_problem
from dgdr_api.run import RunSpec
from dgdr_api.terms import Backend, Outcome
from dgdr_api.versions import BackendChains

from dgdr_job.catalog.catalog import Catalog
from dgdr_job.catalog.errors import Unsupported
from dgdr_job.matching.arrays import Prices
from dgdr_job.search import evaluations, static
from dgdr_job.search.adapters import refused_tables, router_problem
from dgdr_job.search.branches import Branch, RolePlan, tuples_of
from dgdr_job.search.candidates import BranchResult, evaluated_candidate
from dgdr_job.search.config import SmartSearchConfig
from dgdr_job.search.explicit import check_parallel_configs
from dgdr_job.search.features import NotBuilt, not_built, parameters_not_built
from dgdr_job.search.mapper import search_config
from dgdr_job.search.points import metrics, objective
from dgdr_job.search.preflight import preflight
from dgdr_job.search.question import Question
from dgdr_job.search.ranking import Reserve, reserve
from dgdr_job.search.refused import refused_rows
from dgdr_job.search.resolved import refused_whole, resolved, rounds_of, version_chains
from dgdr_job.search.role_rows import RoleInput
from dgdr_job.search.role_table import RoleTable, role_table
from dgdr_job.search.visual import images_of, visual_tokens
from dgdr_job.space.limits import POOL_OF_ROLE

Emit = Callable[[EventData], None]


@dataclass(frozen=True)
class Progress:
    """How far the search is, in shapes of roles: the unit of its work."""

    done: int
    total: int
    stage: str
    feasible: int
    best: str
    """Best deployment so far, empty before the first branch is done."""


class Sweep:
    """A search under way: what it was asked, what it has found, and whom it tells."""

    def __init__(
        self,
        run: RunSpec,
        emit: Emit,
        catalog: Catalog,
        progress: Callable[[Progress], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._run, self._emit, self._catalog = run, emit, catalog
        self._tell, self._clock = progress, clock
        self._results: list[BranchResult] = []
        self._reserve = Reserve((), 0)
        self._sent: dict[str, float] = {}
        self._done = self._total = self._pool = 0
        self._stop_at: float | None = None

    def run(self) -> None:
        """Search to the end and emit the terminal event.

        Raises:
            InvalidRequest: search.parameters is wrong.
            VersionChainBroken: the image binds no performance data; admission refuses this before.
        """
        started = self._clock()
        chains = version_chains(self._run)
        if self._refuse_whole(not_built(self._run), chains):
            return
        versions = {backend: each.performance_data for backend, each in chains.items()}
        try:
            tokens = visual_tokens(self._catalog, self._run.model_ref.name, images_of(self._run))
        except Unsupported as error:
            self._emit(refused_whole(self._run, chains, error.message, error.reason))
            self._complete("Unsupported", f"{error.reason.value}: {error.message}")
            return
        config = search_config(self._run, versions, tokens)
        if self._refuse_whole(parameters_not_built(config), chains):
            return
        check_parallel_configs(self._catalog, config, chains)
        if config.sweep.max_seconds is not None:
            self._stop_at = started + config.sweep.max_seconds
        with self._catalog.written_together():
            branches, coverage = self._preflight(config, chains)
        self._pool = sum(branch.pairs for branch in branches) * rounds_of(config)
        self._total = sum(len(role.gated.kept) for branch in branches for role in branch.roles)
        self._emit(resolved(self._catalog, config, chains, branches, coverage))
        if not branches:
            self._complete("Unsupported", evaluations.unsupported(coverage))
            return
        for branch in branches:
            if not self._time_is_over():
                self._evaluate(config, branch)
        self._conclude(config)

    def _refuse_whole(self, features: list[NotBuilt], chains: dict[Backend, BackendChains]) -> bool:
        """End the search where it asks for what no branch of this version does; whether it was so."""
        if not features:
            return False
        message = "; ".join(feature.message for feature in features)
        self._emit(refused_whole(self._run, chains, message))
        self._complete("Unsupported", message)
        return True

    def _preflight(
        self, config: SmartSearchConfig, chains: dict[Backend, BackendChains]
    ) -> tuple[list[Branch], list[TupleCoverage]]:
        found = []
        for backend, topology, encoder in tuples_of(config.search_space):
            self._report(f"preflight {branch_name(backend, topology, encoder)}")
            found.append(
                preflight(
                    self._catalog,
                    config,
                    backend,
                    topology,
                    chains[backend],
                    encoder=encoder,
                    model_ref=self._run.model_ref,
                )
            )
        return [each.branch for each in found if each.branch], [each.coverage for each in found]

    def _evaluate(self, config: SmartSearchConfig, branch: Branch) -> None:
        """Evaluate one branch, as far as time allows, and tell what it found: one round for each KV load ratio."""
        problem = router_problem(self._run.search.router[0], branch, config.search_space.hardware_sku)
        if problem is None:
            with self._catalog.written_together():
                tables = tuple(self._table(config, branch, index) for index in range(len(branch.roles)))
        else:
            tables = refused_tables(branch, problem)
            self._done += sum(len(table.reached) for table in tables)
        for index, ratio in enumerate(config.workload.kv_load_ratios or (None,), start=1):
            self._evaluate_round(config, branch, tables, ratio, index)

    def _evaluate_round(
        self,
        config: SmartSearchConfig,
        branch: Branch,
        tables: tuple[RoleTable, ...],
        ratio: float | None,
        index: int,
    ) -> None:
        question = Question(
            workload=config.workload,
            sla=config.goal.sla,
            limits=branch.limits,
            metrics=config.goal.metrics,
            pareto=config.goal.pareto,
            prices=_prices(config, branch),
            kv_load_ratio=ratio,
            pair_problem=partial(pair_problem, branch.backend, branch.roles[-1].chain.engine),
        )
        if len(tables) == 1:
            found = static.evaluate_agg(tables[0], question)
        else:
            found = static.evaluate_pools(tables, question)
        result = _result(config, branch, tables, found, ratio)
        self._results.append(result)
        for batch in evaluations.evaluation_batches(result):
            self._emit(batch)
        self._update_reserve(config)
        self._emit(
            RoundCompleted(
                branch=branch.name,
                round=index,
                total=rounds_of(config),
                counters=evaluations.counters(self._results, self._pool),
                reserve=tuple(candidate.id for candidate in self._reserve.candidates),
            )
        )

    def _table(self, config: SmartSearchConfig, branch: Branch, index: int) -> RoleTable:
        role = branch.roles[index]

        def done(_: object) -> None:
            self._done += 1
            self._report(f"{branch.name} {role.kind}")

        return role_table(
            self._catalog,
            role_input(config, branch, role),
            config.workload,
            config.rate_matching,
            progress=done,
            stop=self._time_is_over,
        )

    def _time_is_over(self) -> bool:
        return self._stop_at is not None and self._clock() > self._stop_at

    def _update_reserve(self, config: SmartSearchConfig) -> None:
        def build(result: BranchResult, point: int, value: float) -> EvaluatedCandidate:
            return evaluated_candidate(self._catalog, self._run, config, result, point, score=value)

        self._reserve = reserve(self._results, config.goal, config.workload.osl, config.sweep.reserve, build)
        for candidate in self._reserve.candidates:
            # the score of a point of a front changes as the front grows
            if self._sent.get(candidate.id) != candidate.evaluation.score:
                self._sent[candidate.id] = candidate.evaluation.score
                self._emit(candidate)

    def _conclude(self, config: SmartSearchConfig) -> None:
        """End with what was found; shapes that were not reached in time are what is left."""
        outcome: Outcome = "SearchSucceeded" if self._done == self._total else "BudgetExhausted"
        if self._reserve.candidates:
            text = evaluations.success(self._results, self._reserve.best, config.goal.metrics)
        else:
            text = evaluations.why_nothing(self._results, config.workload.osl)
        if outcome == "BudgetExhausted":
            limit = f"search.budget.maxDuration {self._run.search.budget.max_duration} ended the search"
            text = f"{limit} after {self._done} of {self._total} shapes; {text}"
        elif not self._reserve.candidates:
            outcome = "NoFeasibleCandidate"
        self._complete(outcome, text)

    def _complete(self, outcome: Outcome, message: str) -> None:
        self._emit(
            Completed(
                outcome=outcome,
                message=message[: evaluations.MESSAGE_CHARACTERS],
                counters=evaluations.counters(self._results, self._pool),
                reserve=tuple(candidate.id for candidate in self._reserve.candidates),
                pareto_front=self._reserve.pareto_front,
                proven_best=outcome == "SearchSucceeded",
            )
        )

    def _report(self, stage: str) -> None:
        best = self._reserve.best.evaluation.objectives if self._reserve.candidates else {}
        text = " ".join(f"{name} {value:.2f}" for name, value in best.items())
        feasible = sum(len(result.points) for result in self._results)
        self._tell(Progress(self._done, self._total, stage, feasible, text))


def role_input(config: SmartSearchConfig, branch: Branch, role: RolePlan) -> RoleInput:
    """What the rows of a role are computed from."""
    return RoleInput(
        role.kind,
        role.identity,
        role.gated.kept,
        role.knobs,
        branch.max_sequence_tokens,
        images=role.images,
        encode=config.search_space.encode,
        ttft_factor=config.rate_matching.disagg_ttft if branch.topology == "disagg" else 1.0,
    )


def _prices(config: SmartSearchConfig, branch: Branch) -> Prices:
    """Price of a GPU of each pool; 1 where the request prices none, since nothing then depends on it."""
    prices = {
        POOL_OF_ROLE[role.kind]: config.goal.gpu_cost_per_hour.get(role.identity.sku, 1.0) for role in branch.roles
    }
    return Prices(prefill=prices.get("prefill", prices["decode"]), decode=prices["decode"], encode=prices.get("encode"))


def _result(
    config: SmartSearchConfig,
    branch: Branch,
    tables: tuple[RoleTable, ...],
    found: static.Evaluated,
    ratio: float | None,
) -> BranchResult:
    columns = metrics(found.points, config.workload.osl)
    objectives = {metric: objective(found.points, columns, metric) for metric in config.goal.metrics}
    refused_ = refused_rows(branch, tables, found)
    return BranchResult(branch, tables, found.points, columns, objectives, refused_, ratio)
