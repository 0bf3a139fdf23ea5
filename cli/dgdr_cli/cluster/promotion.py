"""What a candidate becomes when it is promoted, and why it may not be. Pure: objects in, a deployment or a refusal out.

What was simulated is exactly what is deployed: the spec is that of the candidate, its hashes are compared, and it is
read back and compared with the ReplaySpec that was scored.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dgdr_api.canonical import NotCanonicalError
from dgdr_api.group import (
    ANNOTATION_CANDIDATE,
    ANNOTATION_DGD_SPEC_HASH,
    ANNOTATION_INPUT_HASH,
    ANNOTATION_POINT_HASH,
    ANNOTATION_RUN,
    DGD_API_VERSION,
    DGD_KIND,
    LABEL_DGD_SPEC_HASH,
    LABEL_INPUT_HASH,
    LABEL_POINT_HASH,
    LABEL_RUN_UID,
    RUN_KIND,
)
from dgdr_api.identity import deployable, dgd_name_problems, dgd_spec_hash, point_hash
from dgdr_api.run import RunSpec
from dgdr_publisher.errors import DocumentError
from dgdr_publisher.rendering import evaluated_from_document, verify_dgd
from pydantic import ValidationError

from dgdr_cli.cluster.objects import Object, at, completed, controller, json_text, list_at, name_of, refs, text_at
from dgdr_cli.cluster.outcome import outcome_text
from dgdr_cli.exit_codes import HONEST_NO, WRONG_INPUT

MOST_DIFFERENCES = 5


@dataclass(frozen=True)
class Refusal:
    """Why a candidate is not promoted."""

    code: int
    """2: another name, run or moment would do. 3: the candidate is not what was evaluated."""
    message: str


@dataclass(frozen=True)
class Case:
    """Everything that a promotion depends on."""

    candidate: Object
    run: Object | None
    """The run that the candidate names as its owner; None: it is gone."""
    name: str
    """Of the deployment."""
    namespace: str


def promoted(candidate: Object, name: str) -> dict[str, Any]:
    """The deployment that a candidate becomes.

    Args:
        candidate: as the API server holds it.
        name: of the deployment.
    """
    meta = candidate["metadata"]
    annotations = {
        ANNOTATION_RUN: text_at(controller(candidate), "name"),
        ANNOTATION_CANDIDATE: name_of(candidate),
        ANNOTATION_INPUT_HASH: text_at(meta, "labels", LABEL_INPUT_HASH),
        ANNOTATION_POINT_HASH: text_at(meta, "labels", LABEL_POINT_HASH),
        ANNOTATION_DGD_SPEC_HASH: text_at(meta, "labels", LABEL_DGD_SPEC_HASH),
    }
    return {
        "apiVersion": DGD_API_VERSION,
        "kind": DGD_KIND,
        "metadata": {"name": name, "namespace": meta["namespace"], "annotations": annotations},
        "spec": deployable(candidate["spec"]),
    }


def refusal(case: Case) -> Refusal | None:
    """Why the candidate is not promoted; None: it may be."""
    return next((found for check in _CHECKS if (found := check(case)) is not None), None)


def changes(sent: Any, stored: Any, pointer: str = "") -> Iterator[str]:  # noqa: ANN401 - any JSON value
    """Yield what a server made of a value that it should have kept: fields may come, none may change or go."""
    if isinstance(sent, Mapping) and isinstance(stored, Mapping):
        for key, value in sent.items():
            place = f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}"
            if key in stored:
                yield from changes(value, stored[key], place)
            else:
                yield f"{place} would be dropped"
    elif isinstance(sent, list) and isinstance(stored, list) and len(sent) == len(stored):
        for index, pair in enumerate(zip(sent, stored, strict=True)):
            yield from changes(*pair, f"{pointer}/{index}")
    elif json_text(sent) != json_text(stored):
        yield f"{pointer} would be {json_text(stored)}, not {json_text(sent)}"


def _is_going(case: Case) -> Refusal | None:
    if not at(case.candidate, "metadata", "deletionTimestamp"):
        return None
    return Refusal(WRONG_INPUT, "it is being deleted; the run names those that stay")


def _has_no_run(case: Case) -> Refusal | None:
    owner = controller(case.candidate)
    run = text_at(owner, "name")
    if owner.get("kind") != RUN_KIND or not run:
        return Refusal(WRONG_INPUT, "no run owns it, so nobody can say how it was found; take one that a run names")
    if case.run is None:
        return Refusal(WRONG_INPUT, f"its run {run} is gone; take a candidate of a run that is there")
    uid = text_at(case.run, "metadata", "uid")
    said = (text_at(owner, "uid"), text_at(case.candidate, "metadata", "labels", LABEL_RUN_UID))
    if said != (uid, uid):
        return Refusal(WRONG_INPUT, f"it belongs to another run of the name {run}: {uid} is not {' or '.join(said)}")
    return None


def _run_goes_on(case: Case) -> Refusal | None:
    run = _run(case)
    if completed(run) is not None:
        return None
    return Refusal(
        WRONG_INPUT,
        f"run {name_of(run)} has not ended ({outcome_text(run)}), a better one may follow; wait for it, or cancel it: "
        "what is published stays",
    )


def _is_not_named(case: Case) -> Refusal | None:
    run = _run(case)
    if name_of(case.candidate) in refs(run, "candidateRefs"):
        return None
    return Refusal(WRONG_INPUT, f"run {name_of(run)} does not name it among its candidates; take one that it names")


def _has_another_hash(case: Case) -> Refusal | None:
    spec = at(case.candidate, "spec", default={})
    try:
        found = {LABEL_DGD_SPEC_HASH: dgd_spec_hash(spec), LABEL_POINT_HASH: point_hash(spec)}
    except NotCanonicalError as error:
        return Refusal(HONEST_NO, f"its spec has no hash: {error}")
    labels = at(case.candidate, "metadata", "labels", default={})
    for label, value in found.items():
        if text_at(labels, label) != value:
            return Refusal(
                HONEST_NO,
                f"its spec has the hash {value}, its label {label} says {text_at(labels, label) or 'nothing'}: "
                "it is not what was evaluated",
            )
    said = text_at(_run(case), "metadata", "annotations", ANNOTATION_INPUT_HASH)
    if text_at(labels, LABEL_INPUT_HASH) != said:
        return Refusal(HONEST_NO, f"its label {LABEL_INPUT_HASH} is not that of the run, {said or 'which has none'}")
    return None


def _has_a_name_that_does_not_fit(case: Case) -> Refusal | None:
    components = [
        (text_at(one, "name"), at(one, "multinode", "nodeCount") not in (None, 1))
        for one in list_at(case.candidate, "spec", "components")
    ]
    problems = dgd_name_problems(case.namespace, case.name, components)
    if not case.name[:1].isalpha():
        problems.append(f"name {case.name} must begin with a letter: Services are named after it")
    return Refusal(WRONG_INPUT, f"--name {case.name}: {'; '.join(problems)}") if problems else None


def _reads_back_differently(case: Case) -> Refusal | None:
    run = _run(case)
    try:
        spec = RunSpec.model_validate(run["spec"])
        evaluated = evaluated_from_document(case.candidate)
        found = verify_dgd(promoted(case.candidate, case.name), evaluated, spec)
    except (ValidationError, DocumentError) as error:
        return Refusal(HONEST_NO, f"it cannot be compared with what was evaluated: {str(error).splitlines()[0]}")
    if not found:
        return None
    shown = "; ".join(str(one) for one in found[:MOST_DIFFERENCES])
    return Refusal(HONEST_NO, f"it is not what was evaluated: {shown}")


def _run(case: Case) -> Object:
    if case.run is None:
        raise TypeError("an earlier check refuses a candidate without a run")
    return case.run


_CHECKS: tuple[Callable[[Case], Refusal | None], ...] = (
    _has_a_name_that_does_not_fit,
    _is_going,
    _has_no_run,
    _run_goes_on,
    _is_not_named,
    _has_another_hash,
    _reads_back_differently,
)
