"""pytest plugin: the cluster of the tests that need one.

``tests/conftest.py`` loads it with ``pytest_plugins = ["tests.controlplane.fixture"]``. A test asks for
``kubeconfig``, ``kubectl``, ``api`` or ``namespace``, and does not care which cluster it gets: the user's, when
``DGDR_TEST_KUBECONFIG`` or ``KUBECONFIG`` names one, else an etcd and a kube-apiserver of our own, started once for
the session when the first test asks for it.
"""

import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import NoReturn

import pytest
from kubernetes.client import ApiClient
from kubernetes.config import new_client_from_config

from tests.controlplane.build import (
    ControlPlaneError,
    GoMissingError,
    cached_binaries,
    ensure_binaries,
    kubernetes_version,
)
from tests.controlplane.kubectl import Kubectl, KubectlError, find_kubectl
from tests.controlplane.plane import BINARIES, ControlPlane, start_control_plane

KUBECONFIG_VARIABLES = ("DGDR_TEST_KUBECONFIG", "KUBECONFIG")
"""Environment variables that name the user's cluster; the first that is set and not empty wins."""

_namespace_numbers = itertools.count(1)


def user_kubeconfig(environ: Mapping[str, str]) -> tuple[str, Path] | None:
    """Return (variable, path) of the kubeconfig that the user gives, or None when no variable is set.

    Raises:
        ControlPlaneError: it is not one existing file. A mistyped path must not silently mean another cluster.
    """
    for variable in KUBECONFIG_VARIABLES:
        if value := environ.get(variable):
            path = Path(value).expanduser()
            if not path.is_file():
                raise ControlPlaneError(f"{variable}={value} is not a file; it must name one kubeconfig, not a list")
            return variable, path.resolve()
    return None


def cluster_header(environ: Mapping[str, str]) -> str:
    """Return the line that says which cluster the tests use."""
    try:
        given = user_kubeconfig(environ)
    except ControlPlaneError as error:
        return f"cluster: {error}"
    if given is not None:
        return f"cluster: {given[1]} (from {given[0]})"
    state = "in the cache" if cached_binaries(BINARIES, environ) else "not built yet: about five minutes, once"
    return f"cluster: own etcd and kube-apiserver {kubernetes_version()}, when a test asks ({state})"


def pytest_report_header() -> str:
    """Say in the header which cluster the tests use."""
    return cluster_header(os.environ)


def missing(reason: str, environ: Mapping[str, str]) -> NoReturn:
    """Skip the test, since this machine cannot provide what it needs; in CI, where that would hide it, fail."""
    if environ.get("CI"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def controlplane_binaries(request: pytest.FixtureRequest) -> dict[str, Path]:
    """Paths of etcd and kube-apiserver, built when absent; for tests that start a control plane of their own."""
    if (given := user_kubeconfig(os.environ)) is not None:
        pytest.skip(f"needs a control plane of its own, but {given[0]} names a cluster: nothing is built or started")
    return built(BINARIES, request.config)


@pytest.fixture(scope="session")
def helm(request: pytest.FixtureRequest) -> Path:
    """Path of the pinned helm, built when absent."""
    return built(("helm",), request.config)["helm"]


def built(names: Sequence[str], config: pytest.Config) -> dict[str, Path]:
    """Return the paths of binaries, built when absent; without Go the test is skipped, or fails in CI."""
    if (cached := cached_binaries(names)) is not None:
        return cached
    try:
        with shown(config):
            return ensure_binaries(names)
    except GoMissingError as error:
        missing(str(error), os.environ)


def shown(config: pytest.Config) -> AbstractContextManager[None]:
    """Let the progress of what takes minutes through pytest's capture."""
    capture = config.pluginmanager.getplugin("capturemanager")
    if capture is None:
        return nullcontext()
    shown: AbstractContextManager[None] = capture.global_and_fixture_disabled()
    return shown


@pytest.fixture(scope="session")
def control_plane(controlplane_binaries: dict[str, Path]) -> Iterator[ControlPlane]:
    """The session's own control plane. Tests of faults start another one: see ``start_control_plane``."""
    with start_control_plane(controlplane_binaries) as plane:
        yield plane


@pytest.fixture(scope="session")
def kubeconfig(request: pytest.FixtureRequest) -> Path:
    """Path of the kubeconfig of the tests' cluster, as an administrator."""
    if (given := user_kubeconfig(os.environ)) is not None:
        return given[1]
    plane: ControlPlane = request.getfixturevalue("control_plane")
    return plane.kubeconfig


@pytest.fixture(scope="session")
def make_kubectl(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Kubectl]:
    """Return a kubectl for any kubeconfig: another control plane, another user."""
    try:
        executable = find_kubectl()
    except KubectlError as error:
        missing(str(error), os.environ)
    return lambda kubeconfig: Kubectl(executable, kubeconfig, tmp_path_factory.mktemp("kubectl"))


@pytest.fixture(scope="session")
def kubectl(make_kubectl: Callable[[Path], Kubectl], kubeconfig: Path) -> Kubectl:
    """kubectl on the tests' cluster: ``kubectl("apply", "-f", "-", input=text).stdout``."""
    return make_kubectl(kubeconfig)


@pytest.fixture(scope="session")
def api(kubeconfig: Path) -> Iterator[ApiClient]:
    """Client of the ``kubernetes`` package on the tests' cluster: ``CoreV1Api(api)``, ``CustomObjectsApi(api)``."""
    client: ApiClient = new_client_from_config(str(kubeconfig))  # type: ignore[no-untyped-call]
    with client:
        yield client


@pytest.fixture
def namespace(kubectl: Kubectl) -> Iterator[str]:
    """Name of a fresh namespace; its deletion is asked for at the end, not waited for (it needs a controller)."""
    name = _create_namespace(kubectl)
    yield name
    kubectl("delete", "namespace", name, "--wait=false", "--ignore-not-found")


def _create_namespace(kubectl: Kubectl) -> str:
    """Create the next namespace of this process that is free; a shared cluster may hold one of an earlier run."""
    for number in _namespace_numbers:
        name = f"dgdr-test-{os.getpid()}-{number}"
        created = kubectl("create", "namespace", name, check=False)
        if created.returncode == 0:
            return name
        if "AlreadyExists" not in created.stderr:
            raise KubectlError(created.stderr.strip())
    raise AssertionError  # the count does not end
