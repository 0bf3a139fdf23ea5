"""From a request file to what engine and publisher take: admitted, with the command line's changes in it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dgdr_cli.documents import about, named, read_mapping
from dgdr_cli.exit_codes import WRONG_INPUT
from dgdr_cli.exits import fail
from dgdr_cli.model_inputs import model_inputs

if TYPE_CHECKING:
    from dgdr_api.request import DynamoGraphDeploymentRequest
    from dgdr_api.run import RunSpec
    from dgdr_job.catalog.local import ModelInputs


@dataclass(frozen=True)
class Admitted:
    """A request that may run."""

    request: "DynamoGraphDeploymentRequest"
    spec: "RunSpec"
    """Its spec with every default explicit."""
    inputs: "ModelInputs | None" = None
    """Where the objects lie that it names; None: no search is meant."""


def admitted(
    path: Path,
    changes: Mapping[tuple[str, ...], Any] | None = None,
    *,
    config_maps: Sequence[str] = (),
    mounts: Sequence[str] = (),
) -> Admitted:
    """Read and admit a request; ends with exit 2, naming the file, where it may not run.

    Args:
        path: file of the request.
        changes: values by path below ``spec``, e.g. ``("search", "fidelity")``, that the command line sets.
        config_maps: ``NAME=DIR`` of ConfigMaps that the request names.
        mounts: ``CLAIM=DIR`` of claims that the request names.
    """
    document = with_changes(read_mapping(path), {("spec", *place): value for place, value in (changes or {}).items()})
    return _admitted(path, document, config_maps, mounts)


def asked_by(path: Path) -> Admitted:
    """What a candidate belongs to: a request, or the run.yaml of a search, which a native configuration leaves too.

    Ends with exit 2, naming the file, where it is neither.
    """
    from dgdr_api.group import ANNOTATION_REQUEST_NAME, REQUEST_KIND, RUN_KIND

    document = dict(read_mapping(path))
    metadata = document.get("metadata")
    if document.get("kind") == RUN_KIND and isinstance(metadata, dict):
        annotations = metadata.get("annotations")
        name = annotations.get(ANNOTATION_REQUEST_NAME) if isinstance(annotations, dict) else None
        if name is None:
            fail(WRONG_INPUT, f"{named(path)}: metadata.annotations has no {ANNOTATION_REQUEST_NAME}")
        kept = {"name": name, "namespace": metadata.get("namespace", "default")}
        document = {key: value for key, value in document.items() if key != "status"}
        document |= {"kind": REQUEST_KIND, "metadata": kept}
    return _admitted(path, document, (), ())


def _admitted(path: Path, document: dict[str, Any], config_maps: Sequence[str], mounts: Sequence[str]) -> Admitted:
    from dgdr_api.admission import Rejected, admit
    from dgdr_api.parse import request_of

    with about(path):
        request = request_of(document)
        verdict = admit(request)
    if isinstance(verdict, Rejected):
        fail(
            WRONG_INPUT,
            f"{named(path)}: the request is not accepted ({verdict.reason.name})\n"
            + "\n".join(f"  {each.field}: {each.message}" for each in verdict.rejections),
        )
    return Admitted(request, verdict.spec, model_inputs(verdict.spec.model_ref, config_maps, mounts))


def with_changes(document: Mapping[str, Any], changes: Mapping[tuple[str, ...], Any]) -> dict[str, Any]:
    """A document with values set at paths."""
    changed = dict(document)
    for place, value in changes.items():
        changed = _with(changed, place, value)
    return changed


def _with(document: dict[str, Any], place: tuple[str, ...], value: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON
    """The document with one value set; where the way is blocked by another type it stays for the parser to refuse."""
    first, *rest = place
    if not rest:
        return {**document, first: value}
    below = document.get(first, {})
    return {**document, first: _with(below, tuple(rest), value)} if isinstance(below, dict) else document
