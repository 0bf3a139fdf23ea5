"""Finding an object that a person names, or saying that it is not there and what would do."""

from typing import TYPE_CHECKING, Any

from dgdr_cli import program
from dgdr_cli.exit_codes import FAILED, WRONG_INPUT
from dgdr_cli.exits import fail
from dgdr_cli.names import check_label

if TYPE_CHECKING:
    from dgdr_kube.resource import Resource

    from dgdr_cli.cluster.options import Cluster


def request_named(cluster: "Cluster", name: str) -> dict[str, Any]:
    """The request of this name."""
    from dgdr_cli.cluster.kinds import REQUEST

    return _named(cluster, REQUEST, name, f"`kubectl get dgdreq -n {cluster.namespace}` lists those there")


def run_named(cluster: "Cluster", name: str) -> dict[str, Any]:
    """The run of this name."""
    from dgdr_cli.cluster.kinds import RUN

    return _named(cluster, RUN, name, f"`{program.called()} runs REQUEST -n {cluster.namespace}` lists those there")


def candidate_named(cluster: "Cluster", name: str) -> dict[str, Any]:
    """The candidate of this name."""
    from dgdr_cli.cluster.kinds import CANDIDATE

    hint = f"`{program.called()} candidates RUN -n {cluster.namespace}` lists those there"
    return _named(cluster, CANDIDATE, name, hint)


def _named(cluster: "Cluster", resource: "Resource", name: str, hint: str) -> dict[str, Any]:
    from dgdr_kube.errors import NotFound

    from dgdr_cli.cluster.errors import is_kind_missing
    from dgdr_cli.cluster.kinds import WORDS

    word = WORDS[resource]
    check_label(word, name)
    try:
        return cluster.kube.get(resource, cluster.namespace, name)
    except NotFound as error:
        if is_kind_missing(error):
            fail(FAILED, f"the cluster has no {resource.kind}: the operator's CustomResourceDefinitions are missing")
        fail(WRONG_INPUT, f"there is no {word} {name} in namespace {cluster.namespace}; {hint}, -n names another")
