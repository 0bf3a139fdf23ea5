"""The control plane is a real one: its version, its rules, its faults, and nothing left of it."""

import json
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes.client import ApiClient, CoreV1Api, V1ConfigMap, V1ObjectMeta, VersionApi

from tests.controlplane.build import kubernetes_version
from tests.controlplane.certificates import Authority
from tests.controlplane.directory import remove_abandoned
from tests.controlplane.kubectl import Kubectl
from tests.controlplane.plane import DIRECTORY_PREFIX, ControlPlane, start_control_plane
from tests.controlplane.process import wait_for_end

_REPOSITORY = Path(__file__).resolve().parents[2]
_DATA = _REPOSITORY.parent / "shared" / "data"
_DGD_CRD = _DATA / "crds" / "nvidia.com_dynamographdeployments.yaml"
_RECIPES = [
    "glm-5.2_sglang_disagg_h200",
    "gpt-oss-120b_vllm_disagg_h200",
    "kimi-k3_vllm_disagg_multinode_gb200",
    "nemotron-3.5-lightning_trtllm_agg_h200",
]
_DEADLINE_S = 30.0

MakeKubectl = Callable[[Path], Kubectl]

_STARTS_A_PLANE_AND_HANGS = """
import json, signal, sys
from pathlib import Path
from tests.controlplane.plane import start_control_plane

with start_control_plane({name: Path(path) for name, path in json.loads(sys.argv[1]).items()}) as plane:
    print(json.dumps([str(plane.directory), plane.etcd.pid, plane.apiserver.pid]), flush=True)
    signal.pause()
"""


@pytest.fixture(scope="module")
def pair(controlplane_binaries: dict[str, Path]) -> Iterator[list[ControlPlane]]:
    """Two control planes, started at the same time."""
    with ExitStack() as stack, ThreadPoolExecutor(2) as pool:
        starts = [pool.submit(stack.enter_context, start_control_plane(controlplane_binaries)) for _ in range(2)]
        yield [start.result() for start in starts]


@pytest.fixture(scope="module")
def kubectl_with_dgd(pair: list[ControlPlane], make_kubectl: MakeKubectl) -> Kubectl:
    """kubectl on a control plane that has the real CRD of DynamoGraphDeployment."""
    if not _DGD_CRD.is_file():
        pytest.skip(f"the CRD of Dynamo is not there: {_DGD_CRD}")
    kubectl = make_kubectl(pair[0].kubeconfig)
    kubectl.install_crds(_DGD_CRD)
    return kubectl


def _dgd(recipe: str) -> dict[str, Any]:
    """Return the DynamoGraphDeployment of an upstream recipe; the other objects of the file need other CRDs."""
    documents = yaml.safe_load_all((_DATA / "recipes" / f"{recipe}_v1beta1.yaml").read_text("utf-8"))
    found: list[dict[str, Any]] = [each for each in documents if each["kind"] == "DynamoGraphDeployment"]
    return found[0]


def _handshake(host: str, port: int, authority: Authority) -> None:
    """Check the server's certificate as strictly as Python 3.13 does by default."""
    context = ssl.create_default_context(cadata=authority.certificate.decode())
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    with socket.create_connection((host, port), _DEADLINE_S) as raw, context.wrap_socket(raw, server_hostname=host):
        pass


def test_server_is_the_pinned_kubernetes(control_plane: ControlPlane, api: ApiClient) -> None:
    assert control_plane.apiserver.running
    assert VersionApi(api).get_code().git_version == kubernetes_version()
    assert kubernetes_version().startswith("v1.34.")


def test_config_map_round_trip(api: ApiClient, namespace: str) -> None:
    core = CoreV1Api(api)
    written = V1ConfigMap(metadata=V1ObjectMeta(name="round-trip"), data={"isl": "4000"})
    core.create_namespaced_config_map(namespace, written)
    assert core.read_namespaced_config_map("round-trip", namespace).data == {"isl": "4000"}


