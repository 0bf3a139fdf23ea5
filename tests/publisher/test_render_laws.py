"""Laws over all candidates that the backends can express."""

from typing import Any

from dgdr_api.candidate import EvaluatedCandidate
from dgdr_api.expressible import RoleForm, shape_problems
from dgdr_api.shape import Shape
from dgdr_publisher.rendering import render_candidate, verify_dgd
from dgdr_publisher.yaml_text import yaml_text
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.publisher.samples import evaluated, role, spec

DEGREES = st.sampled_from([1, 2, 4, 8, 16])
VERSIONS = st.sampled_from([("vllm", "0.26.0"), ("sglang", "0.5.16"), ("sglang", "0.5.14")])


@st.composite
def shapes(draw: st.DrawFn, backend: str, kind: str) -> dict[str, int]:
    tp, dp, pp = draw(DEGREES), draw(DEGREES), draw(st.sampled_from([1, 2]))
    width = tp * dp
    moe_ep = draw(st.sampled_from([degree for degree in (1, 2, 4, 8, 16) if width % degree == 0]))
    is_moe = draw(st.booleans()) or dp > 1
    shape = {"tp": tp, "pp": pp, "attentionDp": dp}
    if is_moe:
        shape |= {"moeTp": width // moe_ep, "moeEp": moe_ep}
    parallel = Shape(**shape)
    assume(parallel.gpus <= 32)
    form = RoleForm(
        backend=backend,  # type: ignore[arg-type]  # a backend by its name
        engine_version="",
        kind=kind,  # type: ignore[arg-type]  # a role by its name
        shape=parallel,
        is_moe=parallel.moe_tp * parallel.moe_ep > 1,
        gpus_per_node=8,
    )
    assume(not shape_problems(form))
    assume(backend != "vllm" or dp == 1 or tp * pp <= 8)
    return shape


@st.composite
def roles(draw: st.DrawFn, kind: str, backend: str, version: str) -> dict[str, Any]:
    block = draw(st.sampled_from([1, 16, 32, 64]))
    chunked = draw(st.booleans())
    longest = draw(st.integers(1, 8192))
    return role(
        kind,
        draw(shapes(backend, kind)),
        workers=draw(st.integers(1, 100)),
        backend=backend,
        version=version,
        sku=draw(st.sampled_from(["h200_sxm", "h100_sxm", "b200_sxm"])),
        kv=draw(st.sampled_from(["bfloat16", "fp8"])),
        memory_fraction=draw(st.floats(0.01, 1.0)),
        maxNumSeqs=draw(st.integers(1, 1024)),
        maxNumBatchedTokens=draw(st.integers(128, 512)) * 64,
        blockSize=block,
        numGpuBlocks=-(-longest // block) + draw(st.integers(0, 10_000)),
        maxSequenceLength=longest,
        enablePrefixCaching=draw(st.booleans()),
        enableChunkedPrefill=chunked,
    )


@st.composite
def candidates(draw: st.DrawFn) -> tuple[EvaluatedCandidate, str, str]:
    backend, version = draw(VERSIONS)
    kinds = draw(st.sampled_from([("agg",), ("prefill", "decode")]))
    return evaluated(*(draw(roles(kind, backend, version)) for kind in kinds)), backend, version


@given(candidates())
@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
def test_every_expressible_candidate_renders_verifies_and_takes_its_gpus(
    drawn: tuple[EvaluatedCandidate, str, str],
) -> None:
    candidate, backend, version = drawn
    request = spec(backend, version)
    rendered = render_candidate(candidate, request, "qwen")
    assert verify_dgd(rendered.dgd, candidate, request) == []
    assert yaml_text(render_candidate(candidate, request, "qwen").dgd) == yaml_text(rendered.dgd)
    total = 0
    for component in rendered.dgd["spec"]["components"][1:]:
        gpus = int(component["podTemplate"]["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"])
        nodes = component.get("multinode", {"nodeCount": 1})["nodeCount"]
        assert gpus <= 8
        assert (nodes > 1) == ("multinode" in component)
        total += component["replicas"] * nodes * gpus
    assert total == candidate.candidate.used_gpus == candidate.evaluation.used_gpus


@given(candidates(), candidates())
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
def test_a_deployment_is_only_that_of_its_own_candidate(
    one: tuple[EvaluatedCandidate, str, str], two: tuple[EvaluatedCandidate, str, str]
) -> None:
    """Two candidates that differ in anything that a deployment says are never taken for each other."""
    (first, backend, version), (second, _, _) = one, two
    unsaid = {"numGpuBlocks", "moeTp"}
    dgd = render_candidate(first, spec(backend, version), "qwen").dgd
    same = _said(first, unsaid) == _said(second, unsaid)
    assert (verify_dgd(dgd, second) == []) == same


def _said(candidate: EvaluatedCandidate, unsaid: set[str]) -> list[dict[str, Any]]:
    found = []
    for one in candidate.candidate.roles:
        document = one.model_dump(by_alias=True)
        document["engine"] = {key: value for key, value in document["engine"].items() if key not in unsaid}
        document["shape"] = {key: value for key, value in document["shape"].items() if key not in unsaid}
        found.append(document)
    return found
