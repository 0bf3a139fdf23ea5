from dgdr_api.candidate import EvaluatedCandidate
from dgdr_api.identity import dgd_spec_hash, point_hash
from dgdr_publisher.selection import Selection, select

from tests.publisher.samples import AGG, DISAGG, REFUSED, evaluated, role, spec


def _select(*reserve: EvaluatedCandidate, limit: int = 5, namespace: str = "default") -> Selection:
    known = {one.id: one for one in reserve}
    return select(
        [one.id for one in reserve], known, spec=spec(), request_name="qwen", namespace=namespace, limit=limit
    )


def test_one_that_cannot_be_rendered_leaves_no_gap_and_its_cause_is_kept() -> None:
    found = _select(REFUSED, DISAGG, AGG, limit=2)
    assert [one.evaluated.id for one in found.chosen] == [DISAGG.id, AGG.id]
    assert list(found.unrenderable) == [REFUSED.id]
    assert "candidate.roles.agg.engine.preemption = 'oldest'" in found.unrenderable[REFUSED.id]


def test_only_as_many_as_asked_for_are_rendered_in_the_order_of_the_reserve() -> None:
    found = _select(AGG, DISAGG, REFUSED, limit=1)
    assert [one.evaluated.id for one in found.chosen] == [AGG.id]
    assert found.unrenderable == {}


def test_nothing_renderable() -> None:
    assert _select(REFUSED).chosen == ()
    assert _select().chosen == ()


def test_the_same_deployment_under_the_same_parameters_is_not_published_twice() -> None:
    again = evaluated(
        role("prefill", workers=2, numGpuBlocks=20_000), role("decode", {"tp": 2}, workers=4), name="f" * 16
    )
    found = _select(DISAGG, again)
    assert len(found.chosen) == 1
    assert found.repeated == (again.id,)


def test_a_point_that_was_named_but_never_sent_is_a_cause() -> None:
    found = select(["0" * 16], {}, spec=spec(), request_name="qwen", namespace="default", limit=1)
    assert found.unrenderable == {"0" * 16: "the search named it but sent no candidate"}


def test_hashes_and_name_follow_from_what_is_rendered() -> None:
    (chosen,) = _select(DISAGG).chosen
    assert chosen.spec == {**chosen.rendered.dgd["spec"], "parameters": DISAGG.candidate.parameters}
    assert chosen.point_hash == point_hash(chosen.spec)
    assert chosen.dgd_spec_hash == dgd_spec_hash(chosen.spec)
    assert chosen.rendered.dgd["metadata"]["name"] == f"qwen-{chosen.point_hash[:8]}"


def test_a_namespace_that_leaves_no_room_for_a_name_is_a_cause() -> None:
    found = _select(DISAGG, namespace="n" * 60)
    assert "namespace" in found.unrenderable[DISAGG.id]