def test_each_test_gets_a_namespace_of_its_own(kubectl: Kubectl, namespace: str) -> None:
    assert kubectl("get", "configmap", "--namespace", namespace, "--output=name").stdout in (
        "",
        "configmap/kube-root-ca.crt\n",  # a cluster with controllers puts it there
    )


@pytest.mark.parametrize("recipe", _RECIPES)
def test_recipe_passes_strict_validation(kubectl_with_dgd: Kubectl, recipe: str) -> None:
    text = json.dumps(_dgd(recipe))
    done = kubectl_with_dgd("apply", "--dry-run=server", "--validate=strict", "-f", "-", input=text)
    assert done.stdout.endswith("created (server dry run)\n")


def test_misspelt_field_of_a_recipe_is_refused(kubectl_with_dgd: Kubectl) -> None:
    dgd = _dgd(_RECIPES[0])
    dgd["spec"]["bakendFramework"] = "vllm"
    done = kubectl_with_dgd(
        "apply", "--dry-run=server", "--validate=strict", "-f", "-", input=json.dumps(dgd), check=False
    )
    assert done.returncode == 1
    assert 'unknown field "spec.bakendFramework"' in done.stderr


def test_two_control_planes_share_nothing(pair: list[ControlPlane], make_kubectl: MakeKubectl) -> None:
    one, other = (make_kubectl(plane.kubeconfig) for plane in pair)
    one("create", "namespace", "only-here")
    assert one("get", "namespace", "only-here", "--output=name").stdout == "namespace/only-here\n"
    assert "NotFound" in other("get", "namespace", "only-here", check=False).stderr
    assert len({plane.directory for plane in pair} | {plane.url for plane in pair}) == 4


def test_user_without_roles_is_forbidden(pair: list[ControlPlane], make_kubectl: MakeKubectl) -> None:
    nobody = make_kubectl(pair[1].write_kubeconfig("nobody", "nobody"))
    assert 'User "nobody" cannot list resource "secrets"' in nobody("get", "secrets", check=False).stderr


def test_killed_api_server_comes_back_with_its_data(pair: list[ControlPlane], make_kubectl: MakeKubectl) -> None:
    plane = pair[1]
    kubectl = make_kubectl(plane.kubeconfig)
    kubectl("create", "configmap", "survivor", "--from-literal=key=value")
    killed = plane.apiserver.pid
    plane.apiserver.kill()
    wait_for_end(killed, 0)
    assert "refused" in kubectl("get", "configmap", "survivor", check=False).stderr
    plane.apiserver.start()
    plane.wait_until_ready()
    assert kubectl("get", "configmap", "survivor", "--output=jsonpath={.data.key}").stdout == "value"


def test_server_certificate_is_of_the_planes_own_authority(pair: list[ControlPlane]) -> None:
    one, other = pair
    host, _, port = one.url.removeprefix("https://").partition(":")
    _handshake(host, int(port), one.authority)
    with pytest.raises(ssl.SSLCertVerificationError):
        _handshake(host, int(port), other.authority)


def test_nothing_is_left_at_the_end(controlplane_binaries: dict[str, Path]) -> None:
    with start_control_plane(controlplane_binaries) as plane:
        pids = [plane.etcd.pid, plane.apiserver.pid]
        assert plane.kubeconfig.is_relative_to(plane.directory)
    for pid in pids:
        wait_for_end(pid, 0)
    assert not plane.directory.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux kills a child when its parent dies")
def test_nothing_is_left_when_python_is_killed(controlplane_binaries: dict[str, Path]) -> None:
    paths = json.dumps({name: str(path) for name, path in controlplane_binaries.items()})
    command = [sys.executable, "-c", _STARTS_A_PLANE_AND_HANGS, paths]
    with subprocess.Popen(command, cwd=_REPOSITORY, stdout=subprocess.PIPE, text=True) as python:
        assert python.stdout is not None
        directory, *pids = json.loads(python.stdout.readline())
        python.send_signal(signal.SIGKILL)
    for pid in pids:
        wait_for_end(pid, _DEADLINE_S)
    remove_abandoned(DIRECTORY_PREFIX)  # what the next control plane does first
    assert not Path(directory).exists()
