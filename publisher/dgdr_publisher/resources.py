"""The DynamoGraphDeploymentCandidate of a chosen candidate: name, labels, owner, spec and status."""

from collections.abc import Sequence
from dataclasses import dataclass

from dgdr_api.candidate_resource import DynamoGraphDeploymentCandidate
from dgdr_api.events import VersionLink
from dgdr_api.group import (
    ANNOTATION_INPUT_HASH,
    ANNOTATION_REQUEST_NAME,
    API_VERSION,
    LABEL_DGD_SPEC_HASH,
    LABEL_GENERATION,
    LABEL_INPUT_HASH,
    LABEL_POINT_HASH,
    LABEL_REQUEST_UID,
    LABEL_RUN_UID,
    RUN_KIND,
)
from dgdr_api.identity import candidate_name
from dgdr_api.metadata import ObjectMeta, OwnerReference
from dgdr_api.run import DynamoGraphDeploymentRun

from dgdr_publisher.candidate_status import candidate_status
from dgdr_publisher.errors import PublisherError
from dgdr_publisher.selection import Chosen


@dataclass(frozen=True)
class RunIdentity:
    """What the candidates of a run are named and owned by."""

    name: str
    namespace: str
    uid: str
    request_name: str
    request_uid: str
    generation: int
    input_hash: str


def run_identity(run: DynamoGraphDeploymentRun) -> RunIdentity:
    """The identity of a run.

    Raises:
        PublisherError: the run lacks its uid, or a label or annotation that its creator writes.
    """
    meta = run.metadata
    uid, labels, annotations = meta.uid, meta.labels, meta.annotations
    missing = [key for key in (LABEL_REQUEST_UID, LABEL_GENERATION) if key not in labels]
    missing += [key for key in (ANNOTATION_REQUEST_NAME, ANNOTATION_INPUT_HASH) if key not in annotations]
    if uid is None or missing:
        raise PublisherError(f"run {meta.name} lacks {', '.join(missing) or 'metadata.uid'}: its creator writes them")
    return RunIdentity(
        name=meta.name,
        namespace=meta.namespace,
        uid=uid,
        request_name=annotations[ANNOTATION_REQUEST_NAME],
        request_uid=labels[LABEL_REQUEST_UID],
        generation=int(labels[LABEL_GENERATION]),
        input_hash=annotations[ANNOTATION_INPUT_HASH],
    )


def candidate_resource(
    chosen: Chosen, run: RunIdentity, *, rank: int | None, versions: Sequence[VersionLink]
) -> DynamoGraphDeploymentCandidate:
    """The object that is published for a candidate.

    Args:
        chosen: what renders and verifies.
        run: the run that found it; owns it.
        rank: 1 is best; absent for a point of a front.
        versions: the version links of the run.
    """
    owner = OwnerReference(
        api_version=API_VERSION,
        kind=RUN_KIND,
        name=run.name,
        uid=run.uid,
        controller=True,
        block_owner_deletion=True,
    )
    return DynamoGraphDeploymentCandidate(
        metadata=ObjectMeta(
            name=candidate_name(run.request_name, run.generation, run.request_uid, chosen.point_hash),
            namespace=run.namespace,
            labels={
                LABEL_RUN_UID: run.uid,
                LABEL_GENERATION: str(run.generation),
                LABEL_INPUT_HASH: run.input_hash,
                LABEL_POINT_HASH: chosen.point_hash,
                LABEL_DGD_SPEC_HASH: chosen.dgd_spec_hash,
            },
            owner_references=(owner,),
        ),
        spec=chosen.spec,
        status=candidate_status(chosen.evaluated, chosen.rendered, rank=rank, versions=versions),
    )
