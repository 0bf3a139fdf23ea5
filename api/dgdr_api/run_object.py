"""The run of a request: the object that the operator creates, and that a laptop writes to a file."""

from dgdr_api.group import (
    ANNOTATION_INPUT_HASH,
    ANNOTATION_REQUEST_NAME,
    ANNOTATION_RERUN_REASON,
    API_VERSION,
    LABEL_GENERATION,
    LABEL_REQUEST_UID,
    REQUEST_KIND,
)
from dgdr_api.identity import FIRST_GENERATION, input_hash, laptop_uid, run_name
from dgdr_api.metadata import ObjectMeta, OwnerReference
from dgdr_api.request import DynamoGraphDeploymentRequest
from dgdr_api.run import DynamoGraphDeploymentRun, RunSpec


def run_of(request: DynamoGraphDeploymentRequest, spec: RunSpec) -> DynamoGraphDeploymentRun:
    """Return the run of one generation of a request.

    Args:
        request: the accepted request. Without uid and generation (on a laptop) it has those of `dgdr_api.identity`,
            and so has its run; in a cluster the API server gives the run its uid.
        spec: its spec with every default explicit.
    """
    meta = request.metadata
    generation = meta.generation or FIRST_GENERATION
    uid = meta.uid or laptop_uid(meta.namespace, meta.name)
    annotations = {ANNOTATION_REQUEST_NAME: meta.name, ANNOTATION_INPUT_HASH: input_hash(spec)}
    if request.spec.rerun is not None:
        annotations[ANNOTATION_RERUN_REASON] = request.spec.rerun.reason
    name = run_name(meta.name, generation, uid)
    return DynamoGraphDeploymentRun(
        metadata=ObjectMeta(
            name=name,
            namespace=meta.namespace,
            uid=None if meta.uid else laptop_uid(meta.namespace, name),
            labels={LABEL_REQUEST_UID: uid, LABEL_GENERATION: str(generation)},
            annotations=annotations,
            owner_references=(
                OwnerReference(
                    api_version=API_VERSION,
                    kind=REQUEST_KIND,
                    name=meta.name,
                    uid=uid,
                    controller=True,
                    block_owner_deletion=True,
                ),
            ),
        ),
        spec=spec,
    )
