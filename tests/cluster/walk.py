"""The walk of docs/cluster.md, run as it stands there: ``make demo-cluster``, and a test.

``python -m tests.cluster.walk`` does it on the cluster that KUBECONFIG names; without one on a node of this machine,
where it can be one; else on kind.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.cluster.install import Installation
from tests.cluster.promotion import dynamo_crd
from tests.conftest import ROOT
from tests.controlplane.build import ControlPlaneError, ensure_binaries
from tests.controlplane.kubectl import Kubectl, find_kubectl
from tests.controlplane.node.cluster import Cluster, provide_cluster
from tests.controlplane.node.errors import UnavailableError
from tests.controlplane.node.images import TARGETS

PAGE = ROOT / "docs" / "cluster.md"
KIND = "dgdr-demo"
Report = Callable[[str], None]


def steps(page: Path = PAGE) -> str:
    """The shell block below ``## The walk``."""
    _, _, section = page.read_text().partition("\n## The walk\n")
    found = re.search(r"^```sh\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    assert found, f"{page} shows no walk"
    return found[1]


def walk(kubeconfig: Path, script: Path) -> subprocess.CompletedProcess[bytes]:
    """Run the walk in one shell that shows each line before its output, and ends at the first that fails.

    Args:
        kubeconfig: the cluster; the chart is installed there.
        script: where the shell finds its lines.
    """
    script.write_text(steps())
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"KUBECONFIG": str(kubeconfig), "PATH": path}
    return subprocess.run(["bash", "-ev", script], cwd=ROOT, env=environment, check=False, stderr=subprocess.STDOUT)


@contextmanager
def kind_cluster(report: Report, folder: Path) -> Iterator[Cluster]:
    """A cluster of kind with our images; it stays.

    Raises:
        UnavailableError: kind or docker is missing.
    """
    for program in ("kind", "docker"):
        if shutil.which(program) is None:
            raise UnavailableError(f"no {program} on PATH either: see https://kind.sigs.k8s.io")
    kubeconfig, images = folder / "kubeconfig", {target: f"dgdr-{target}:demo" for target in TARGETS}
    commands = [["kind", "create", "cluster", f"--name={KIND}", f"--kubeconfig={kubeconfig}"]]
    commands += [["docker", "build", f"--target={target}", f"--tag={name}", "."] for target, name in images.items()]
    commands += [["kind", "load", "docker-image", f"--name={KIND}", *images.values()]]
    for command in commands:
        report(" ".join(command))
        subprocess.run(command, cwd=ROOT, check=True)
    yield Cluster(kubeconfig, images, ensure_binaries(["helm"])["helm"], own=False)
    report(f"the cluster stays: kind delete cluster --name {KIND}")


def main() -> int:
    """Take the walk on a cluster, and leave nothing of it there."""

    def report(line: str) -> None:
        sys.stderr.write(f"[demo] {line}\n")

    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        try:
            try:
                cluster = stack.enter_context(provide_cluster(os.environ, report))
            except UnavailableError as error:
                report(f"{error}; trying kind")
                cluster = stack.enter_context(kind_cluster(report, folder))
        except (ControlPlaneError, subprocess.CalledProcessError) as error:
            report(str(error))
            return 1
        kubectl = Kubectl(find_kubectl(), cluster.kubeconfig, folder / "cache")
        installation = Installation(cluster, kubectl)
        report("helm install dgdr charts/dgdr -n dgdr-system --create-namespace")
        stack.callback(installation.uninstall)
        installation.upgrade()
        if kubectl("get", "crd", "dynamographdeployments.nvidia.com", check=False).returncode != 0:
            report("Dynamo is not installed here: its CRD alone stands in, so that something can be promoted")
            kubectl.install_crds(dynamo_crd())
        ended = walk(cluster.kubeconfig, folder / "walk.sh").returncode
        kubectl("delete", "namespace", "demo", "--ignore-not-found")
    return ended


if __name__ == "__main__":
    sys.exit(main())
