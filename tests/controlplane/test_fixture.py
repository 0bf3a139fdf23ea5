"""Which cluster the tests get, and what happens when there can be none."""

from pathlib import Path

import pytest

from tests.controlplane.build import ControlPlaneError, kubernetes_version
from tests.controlplane.fixture import cluster_header, missing, user_kubeconfig


@pytest.fixture
def given(tmp_path: Path) -> Path:
    """A kubeconfig of the user's."""
    path = tmp_path / "kubeconfig"
    path.touch()
    return path


def test_dgdr_test_kubeconfig_wins_over_kubeconfig(given: Path) -> None:
    assert user_kubeconfig({"DGDR_TEST_KUBECONFIG": str(given), "KUBECONFIG": "other"}) == (
        "DGDR_TEST_KUBECONFIG",
        given,
    )


def test_kubeconfig_is_used_when_it_is_the_only_one(given: Path) -> None:
    assert user_kubeconfig({"DGDR_TEST_KUBECONFIG": "", "KUBECONFIG": str(given)}) == ("KUBECONFIG", given)


def test_without_a_variable_no_cluster_is_given() -> None:
    assert user_kubeconfig({"KUBECONFIG": ""}) is None


def test_a_kubeconfig_that_is_no_file_is_an_error(given: Path) -> None:
    with pytest.raises(ControlPlaneError, match=r"KUBECONFIG=.* is not a file"):
        user_kubeconfig({"KUBECONFIG": f"{given}:{given}"})


def test_header_names_the_cluster(given: Path, tmp_path: Path) -> None:
    assert cluster_header({"KUBECONFIG": str(given)}) == f"cluster: {given} (from KUBECONFIG)"
    assert cluster_header({"XDG_CACHE_HOME": str(tmp_path)}) == (
        f"cluster: own etcd and kube-apiserver {kubernetes_version()}, when a test asks "
        "(not built yet: about five minutes, once)"
    )


def test_what_is_missing_skips_on_a_developers_machine() -> None:
    with pytest.raises(pytest.skip.Exception, match="no go"):
        missing("no go", {"CI": ""})


def test_what_is_missing_fails_in_ci() -> None:
    with pytest.raises(pytest.fail.Exception, match="no go"):
        missing("no go", {"CI": "true"})
