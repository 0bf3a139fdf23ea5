"""What is to be published of a search: the candidates that render, the status that names them, each point's fate."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from dgdr_api import reasons
from dgdr_api.candidate import EvaluatedCandidate
from dgdr_api.candidate_resource import DynamoGraphDeploymentCandidate
from dgdr_api.conditions import MAX_MESSAGE_BYTES, cut
from dgdr_api.request import SearchSpec
from dgdr_api.run import DynamoGraphDeploymentRun, RunOutcome, RunStatus

from dgdr_publisher import run_status
from dgdr_publisher.errors import RenderError
from dgdr_publisher.resources import RunIdentity, candidate_resource
from dgdr_publisher.search_state import SearchState, best_of
from dgdr_publisher.selection import Choose, Chosen, Selection, choose, select


@dataclass(frozen=True, kw_only=True)
class Publication:
    """The objects that the store should hold."""

    status: RunStatus
    candidates: tuple[DynamoGraphDeploymentCandidate, ...] | None
    """In order; None: those that are there stay as they are."""
    best: Chosen | None
    """Rank 1, or the knee of the front."""
    best_name: str | None = None
    points: Mapping[str, str]
    """By id, the name of the published candidate or why there is none."""


def final_publication(
    run: DynamoGraphDeploymentRun, identity: RunIdentity, state: SearchState, choose: Choose = choose
) -> Publication:
    """What is published at the end of a search: the first of the reserve that render, ranked.

    Args:
        run: the run.
        identity: its identity.
        state: a state with an outcome.
        choose: renders one candidate.

    Raises:
        ValueError: the state has no outcome.
    """
    outcome = state.outcome
    if outcome is None:
        raise ValueError("the search has not ended")
    if state.failed:
        return Publication(status=run_status.after_end(state.status, outcome), candidates=None, best=None, points={})
    selection = _selection(run, identity, state, choose)
    found = _published(run, identity, state, selection, ranked=run.spec.objective.mode == "optimize", now=outcome.time)
    if not selection.chosen and selection.unrenderable and outcome.reason in reasons.HONEST_OUTCOMES:
        cause = next(iter(selection.unrenderable.values()))
        text = f"none of {len(selection.unrenderable)} candidates could be rendered; the first: {cause}"
        outcome = RunOutcome(reason=reasons.NOTHING_RENDERABLE.name, message=text, time=outcome.time)
    outcome = outcome.model_copy(update={"message": cut(outcome.message, MAX_MESSAGE_BYTES)})
    return replace(found, status=run_status.after_end(found.status, outcome))


def current_publication(
    run: DynamoGraphDeploymentRun, identity: RunIdentity, state: SearchState, choose: Choose, now: str
) -> Publication:
    """What is published while the search runs: the best so far, without ranks.

    Candidates stay as they are while nothing renders yet, and while a search that began again has not caught up.
    """
    if state.caught_up and state.reserve:
        selection = _selection(run, identity, state, choose)
        if selection.chosen:
            return _published(run, identity, state, selection, ranked=False, now=now)
    return Publication(status=state.status, candidates=None, best=None, points={})


class RememberedChoice:
    """Renders each candidate once, however often it is chosen.

    What is rendered follows from candidate and ReplaySpec; the score of a point may change as the search goes on.
    """

    def __init__(self, choose: Choose = choose) -> None:
        self._choose = choose
        self._known: dict[str, tuple[EvaluatedCandidate, Chosen | RenderError]] = {}

    def __call__(self, evaluated: EvaluatedCandidate, spec: SearchSpec, request_name: str, namespace: str) -> Chosen:
        """Render a candidate, or say again how it was rendered.

        Raises:
            RenderError: it cannot be rendered, or reads back differently.
        """
        known = self._known.get(evaluated.id)
        if known is None or not _same_deployment(known[0], evaluated):
            known = (evaluated, self._rendered(evaluated, spec, request_name, namespace))
            self._known[evaluated.id] = known
        result = known[1]
        if isinstance(result, RenderError):
            raise result.with_traceback(None)
        return replace(result, evaluated=evaluated)

    def _rendered(
        self, evaluated: EvaluatedCandidate, spec: SearchSpec, request_name: str, namespace: str
    ) -> Chosen | RenderError:
        try:
            return self._choose(evaluated, spec, request_name, namespace)
        except RenderError as error:
            return error


def _same_deployment(one: EvaluatedCandidate, other: EvaluatedCandidate) -> bool:
    return one is other or (one.candidate == other.candidate and one.replay_spec == other.replay_spec)


def _selection(run: DynamoGraphDeploymentRun, identity: RunIdentity, state: SearchState, choose: Choose) -> Selection:
    return select(
        state.reserve,
        state.candidates,
        spec=run.spec,
        request_name=identity.request_name,
        namespace=identity.namespace,
        limit=run.spec.recommendation.max_candidates,
        choose=choose,
    )


def _published(
    run: DynamoGraphDeploymentRun,
    identity: RunIdentity,
    state: SearchState,
    selection: Selection,
    *,
    ranked: bool,
    now: str,
) -> Publication:
    resources = tuple(
        candidate_resource(chosen, identity, rank=rank if ranked else None, versions=state.versions)
        for rank, chosen in enumerate(selection.chosen, start=1)
    )
    names = [resource.metadata.name for resource in resources]
    best = best_of([chosen.evaluated for chosen in selection.chosen], run.spec.objective.mode)
    at = next((at for at, chosen in enumerate(selection.chosen) if chosen.evaluated is best), None)
    return Publication(
        status=run_status.after_publication(state.status, selection, names, best, now),
        candidates=resources,
        best=None if at is None else selection.chosen[at],
        best_name=None if at is None else names[at],
        points=_points(selection, names),
    )


def _points(selection: Selection, names: list[str]) -> dict[str, str]:
    found = {chosen.evaluated.id: name for chosen, name in zip(selection.chosen, names, strict=True)}
    found |= {point: f"not rendered: {cause}" for point, cause in selection.unrenderable.items()}
    return found | dict.fromkeys(selection.repeated, "the same as a candidate before it")
