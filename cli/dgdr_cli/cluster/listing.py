"""Objects that belong to another, in the order in which that one names them."""

from typing import TYPE_CHECKING, Any

from dgdr_cli.cluster.objects import controller, name_of, refs

if TYPE_CHECKING:
    from dgdr_cli.cluster.options import Cluster


def runs_of(cluster: "Cluster", request: dict[str, Any]) -> list[dict[str, Any]]:
    """The runs of a request, newest first: the order of its recentRunRefs."""
    from dgdr_api.group import LABEL_REQUEST_UID

    from dgdr_cli.cluster.kinds import RUN

    uid = request["metadata"]["uid"]
    found = cluster.kube.list(RUN, cluster.namespace, label_selector=f"{LABEL_REQUEST_UID}={uid}").items
    return _in_order(found, uid, refs(request, "recentRunRefs"))


def candidates_of(cluster: "Cluster", run: dict[str, Any]) -> list[dict[str, Any]]:
    """The candidates of a run, best first: the order of its candidateRefs, the only live ranking."""
    from dgdr_api.group import LABEL_RUN_UID

    from dgdr_cli.cluster.kinds import CANDIDATE

    uid = run["metadata"]["uid"]
    found = cluster.kube.list(CANDIDATE, cluster.namespace, label_selector=f"{LABEL_RUN_UID}={uid}").items
    return _in_order(found, uid, refs(run, "candidateRefs"))


def _in_order(found: tuple[dict[str, Any], ...], owner_uid: str, names: list[str]) -> list[dict[str, Any]]:
    """What the owner names and owns; a label alone could be anybody's."""
    owned = {name_of(value): value for value in found if controller(value).get("uid") == owner_uid}
    return [owned[name] for name in names if name in owned]
