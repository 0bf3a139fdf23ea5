import pytest
from dgdr_api.candidate import EvaluatedCandidate
from dgdr_api.candidate_resource import DynamoGraphDeploymentCandidate
from dgdr_api.events import VersionLink
from dgdr_api.run import RunSpec
from dgdr_publisher.candidate_status import rounded
from dgdr_publisher.resources import candidate_resource, run_identity
from dgdr_publisher.selection import select

from tests.publisher.samples import AGG, DISAGG, evaluated, role, run, spec


def resource(
    candidate: EvaluatedCandidate, of: RunSpec | None = None, versions: tuple[VersionLink, ...] = ()
) -> DynamoGraphDeploymentCandidate:
    owner = run(of)
    known = {candidate.id: candidate}
    found = select(known, known, spec=owner.spec, request_name="qwen", namespace="default", limit=1)
    return candidate_resource(found.chosen[0], run_identity(owner), rank=1, versions=versions)


def test_identity_and_owner() -> None:
    found, owner = resource(DISAGG), run()
    digest = found.metadata.labels["sweeper.dgdr.dev/point-hash"]
    assert found.metadata.name.startswith("qwen-g1-")
    assert found.metadata.name.endswith(f"-{digest[:8]}")
    assert found.metadata.labels == {
        "sweeper.dgdr.dev/run-uid": owner.metadata.uid,
        "sweeper.dgdr.dev/generation": "1",
        "sweeper.dgdr.dev/input-hash": owner.metadata.annotations["sweeper.dgdr.dev/input-hash"],
        "sweeper.dgdr.dev/point-hash": digest,
        "sweeper.dgdr.dev/dgd-spec-hash": found.metadata.labels["sweeper.dgdr.dev/dgd-spec-hash"],
    }
    assert found.metadata.owner_references is not None
    (reference,) = found.metadata.owner_references
    assert (reference.kind, reference.name, reference.uid, reference.controller) == (
        "DynamoGraphDeploymentRun",
        owner.metadata.name,
        owner.metadata.uid,
        True,
    )


def test_status_says_what_was_evaluated() -> None:
    status = resource(DISAGG).status
    assert status is not None
    assert status.evaluation is not None
    assert status.evaluation.gpus_by_role == "prefill 2x1, decode 4x2"
    assert status.evaluation.display == {
        "mode": "disagg",
        "score": "100 tok/s/GPU",
        "ttft": "544.6 ms",
        "itl": "39.01 ms",
        "throughputPerGpu": "100",
    }
    assert status.renderer_version == "vllm-0.26.0/1"
    assert [(one.type, one.reason) for one in status.conditions] == [
        ("Evaluated", "StaticEstimate"),
        ("Materialized", "RenderedAndVerified"),
        ("VersionBound", "PerfDataPinned"),
    ]
    pinned = status.conditions[2].message
    assert "vllm 0.26.0 in the image" in pinned
    assert "data of 0.24.0" in pinned


@pytest.mark.parametrize("fidelity", ["static", "replay"])
def test_what_is_not_modelled_is_said_whatever_the_fidelity(fidelity: str) -> None:
    left_out = {"multinode_interconnect": "agg tp16 on nodes of 8 GPUs"}
    evaluation = AGG.evaluation.model_copy(update={"not_modelled": left_out, "flags": ("implausible: agg",)})
    parameters = AGG.candidate.parameters | {"fidelity": fidelity}
    candidate = AGG.candidate.model_copy(update={"parameters": parameters})
    status = resource(AGG.model_copy(update={"evaluation": evaluation, "candidate": candidate})).status
    assert status is not None
    found = status.conditions[0]
    assert (found.type, found.status, found.reason) == ("Evaluated", "True", "PartiallyModelled")
    assert found.message.endswith(
        "; not modelled: multinode_interconnect (agg tp16 on nodes of 8 GPUs); implausible: agg"
    )


def test_data_of_the_engine_in_the_image_is_bound() -> None:
    candidate = evaluated(role("agg", backend="sglang", version="0.5.16"))
    of = spec("sglang", "0.5.16")
    link = VersionLink(
        backend="sglang",
        sku="h200_sxm",
        runtime="1.4.0",
        engine="0.5.16",
        performance_data="0.5.16",
        pinned=False,
        borrowed_tables=("moe",),
    )
    for versions, reason in (((), "Bound"), ((link,), "BoundWithBorrowedData")):
        status = resource(candidate, of, versions).status
        assert status is not None
        assert status.conditions[2].reason == reason


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (5.0, "5"), (544.561, "544.6"), (39.0112, "39.01"), (0.000123456, "0.0001235"), (12345.6, "12346")],
)
def test_rounded(value: float, text: str) -> None:
    assert rounded(value) == text
