"""The front and its order against slow, obvious references."""

import itertools

import numpy as np
from dgdr_job.matching.arrays import Floats
from dgdr_job.search import pareto
from hypothesis import given, settings
from hypothesis import strategies as st


def dominates(a: Floats, b: Floats) -> bool:
    return bool((a >= b).all() and (a > b).any())


matrices = (
    st.integers(2, 4)
    .flatmap(
        lambda k: st.lists(st.lists(st.integers(0, 6).map(float), min_size=k, max_size=k), min_size=1, max_size=14)
    )
    .map(np.array)
)


def test_what_is_better_by_rounding_alone_is_not_on_the_front() -> None:
    """The same rate per cost on 2 and on 6 GPUs, computed as products that round differently."""
    scores = np.array([[0.1 * 3, -6.0], [0.3, -2.0], [0.3 * (1 + 1e-9), -7.0], [0.0, -1.0], [-0.0, -1.0]])
    assert scores[0, 0] > scores[1, 0]
    assert pareto.front(scores).tolist() == [1, 2, 3]


@settings(max_examples=300, deadline=None)
@given(scores=matrices)
def test_front_is_the_set_that_nothing_dominates(scores: Floats) -> None:
    expected = []
    for i, row in enumerate(scores):
        beaten = any(dominates(other, row) for other in scores)
        repeated = any((scores[j] == row).all() for j in range(i))
        if not beaten and not repeated:
            expected.append(i)
    assert pareto.front(scores).tolist() == expected


def union_of_boxes(unit: Floats) -> float:
    """Hypervolume by cutting space at every coordinate: the definition."""
    cuts = [sorted({0.0, *unit[:, k]}) for k in range(unit.shape[1])]
    total = 0.0
    for cell in itertools.product(*[list(itertools.pairwise(c)) for c in cuts]):
        upper = np.array([high for _, high in cell])
        if (unit >= upper).all(axis=1).any():
            total += float(np.prod([high - low for low, high in cell]))
    return total


@settings(max_examples=150, deadline=None)
@given(scores=matrices)
def test_order_is_extremes_then_most_hypervolume(scores: Floats) -> None:
    unit = pareto.scaled(scores[pareto.front(scores)])
    order = pareto.publication_order(unit, key=lambda i: i, count=len(unit))
    assert sorted(order) == list(range(len(unit)))
    expected: list[int] = []
    for column in unit.T:
        best = int(np.flatnonzero(column == column.max())[0])
        if best not in expected:
            expected.append(best)
    while len(expected) < len(unit):
        present = union_of_boxes(unit[expected])
        gains = {i: union_of_boxes(unit[[*expected, i]]) - present for i in range(len(unit)) if i not in expected}
        most = max(gains.values())
        expected.append(min(i for i, gain in gains.items() if gain >= most - 1e-9))
    chosen = order[: len(expected)]
    for step, (mine, theirs) in enumerate(zip(chosen, expected, strict=True)):
        if mine != theirs:  # equal gains up to rounding may swap, never differ in value
            assert (
                abs(union_of_boxes(unit[[*chosen[:step], mine]]) - union_of_boxes(unit[[*chosen[:step], theirs]]))
                < 1e-9
            )
            break


def test_in_two_objectives_the_knee_follows_the_extremes() -> None:
    unit = pareto.scaled(np.array([[0.0, 10.0], [4.0, 9.0], [9.0, 6.0], [10.0, 0.0]]))
    knee = int(np.argmax(pareto.knee_product(unit)))
    assert pareto.publication_order(unit, key=lambda i: i, count=3) == [3, 0, knee]


def test_an_objective_that_does_not_vary_is_full_everywhere() -> None:
    assert pareto.scaled(np.array([[5.0, 1.0], [5.0, 2.0]])).tolist() == [[1.0, 0.0], [1.0, 1.0]]
