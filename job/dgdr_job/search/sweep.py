"""One search from its run to its last event: preflight, evaluate branch by branch, rank, report."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from dgdr_api.candidate import EvaluatedCandidate
from dgdr_api.events import (
    BranchPlan,
    Completed,
    Counters,
    Evaluations,
    EventData,
    Resolved,
    RoundCompleted,
    TupleCoverage,
    VersionLink,
)
from dgdr_api.run import RunSpec
from dgdr_api.terms import Backend, Metric, Outcome
from dgdr_api.versions import Chain, resolve_chain

from dgdr_job.catalog.catalog import Catalog
from dgdr_job.catalog.identity import PerfIdentity
from dgdr_job.search import static
from dgdr_job.search.branches import Branch, limits_of, max_sequence_tokens
from dgdr_job.search.candidates import BranchResult, evaluated_candidate
from dgdr_job.search.config import SmartSearchConfig
from dgdr_job.search.features import not_built
from dgdr_job.search.mapper import search_config
from dgdr_job.search.points import metrics, objective, rank_order, score
from dgdr_job.search.preflight import preflight, refused
from dgdr_job.search.ranking import Reserve, reserve
from dgdr_job.search.role_table import RoleInput, RoleTable, role_table
from dgdr_job.space.counts import agg_pairs, disagg_pairs

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


@dataclass(frozen=True)
class _Refused:
    """Refused deployments of a branch, one entry per shape or pair of shapes."""

    refusals: tuple[static.Refusal, ...]
    counts: tuple[int, ...]
    """Worker counts that each entry stands for."""


class Deadline(Exception):  # noqa: N818 - an outcome, not a fault
    """The time that the request allows is over."""


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
        self._refused: list[_Refused] = []
        self._reserve = Reserve((), 0)
        self._sent: set[str] = set()
        self._done = self._total = self._pool = 0
        self._stop_at: float | None = None

    def run(self) -> None:
        """Search to the end and emit the terminal event.

        Raises:
            InvalidRequest: search.parameters is wrong.
            VersionChainBroken: the image binds no performance data; admission refuses this before.
        """
        chains = self._chains()
        config = search_config(self._run, {backend: chain.performance_data for backend, chain in chains.items()})
        if config.sweep.max_seconds is not None:
            self._stop_at = self._clock() + config.sweep.max_seconds
        features = not_built(self._run)
        if features:
            message = "; ".join(feature.message for feature in features)
            coverage = [
                refused(config, backend, topology, "UnsupportedFeature", message)
                for backend in self._run.backends
                for topology in self._run.search.topologies
            ]
            self._resolve(config, chains, [], coverage)
            self._complete("Unsupported", message)
            return
        branches, coverage = self._preflight(config, chains)
        self._resolve(config, chains, branches, coverage)
        if not branches:
            self._complete("Unsupported", _unsupported_message(coverage))
            return
        outcome: Outcome = "SearchSucceeded"
        try:
            for branch in branches:
                self._evaluate(config, branch)
        except Deadline:
            outcome = "BudgetExhausted"
        self._conclude(config, outcome)

    def _chains(self) -> dict[Backend, Chain]:
        runtime = self._run.runtime
        return {
            backend: resolve_chain(
                runtime.image,
                runtime.version_override,
                runtime.performance_data_version,
                backend,
                self._run.hardware.gpu.sku,
            )
            for backend in self._run.backends
        }

    def _preflight(
        self, config: SmartSearchConfig, chains: dict[Backend, Chain]
    ) -> tuple[list[Branch], list[TupleCoverage]]:
        found = []
        for backend in config.search_space.backend:
            for topology in config.search_space.deployment_mode:
                self._report(f"preflight {backend}/{topology}")
                found.append(preflight(self._catalog, config, backend, topology, chains[backend]))
        return [each.branch for each in found if each.branch], [each.coverage for each in found]

    def _resolve(
        self,
        config: SmartSearchConfig,
        chains: dict[Backend, Chain],
        branches: list[Branch],
        coverage: list[TupleCoverage],
    ) -> None:
        space = config.search_space
        self._pool = sum(branch.pairs for branch in branches)
        self._total = sum(len(role.gated.kept) for branch in branches for role in branch.roles)
        used = {branch.backend for branch in branches}
        self._emit(
            Resolved(
                branches=tuple(
                    BranchPlan(
                        name=branch.name, backend=branch.backend, topology=branch.topology, pool=branch.pairs
                    )
                    for branch in branches
                ),
                coverage=tuple(coverage),
                versions=tuple(
                    VersionLink(
                        backend=backend,
                        sku=chain.sku,
                        runtime=chain.runtime,
                        engine=chain.engine,
                        performance_data=chain.performance_data,
                        pinned=chain.pinned,
                        borrowed_tables=self._borrowed(config, chain) if backend in used else (),
                    )
                    for backend, chain in chains.items()
                ),
                limits={
                    "gpuBudget": space.gpu_budget,
                    "minGpuBudget": space.min_gpu_budget,
                    "maxSequenceLength": max_sequence_tokens(config),
                    "reserve": config.sweep.reserve,
                    "seed": config.sweep.seed,
                },
            )
        )

    def _borrowed(self, config: SmartSearchConfig, chain: Chain) -> tuple[str, ...]:
        identity = PerfIdentity(
            config.search_space.model_name, chain.sku, chain.backend, chain.performance_data
        )
        return self._catalog.data_provenance(identity).borrowed_tables

    def _evaluate(self, config: SmartSearchConfig, branch: Branch) -> None:
        """Evaluate one branch and tell what it found."""
        tables = tuple(self._table(config, branch, index) for index in range(len(branch.roles)))
        question = static.Question(
            workload=config.workload,
            sla=config.goal.sla,
            limits=limits_of(config.search_space),
            metrics=config.goal.metrics,
            pareto=config.goal.pareto,
        )
        if branch.topology == "agg":
            found = static.evaluate_agg(tables[0], question)
        else:
            found = static.evaluate_disagg(tables[0], tables[1], question)
        result = _distinct(_result(config, branch, tables, found), config)
        self._results.append(result)
        self._refused.append(_Refused(found.refusals, tuple(_counts(branch, entry) for entry in found.refusals)))
        self._emit(_evaluations(result, self._refused[-1]))
        self._update_reserve(config)
        self._emit(
            RoundCompleted(
                branch=branch.name,
                round=1,
                total=1,
                counters=self._counters(),
                reserve=tuple(candidate.id for candidate in self._reserve.candidates),
            )
        )

    def _table(self, config: SmartSearchConfig, branch: Branch, index: int) -> RoleTable:
        role = branch.roles[index]

        def done(_: object) -> None:
            self._done += 1
            self._report(f"{branch.name} {role.kind}")
            if self._stop_at is not None and self._clock() > self._stop_at:
                raise Deadline

        return role_table(
            self._catalog,
            RoleInput(role.kind, role.identity, role.gated.kept, role.knobs),
            config.workload,
            config.rate_matching,
            done,
        )

    def _update_reserve(self, config: SmartSearchConfig) -> None:
        def build(result: BranchResult, point: int, value: float) -> EvaluatedCandidate:
            return evaluated_candidate(self._catalog, self._run, config, result, point, value)

        self._reserve = reserve(self._results, config.goal, config.sweep.reserve, build)
        for candidate in self._reserve.candidates:
            if candidate.id not in self._sent:
                self._sent.add(candidate.id)
                self._emit(candidate)

    def _conclude(self, config: SmartSearchConfig, outcome: Outcome) -> None:
        if self._reserve.candidates:
            first = self._reserve.candidates[0]
            count = sum(len(result.points) for result in self._results)
            text = f"{count} feasible deployments; best {_objective_text(first, config.goal.metrics)}"
            self._complete(outcome, text)
        elif outcome == "BudgetExhausted":
            self._complete(outcome, f"search.budget.maxDuration {config.sweep.max_seconds:g} s ended the search")
        else:
            self._complete("NoFeasibleCandidate", self._why_nothing())

    def _why_nothing(self) -> str:
        """The commonest reason first, with one example each."""
        examples: dict[str, tuple[int, str]] = {}
        for refused_ in self._refused:
            for refusal, count in zip(refused_.refusals, refused_.counts, strict=True):
                known, text = examples.get(refusal.reason, (0, refusal.detail))
                examples[refusal.reason] = (known + count, text)
        skipped = [entry for result in self._results for table in result.tables for entry in table.skipped]
        parts = [
            f"{reason}: {count} deployments, e.g. {text}"
            for reason, (count, text) in sorted(examples.items(), key=lambda item: -item[1][0])
        ]
        parts += [f"{entry.shape.label} {entry.reason}: {entry.detail}" for entry in skipped[:2]]
        return ("nothing is feasible: " + "; ".join(parts))[:1024]

    def _complete(self, outcome: Outcome, message: str) -> None:
        self._emit(
            Completed(
                outcome=outcome,
                message=message[:1024],
                counters=self._counters(),
                reserve=tuple(candidate.id for candidate in self._reserve.candidates),
                pareto_front=self._reserve.pareto_front,
                proven_best=outcome == "SearchSucceeded",
            )
        )

    def _counters(self) -> Counters:
        """Deployments by state; what exact matching need not look at one by one counts as pruned."""
        done = sum(result.branch.pairs for result in self._results)
        feasible = sum(_deployments(result) for result in self._results)
        infeasible = min(sum(sum(entry.counts) for entry in self._refused), done - feasible)
        return Counters(
            scheduled=self._pool,
            feasible=feasible,
            infeasible=infeasible,
            pruned=done - feasible - infeasible,
            remaining=self._pool - done,
        )

    def _report(self, stage: str) -> None:
        best = self._reserve.candidates[0] if self._reserve.candidates else None
        text = "" if best is None else " ".join(f"{name} {value:.2f}" for name, value in best.evaluation.objectives.items())
        self._tell(Progress(self._done, self._total, stage, sum(len(r.points) for r in self._results), text))


def _result(
    config: SmartSearchConfig, branch: Branch, tables: tuple[RoleTable, ...], found: static.Evaluated
) -> BranchResult:
    columns = metrics(found.points, config.workload.osl)
    price = config.goal.gpu_cost_per_hour or 0.0
    objectives = {metric: objective(found.points, columns, metric, price) for metric in config.goal.metrics}
    return BranchResult(branch, tables, found.points, columns, objectives)


def _distinct(result: BranchResult, config: SmartSearchConfig) -> BranchResult:
    """For one metric: of deployments that differ in engine limits alone only the best. For a front: all."""
    if config.goal.pareto or len(result.points) == 0:
        return result
    metric = config.goal.metrics[0]
    order, _ = rank_order(score(result.objectives[metric], metric), result.points.gpus, result.points.rate)
    keep = static.best_row_of_each_deployment(result.points, _shape_ids(result), order)
    return BranchResult(
        result.branch,
        result.tables,
        result.points.take(keep),
        {name: values[keep] for name, values in result.columns.items()},
        {name: values[keep] for name, values in result.objectives.items()},
    )


def _shape_ids(result: BranchResult) -> list[static.Ints]:
    rows = [result.points.decode_row]
    if result.branch.topology == "disagg":
        rows.insert(0, result.points.prefill_row)
    return [table.shape[row] for table, row in zip(result.tables, rows, strict=True)]


def _deployments(result: BranchResult) -> int:
    """How many different shapes and worker counts the points have."""
    if len(result.points) == 0:
        return 0
    columns = [*_shape_ids(result), result.points.prefill_workers, result.points.decode_workers]
    return len(np.unique(np.stack(columns, axis=1), axis=0))


def _counts(branch: Branch, refusal: static.Refusal) -> int:
    """Worker counts within the budget that a refused shape, or pair of shapes, stands for."""
    if branch.topology == "agg":
        return agg_pairs(refusal.shapes, branch.limits)
    return disagg_pairs(refusal.shapes[:1], refusal.shapes[1:], branch.limits)


def _evaluations(result: BranchResult, refused_: _Refused) -> Evaluations:
    """The feasible points, then one row for each refused shape or pair of shapes."""
    count, others = len(result.points), len(refused_.refusals)
    none = (None,) * others
    names = [" + ".join(shape.label for shape in refusal.shapes) for refusal in refused_.refusals]
    return Evaluations(
        branch=result.branch.name,
        id=(
            *(result.point_id(point) for point in range(count)),
            *(f"{result.branch.name}/refused/{index}" for index in range(others)),
        ),
        status=("feasible",) * count + ("infeasible",) * others,
        reason=(None,) * count + tuple(refusal.reason for refusal in refused_.refusals),
        detail=("",) * count
        + tuple(
            f"{refusal.detail} ({worker_counts} worker counts)"
            for refusal, worker_counts in zip(refused_.refusals, refused_.counts, strict=True)
        ),
        used_gpus=tuple(result.points.gpus.tolist())
        + tuple(sum(shape.gpus for shape in refusal.shapes) for refusal in refused_.refusals),
        summary=tuple(result.summary(point) for point in range(count)) + tuple(names),
        metrics={name: tuple(values.tolist()) + none for name, values in result.columns.items()},
        objectives={name: tuple(values.tolist()) + none for name, values in result.objectives.items()},
    )


def _objective_text(candidate: EvaluatedCandidate, names: tuple[Metric, ...]) -> str:
    return ", ".join(f"{name} {candidate.evaluation.objectives[name]:.2f}" for name in names)


def _unsupported_message(coverage: list[TupleCoverage]) -> str:
    return "; ".join(
        f"{each.backend}/{each.topology} {each.reason}: {each.message}" for each in coverage if not each.supported
    )
