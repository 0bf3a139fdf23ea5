import re

import pytest
from dgdr_api.errors import NameTooLong
from dgdr_api.identity import (
    candidate_name,
    deployable,
    dgd_name_problems,
    dgd_spec_hash,
    laptop_uid,
    point_hash,
    run_name,
    safe_dgd_name,
)
from hypothesis import given
from hypothesis import strategies as st

DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
names = st.from_regex(DNS_LABEL, fullmatch=True).filter(lambda name: len(name) <= 63)
uids = st.uuids().map(str)
generations = st.integers(1, 2**63 - 1)
hashes = st.from_regex(r"[0-9a-f]{16}", fullmatch=True)


def test_names() -> None:
    assert run_name("qwen", 3, "abcd1234-0000") == "qwen-run-3-abcd"
    assert candidate_name("qwen", 3, "abcd1234-0000", "0123456789abcdef") == "qwen-g3-abcd-01234567"


def test_a_long_name_is_cut_and_keeps_its_identity() -> None:
    name = run_name("q" * 63, 1, "abcd")

    assert len(name) == 52
    assert re.fullmatch(r"q{32}-[0-9a-f]{8}-run-1-abcd", name)
    assert name != run_name("q" * 62, 1, "abcd")


@given(name=names, generation=generations, uid=uids, point=hashes)
def test_names_are_bounded_dns_labels(name: str, generation: int, uid: str, point: str) -> None:
    for made in (run_name(name, generation, uid), candidate_name(name, generation, uid, point)):
        assert len(made) <= 52
        assert DNS_LABEL.fullmatch(made)
    assert run_name(name, generation, uid) == run_name(name, generation, uid)


@given(one=names, other=names, uid=uids)
def test_different_requests_have_different_runs(one: str, other: str, uid: str) -> None:
    assert (run_name(one, 1, uid) == run_name(other, 1, uid)) == (one == other)


@given(name=names, namespace=names, point=hashes)
def test_a_safe_dgd_name_passes_every_check(name: str, namespace: str, point: str) -> None:
    components = [("Frontend", False), ("prefill", True), ("decode", True), ("encode", False), ("Planner", False)]
    if len(namespace) > 52:
        with pytest.raises(NameTooLong, match="at most 52"):
            safe_dgd_name(name, point, namespace)
        return

    made = safe_dgd_name(name, point, namespace)

    assert DNS_LABEL.fullmatch(made)
    assert len(made) <= 22
    assert dgd_name_problems(namespace, made, components) == []


def test_finding_8480_8566_long_component_names_are_refused_before_publication() -> None:
    assert dgd_name_problems("default", "d", [("VllmDecodeWorker", True)]) == []
    assert (
        "17 characters; Grove takes at most 16" in dgd_name_problems("default", "d", [("VllmPrefillWorker", True)])[0]
    )
    assert dgd_name_problems("default", "d", [("a" * 37, False)]) == []
    assert "Grove takes at most 37" in dgd_name_problems("default", "d", [("a" * 38, False)])[0]


def test_promotion_limits() -> None:
    assert "63" in dgd_name_problems("n" * 41, "d" * 22, [("decode", False)])[0]
    assert dgd_name_problems("n" * 40, "d" * 22, [("decode", False)]) == []
    assert "54" in dgd_name_problems("n", "d" * 46, [("Frontend", False)])[0]
    assert dgd_name_problems("n", "d" * 45, [("Frontend", False)]) == []


def test_a_name_is_judged_before_its_components_are_known() -> None:
    assert dgd_name_problems("n", "d" * 52, []) == []
    (said,) = dgd_name_problems("n", "d" * 53, [])
    assert said == f"name {'d' * 53} has 53 characters; with any component at most 52 fit the name of a Service"


@pytest.mark.parametrize("name", ["Qwen", "a.b", "-a", "a-", "a_b", "a\n", "a b", ""])
def test_a_name_that_is_no_dns_label_is_refused(name: str) -> None:
    (said,) = dgd_name_problems("n", name, [("worker", False)])
    assert said == f"name {name!r} must be a DNS label: lower-case letters, digits and hyphens between"


def test_hashes() -> None:
    spec = {"components": [{"name": "worker", "replicas": 1.0}], "parameters": {"concurrency": 8}}
    other = {"parameters": {"concurrency": 9}, "components": [{"replicas": 1, "name": "worker"}]}

    assert point_hash(spec) != point_hash(other)
    assert dgd_spec_hash(spec) == dgd_spec_hash(other) == point_hash(deployable(spec))
    assert re.fullmatch("[0-9a-f]{16}", point_hash(spec))


def test_the_laptop_uid_is_a_stable_uuid() -> None:
    assert laptop_uid("default", "x") == "cf3bd7ff-2845-028c-a9c1-20e6774c3b2b"
    assert laptop_uid("default", "y") != laptop_uid("default", "x")
