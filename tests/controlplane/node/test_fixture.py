"""What begins a new cluster runs before what keeps something in it."""

import pytest

from tests.controlplane.node.fixture import pytest_collection_modifyitems


def test_renewing_tests_come_first_and_the_others_keep_their_order(request: pytest.FixtureRequest) -> None:
    parent: pytest.Module = request.node.parent
    items: list[pytest.Item] = [pytest.Function.from_parent(parent, name=name, callobj=_nothing) for name in "abc"]
    items[2].add_marker(pytest.mark.renews_cluster)
    pytest_collection_modifyitems(items)
    assert [item.name for item in items] == ["c", "a", "b"]


def _nothing() -> None:
    """Be the body of a test."""
