"""pytest plugin: the cluster, with nodes, of the tests in ``tests/cluster``.

It is the user's when ``DGDR_TEST_KUBECONFIG`` or ``KUBECONFIG`` names one; ``DGDR_TEST_IMAGES`` then names our images
there, ``{target}`` standing for operator, sweeper and publisher. Else it is a node of this machine with images built
from this tree, which need root; it has gone at the end, also when pytest is interrupted or killed.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.controlplane.build import GoMissingError
from tests.controlplane.fixture import missing, shown
from tests.controlplane.node.cluster import Cluster, provide_cluster
from tests.controlplane.node.errors import UnavailableError


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker."""
    config.addinivalue_line("markers", "renews_cluster: begins a new node; runs before what others keep in the cluster")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put first what leaves nothing of the cluster's objects."""
    items.sort(key=lambda item: item.get_closest_marker("renews_cluster") is None)


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """The cluster that the tests run on."""

    def report(line: str) -> None:
        sys.stderr.write(f"[node] {line}\n")

    with ExitStack() as stack:
        try:
            with shown(request.config):
                provided = stack.enter_context(provide_cluster(os.environ, report))
        except (GoMissingError, UnavailableError) as error:
            missing(str(error), os.environ)
        yield provided
