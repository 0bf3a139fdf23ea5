from dgdr_operator.snapshot import Turn
from dgdr_operator.turns import Waiting, turns
from hypothesis import given
from hypothesis import strategies as st


def run(name: str, namespace: str = "a", created: str = "2026-01-01T00:00:00Z") -> Waiting:
    return Waiting(created, namespace, name, f"{namespace}/{name}")


def test_without_limits_everybody_searches() -> None:
    assert turns([run("x")], {"a": 99}, per_namespace=0, in_cluster=0) == {"a/x": Turn()}


def test_the_oldest_comes_first() -> None:
    late = run("a", created="2026-01-01T00:00:09Z")
    found = turns([late, run("z")], {}, per_namespace=1, in_cluster=0)

    assert found["a/z"].granted
    assert found["a/a"].waiting.startswith("position 1 of 1; searches are limited to 1")


def test_a_full_namespace_holds_nobody_else() -> None:
    found = turns([run("x"), run("y", "b")], {"a": 2}, per_namespace=2, in_cluster=3)

    assert not found["a/x"].granted
    assert found["b/y"].granted


def test_the_cluster_is_full() -> None:
    found = turns([run("x"), run("y", "b")], {"c": 3}, per_namespace=2, in_cluster=3)

    assert found["a/x"].waiting.startswith("position 1 of 2")
    assert found["b/y"].waiting.startswith("position 2 of 2")
    assert found["b/y"].waiting.endswith("3 at the same time in the cluster")


@given(
    st.sets(st.tuples(st.sampled_from("abc"), st.integers(0, 20))),
    st.dictionaries(st.sampled_from("abc"), st.integers(0, 5)),
    st.integers(0, 4),
    st.integers(0, 6),
)
def test_limits_hold_and_no_place_stays_empty(
    waiting: set[tuple[str, int]], searching: dict[str, int], per_namespace: int, in_cluster: int
) -> None:
    runs = [run(str(number), namespace) for namespace, number in waiting]
    found = turns(runs, searching, per_namespace=per_namespace, in_cluster=in_cluster)
    started = [each for each in runs if found[each.uid].granted]
    total = sum(searching.values()) + len(started)

    assert set(found) == {each.uid for each in runs}
    assert not in_cluster or not started or total <= in_cluster
    for each in runs:
        here = searching.get(each.namespace, 0) + sum(one.namespace == each.namespace for one in started)
        assert not per_namespace or not found[each.uid].granted or here <= per_namespace
        if not found[each.uid].granted:
            assert (per_namespace and here >= per_namespace) or (in_cluster and total >= in_cluster)
