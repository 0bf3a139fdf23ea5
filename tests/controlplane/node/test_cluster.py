"""The user's cluster is taken as it is: nothing is started, nothing is killed."""

from pathlib import Path

import pytest

from tests.controlplane.node import cluster as subject
from tests.controlplane.node.cluster import Cluster, provide_cluster, user_images
from tests.controlplane.node.errors import NodeError, UnavailableError


def test_the_users_images_are_named_by_target() -> None:
    assert user_images({"DGDR_TEST_IMAGES": "ghcr.io/me/dgdr-{target}:dev"}) == {
        "operator": "ghcr.io/me/dgdr-operator:dev",
        "sweeper": "ghcr.io/me/dgdr-sweeper:dev",
        "publisher": "ghcr.io/me/dgdr-publisher:dev",
    }


@pytest.mark.parametrize("value", ["", "dgdr:dev"])
def test_a_users_cluster_without_our_images_is_refused_with_what_would_do(value: str) -> None:
    with pytest.raises(UnavailableError, match=r"set DGDR_TEST_IMAGES='dgdr-\{target\}:TAG'"):
        user_images({"DGDR_TEST_IMAGES": value})


def test_the_users_cluster_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "ensure_binaries", lambda names: {name: tmp_path / name for name in names})
    (tmp_path / "kubeconfig").touch()
    environ = {"KUBECONFIG": str(tmp_path / "kubeconfig"), "DGDR_TEST_IMAGES": "dgdr-{target}:dev"}
    with provide_cluster(environ, pytest.fail) as cluster:
        assert cluster == Cluster(tmp_path / "kubeconfig", user_images(environ), tmp_path / "helm", own=False)


def test_nothing_of_the_users_cluster_is_killed(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, {}, tmp_path, own=False)
    with pytest.raises(NodeError, match="the user's cluster"):
        cluster.kill_container("default", "pod", "main")
    for fault in (cluster.kill_api_server, cluster.start_api_server, cluster.renew):
        with pytest.raises(NodeError, match="the user's cluster"):
            fault()
