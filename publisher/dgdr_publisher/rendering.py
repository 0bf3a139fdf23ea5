"""One candidate to one verified deployment, and documents to candidates: what ``dgdr render`` and ``verify`` use."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dgdr_api.candidate import Candidate, EvaluatedCandidate, Evaluation
from dgdr_api.candidate_resource import DynamoGraphDeploymentCandidate, MaterializedValue
from dgdr_api.canonical import sha256_hex
from dgdr_api.group import CANDIDATE_KIND
from dgdr_api.replay_spec import ReplaySpec
from dgdr_api.request import SearchSpec
from pydantic import ValidationError

from dgdr_publisher.errors import DocumentError, ReadBackDifferenceError
from dgdr_publisher.materialize.table import materialize
from dgdr_publisher.render.context import build_context, template_of
from dgdr_publisher.render.settings import deployment_of
from dgdr_publisher.render.templates import render_template
from dgdr_publisher.verify import compare
from dgdr_publisher.verify.reading import Difference
from dgdr_publisher.verify.surroundings import Surroundings


@dataclass(frozen=True)
class Rendered:
    """A deployment that reads back as what was evaluated."""

    dgd: dict[str, Any]
    """A v1beta1 DynamoGraphDeployment."""
    materialization: tuple[MaterializedValue, ...]
    renderer_version: str
    """Template id and version."""


def render_candidate(
    evaluated: EvaluatedCandidate, run_spec: SearchSpec, dgd_name: str, namespace: str = "default"
) -> Rendered:
    """Render a candidate, map every evaluated value and read the result back.

    Args:
        evaluated: candidate and the ReplaySpec that was scored.
        run_spec: a run's spec, or a request's: image, model files, nodes.
        dgd_name: name of the deployment.
        namespace: where it would be created; bounds the name.

    Raises:
        RenderError: a value that cannot be expressed, that found no place, or that reads back differently.
    """
    deployment = deployment_of(run_spec, evaluated)
    template = template_of(evaluated, deployment)
    dgd = render_template(template, build_context(evaluated, deployment, template, dgd_name=dgd_name))
    rows = materialize(dgd, evaluated)
    differences = compare.verify_dgd(dgd, evaluated, Surroundings(spec=run_spec, namespace=namespace))
    if differences:
        raise ReadBackDifferenceError([str(difference) for difference in differences])
    return Rendered(dgd=dgd, materialization=rows, renderer_version=template.renderer_version)


def verify_dgd(
    dgd: Mapping[str, Any], evaluated: EvaluatedCandidate, run_spec: SearchSpec | None = None
) -> list[Difference]:
    """The read-back check alone; with the request, images, nodes and model files are compared too."""
    return compare.verify_dgd(dgd, evaluated, Surroundings(spec=run_spec))


def evaluated_from_document(document: Mapping[str, Any]) -> EvaluatedCandidate:
    """The candidate in a document: kind Candidate as events carry it, or a published candidate with its status.

    Raises:
        DocumentError: another kind, a part that is missing, or a value that is not valid.
    """
    kind = document.get("kind")
    try:
        if kind == "Candidate":
            return EvaluatedCandidate.model_validate(document)
        if kind == CANDIDATE_KIND:
            return _of_resource(DynamoGraphDeploymentCandidate.model_validate(document))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(step) for step in first["loc"]) or "the document"
        raise DocumentError(f"{kind}: {where}: {first['msg']}") from error
    raise DocumentError(f"kind {kind!r} is no candidate: Candidate and {CANDIDATE_KIND} are accepted")


def _of_resource(resource: DynamoGraphDeploymentCandidate) -> EvaluatedCandidate:
    evaluation = None if resource.status is None else resource.status.evaluation
    if evaluation is None or evaluation.provenance is None:
        raise DocumentError(f"{CANDIDATE_KIND} {resource.metadata.name}: status.evaluation is missing")
    spec = ReplaySpec.model_validate(evaluation.replay_spec)
    candidate = Candidate.of_replay_spec(
        spec, model=_model_of(resource), parameters=resource.spec.get("parameters", {})
    )
    return EvaluatedCandidate(
        id=candidate_id(candidate),
        candidate=candidate,
        replay_spec=spec,
        evaluation=Evaluation(
            score=evaluation.score,
            used_gpus=evaluation.used_gpus,
            objectives=evaluation.objectives,
            metrics=evaluation.metrics,
            memory=evaluation.memory,
            provenance=evaluation.provenance,
        ),
    )


def candidate_id(candidate: Candidate) -> str:
    """An id for a candidate that is read from its resource, which does not carry the one of its run's events.

    The first 16 hex digits of the SHA-256 of its canonical JSON.
    """
    return sha256_hex(candidate.model_dump(mode="json", by_alias=True), 16)


def _model_of(resource: DynamoGraphDeploymentCandidate) -> str:
    """The served model name: the materialization table says it, whatever the components are told to load."""
    rows = () if resource.status is None else resource.status.materialization
    for row in rows:
        if row.parameter == "model":
            return str(json.loads(row.value))
    raise DocumentError(f"{CANDIDATE_KIND} {resource.metadata.name}: status.materialization names no model")
