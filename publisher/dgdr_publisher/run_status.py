"""The status of a run as a function of its events.

Each function takes a status and what happened, and returns the next status. Pure; the time is passed in.
"""

from collections.abc import Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version

from dgdr_api import reasons
from dgdr_api.candidate import EvaluatedCandidate, Shares
from dgdr_api.completion import RunFacts, completion, phase
from dgdr_api.conditions import Condition, condition, cut
from dgdr_api.events import Counters, Resolved, RoundCompleted, TupleCoverage, VersionLink
from dgdr_api.reasons import Reason
from dgdr_api.run import (
    MAX_VERSIONS,
    Best,
    BoundVersion,
    BranchProgress,
    CandidateCounts,
    CandidateRef,
    Progress,
    Provenance,
    Rounds,
    RunOutcome,
    RunStatus,
)

from dgdr_publisher.candidate_status import score_text, summary
from dgdr_publisher.errors import EventError
from dgdr_publisher.selection import Selection

_MAX_CAUSES = 3
_MAX_DISPLAY = 63
_NEVER_BACK = ("feasible", "infeasible", "unsupported", "failed", "timed_out", "cache_hits", "pruned")


def after_start(status: RunStatus, now: str) -> RunStatus:
    """The search begins: nothing is known yet."""
    found = status.model_copy(update={"progress": _progress(status), "start_time": status.start_time or now})
    return _standing(found, now)


def after_resolved(status: RunStatus, data: Resolved, now: str) -> RunStatus:
    """The search space is known: branches, versions, whether everything asked for can be evaluated."""
    known = {branch.name: branch for branch in _progress(status).branches}
    branches = tuple(
        BranchProgress(
            name=plan.name,
            rounds=known[plan.name].rounds if plan.name in known else Rounds(completed=0, total=1),
            pool=plan.pool,
        )
        for plan in data.branches
    )
    seed = data.limits.get("seed")
    found = status.model_copy(
        update={
            "progress": _progress(status).model_copy(
                update={
                    "branches": branches,
                    "summary": _progress(status).summary or f"0/{sum(branch.pool for branch in branches)}",
                }
            ),
            # Three backends on four GPU types have more than the status holds; condition VersionBound tells of all.
            "versions": tuple(_bound_version(link) for link in data.versions[:MAX_VERSIONS]),
            "provenance": Provenance(sweeper_version=_own_version(), seed=seed if isinstance(seed, int) else None),
            "start_time": status.start_time or now,
        }
    )
    return _standing(_with(found, now, _supported(data.coverage), _bound(data.versions)), now)


def after_round(status: RunStatus, data: RoundCompleted, best: EvaluatedCandidate | None, now: str) -> RunStatus:
    """A round ended: rounds, counters, the best so far."""
    progress = _progress(status)
    branches = tuple(
        branch if branch.name != data.branch else branch.model_copy(update={"rounds": _rounds(branch.rounds, data)})
        for branch in progress.branches
    )
    progress = _counted(progress.model_copy(update={"branches": branches}), data.counters)
    return _standing(status.model_copy(update={"progress": progress, "best": _best(best) or status.best}), now)


def after_publication(
    status: RunStatus,
    selection: Selection,
    names: Sequence[str],
    best: EvaluatedCandidate | None,
    now: str,
) -> RunStatus:
    """Candidates are published, or it is known why none is."""
    progress = _progress(status)
    counts = progress.candidates.model_copy(
        update={"published": len(names), "unrenderable": len(selection.unrenderable)}
    )
    found = status.model_copy(
        update={
            "progress": progress.model_copy(update={"candidates": counts}),
            "candidate_refs": tuple(CandidateRef(name=name) for name in names),
            "best": _best(best),
            "provenance": _provenance(status.provenance, selection),
            "versions": tuple(_with_renderer(bound, selection) for bound in status.versions),
        }
    )
    return _with(found, now, _published(selection))


def with_shown(status: RunStatus, shown: RunStatus) -> RunStatus:
    """A status with what another one says of candidates that stay as they are."""
    counts = None if shown.progress is None else shown.progress.candidates
    published = [one for one in shown.conditions if one.type == reasons.PUBLISHED]
    others = [one for one in status.conditions if one.type != reasons.PUBLISHED]
    progress = _progress(status)
    renderers = {(bound.backend, bound.sku): bound.renderer for bound in shown.versions}
    return status.model_copy(
        update={
            "progress": progress if counts is None else progress.model_copy(update={"candidates": counts}),
            "candidate_refs": shown.candidate_refs,
            "provenance": shown.provenance or status.provenance,
            "versions": tuple(
                bound.model_copy(update={"renderer": renderers.get((bound.backend, bound.sku))})
                for bound in status.versions
            ),
            "conditions": _in_order([*others, *published]),
        }
    )


def counted(status: RunStatus, counters: Counters, pareto_front: int, *, proven_best: bool) -> Progress:
    """The progress with the final counters of the search."""
    progress = _counted(_progress(status), counters)
    counts = progress.candidates.model_copy(update={"pareto_front": pareto_front})
    return progress.model_copy(update={"candidates": counts, "proven_best": proven_best})


def done_points(counters: Counters) -> int:
    """Points of which the search knows what becomes of them."""
    return max(counters.scheduled - counters.remaining - counters.running, 0)


def after_end(status: RunStatus, outcome: RunOutcome) -> RunStatus:
    """The search ended."""
    ended = status.model_copy(
        update={
            "outcome": outcome,
            "start_time": status.start_time or outcome.time,
            "completion_time": outcome.time,
        }
    )
    return _standing(ended, outcome.time)


