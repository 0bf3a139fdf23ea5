"""Which candidates are published: the first of the ordered reserve that render and verify."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from dgdr_api.candidate import EvaluatedCandidate
from dgdr_api.errors import NameTooLong
from dgdr_api.identity import dgd_spec_hash, point_hash, safe_dgd_name
from dgdr_api.request import SearchSpec

from dgdr_publisher.errors import NotRenderableError, RenderError
from dgdr_publisher.rendering import Rendered, render_candidate


@dataclass(frozen=True)
class Chosen:
    """A candidate that renders and verifies."""

    evaluated: EvaluatedCandidate
    rendered: Rendered
    spec: dict[str, Any]
    """Spec of the published candidate: the deployment's spec, flat, and ``parameters``."""
    point_hash: str
    dgd_spec_hash: str


@dataclass(frozen=True)
class Selection:
    """What is published, and why the others are not."""

    chosen: tuple[Chosen, ...]
    unrenderable: Mapping[str, str]
    """Cause by id of the point."""
    repeated: tuple[str, ...]
    """Ids of points that are the same candidate as one before."""


class Choose(Protocol):
    """Renders one candidate; ``choose`` below, or one that remembers."""

    def __call__(self, evaluated: EvaluatedCandidate, spec: SearchSpec, request_name: str, namespace: str) -> Chosen:
        """Render it; raises RenderError."""


def choose(evaluated: EvaluatedCandidate, spec: SearchSpec, request_name: str, namespace: str) -> Chosen:
    """Render one candidate under the name that its point hash gives the deployment.

    The hash follows from what is rendered, so it is rendered under another name of the same length first.

    Raises:
        RenderError: it cannot be rendered, or reads back differently.
    """
    try:
        provisional = safe_dgd_name(request_name, evaluated.id, namespace)
    except NameTooLong as error:
        raise NotRenderableError("metadata.namespace", namespace, str(error)) from error
    rendered = render_candidate(evaluated, spec, provisional, namespace)
    candidate_spec = {**rendered.dgd["spec"], "parameters": dict(evaluated.candidate.parameters)}
    point = point_hash(candidate_spec)
    dgd = {**rendered.dgd, "metadata": {"name": safe_dgd_name(request_name, point, namespace)}}
    return Chosen(
        evaluated=evaluated,
        rendered=Rendered(dgd, rendered.materialization, rendered.renderer_version),
        spec=candidate_spec,
        point_hash=point,
        dgd_spec_hash=dgd_spec_hash(candidate_spec),
    )


def select(
    reserve: Iterable[str],
    candidates: Mapping[str, EvaluatedCandidate],
    *,
    spec: SearchSpec,
    request_name: str,
    namespace: str,
    limit: int,
    choose: Choose = choose,
) -> Selection:
    """Render the reserve in its order until ``limit`` candidates are found.

    Args:
        reserve: ids, best first.
        candidates: what the events carried, by id.
        spec: the run's spec.
        request_name: names the deployments.
        namespace: where they would be created.
        limit: candidates wanted.
        choose: renders one candidate.
    """
    chosen: dict[tuple[str, str], Chosen] = {}
    unrenderable: dict[str, str] = {}
    repeated: list[str] = []
    for point in reserve:
        if len(chosen) == limit:
            break
        evaluated = candidates.get(point)
        if evaluated is None:
            unrenderable[point] = "the search named it but sent no candidate"
            continue
        try:
            found = choose(evaluated, spec, request_name, namespace)
        except RenderError as error:
            unrenderable[point] = str(error)
            continue
        key = (found.dgd_spec_hash, found.point_hash)
        if key in chosen:
            repeated.append(point)
        else:
            chosen[key] = found
    return Selection(tuple(chosen.values()), unrenderable, tuple(repeated))