def _standing(status: RunStatus, now: str) -> RunStatus:
    """``Completed``, phase and message: what `dgdr_api.completion` makes of progress and outcome."""
    found = completion(RunFacts(progress=status.progress, outcome=status.outcome))
    status = status.model_copy(
        update={"phase": phase(found), "last_progress_time": now, "message": cut(found.message, 1024) or status.message}
    )
    return _with(status, now, (found.reason, found.message))


def _with(status: RunStatus, now: str, *said: tuple[Reason, str]) -> RunStatus:
    """The status with these conditions in place of those of the same type, in the order of their types."""
    by_type: dict[str, Condition] = {one.type: one for one in status.conditions}
    for reason, message in said:
        by_type[reason.type] = condition(reason, message, now=now, previous=status.conditions)
    return status.model_copy(update={"conditions": _in_order(by_type.values())})


def _in_order(conditions: Iterable[Condition]) -> tuple[Condition, ...]:
    by_type = {one.type: one for one in conditions}
    order = (reasons.SUPPORTED, reasons.VERSION_BOUND, reasons.PUBLISHED, reasons.COMPLETED)
    return tuple(by_type[kind] for kind in order if kind in by_type)


def _supported(coverage: Sequence[TupleCoverage]) -> tuple[Reason, str]:
    lacking = [one for one in coverage if not one.supported]
    text = "; ".join(f"{one.name} {one.reason}: {one.message}" for one in lacking)
    except_ = "".join(
        f"; {one.name} supported except {', '.join(one.not_modelled)}" for one in coverage if one.not_modelled
    )
    if not lacking:
        return reasons.ALL_TUPLES, f"{len(coverage)} of {len(coverage)} backends and topologies{except_}"
    if len(lacking) < len(coverage):
        return reasons.SOME_TUPLES, f"{len(coverage) - len(lacking)} of {len(coverage)}{except_}; {text}"
    try:
        return reasons.reason_named(reasons.SUPPORTED, lacking[0].reason), text
    except KeyError as error:
        raise EventError(f"search.resolved: coverage[].reason: {error.args[0]}") from error


def _bound(versions: Sequence[VersionLink]) -> tuple[Reason, str]:
    links = "; ".join(
        f"Dynamo {link.runtime}, {link.backend} {link.engine}, data of {link.performance_data} on {link.sku}"
        for link in versions
    )
    if any(link.pinned for link in versions):
        return reasons.PERF_DATA_PINNED, links
    borrowed = ", ".join(dict.fromkeys(table for link in versions for table in link.borrowed_tables))
    if borrowed:
        return reasons.BOUND_WITH_BORROWED_DATA, f"{links}; borrowed: {borrowed}"
    return reasons.BOUND, links


def _published(selection: Selection) -> tuple[Reason, str]:
    causes = list(selection.unrenderable.items())
    text = "; ".join(f"{point}: {cause}" for point, cause in causes[:_MAX_CAUSES])
    if len(causes) > _MAX_CAUSES:
        text += f"; and {len(causes) - _MAX_CAUSES} more"
    if selection.chosen:
        count = f"{len(selection.chosen)} published"
        return (reasons.SOME_UNRENDERABLE, f"{count}; {text}") if causes else (reasons.ALL_PUBLISHED, count)
    return (reasons.NOTHING_RENDERED, text) if causes else (reasons.NOTHING_TO_PUBLISH, "no point was feasible")


def _best(evaluated: EvaluatedCandidate | None) -> Best | None:
    if evaluated is None:
        return None
    return Best(
        score=evaluated.evaluation.score,
        display=cut(score_text(evaluated), _MAX_DISPLAY),
        used_gpus=evaluated.candidate.used_gpus,
        mode=evaluated.candidate.topology,
        backend=evaluated.candidate.backend,
        summary=summary(evaluated),
    )


def _counted(progress: Progress, counters: Counters) -> Progress:
    """Counters of what is done never go backwards, also when a new attempt counts anew."""
    old = progress.evaluations
    kept = {name: max(getattr(old, name), getattr(counters, name)) for name in _NEVER_BACK}
    if done_points(old) > done_points(counters):
        kept |= {name: getattr(old, name) for name in ("scheduled", "running", "remaining")}
    counters = counters.model_copy(update=kept)
    summary = f"{done_points(counters)}/{counters.scheduled}"
    return progress.model_copy(update={"evaluations": counters, "summary": summary})


def _rounds(known: Rounds, data: RoundCompleted) -> Rounds:
    return Rounds(completed=max(known.completed, data.round), total=max(known.total, data.total))


def _provenance(known: Provenance | None, selection: Selection) -> Provenance:
    evaluated = [chosen.evaluated for chosen in selection.chosen]
    models = [one.candidate.parameters.get("performanceModel") for one in evaluated]
    shares = [one.evaluation.provenance for one in evaluated]
    mean = None
    if shares:
        names = ("silicon", "empirical", "estimated", "borrowed")
        mean = Shares(**{name: min(1.0, sum(getattr(one, name) for one in shares) / len(shares)) for name in names})
    return (known or Provenance()).model_copy(
        update={
            "performance_model_version": next((str(model) for model in models if model), None),
            "data": mean,
        }
    )


def _with_renderer(bound: BoundVersion, selection: Selection) -> BoundVersion:
    used = [
        one.rendered.renderer_version for one in selection.chosen if one.evaluated.candidate.backend == bound.backend
    ]
    return bound.model_copy(update={"renderer": used[0]}) if used else bound


def _bound_version(link: VersionLink) -> BoundVersion:
    return BoundVersion(
        backend=link.backend,
        sku=link.sku,
        runtime=link.runtime,
        engine=link.engine,
        performance_data=link.performance_data,
    )


def _progress(status: RunStatus) -> Progress:
    return status.progress or Progress(candidates=CandidateCounts())


def _own_version() -> str | None:
    try:
        return version("dgdr")
    except PackageNotFoundError:
        return None
