"""The chart on a cluster, installed with the real helm and the images of the cluster."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import ROOT
from tests.controlplane.kubectl import Kubectl
from tests.controlplane.node.cluster import Cluster

SYSTEM = "dgdr-system"
"""Namespace of the operator."""
CHART = ROOT / "charts" / "dgdr"
VALUES = Path(__file__).parent / "values.yaml"


@dataclass(frozen=True)
class Installation:
    """The chart as helm installed it."""

    cluster: Cluster
    kubectl: Kubectl

    def helm(self, *arguments: str) -> str:
        """Run helm on the cluster.

        Raises:
            AssertionError: it ended with an error; the message says what runs.
        """
        command = [str(self.cluster.helm), *arguments, "--kubeconfig", str(self.cluster.kubeconfig), "-n", SYSTEM]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            runs = self.kubectl("get", "pods", "-A", check=False).stdout
            said = self.kubectl("logs", "-n", SYSTEM, "deploy/dgdr-operator", "--tail=20", check=False).stdout
            raise AssertionError(f"helm {arguments[0]}: {done.stderr}\n{runs}\n{said}")
        return done.stdout

    def upgrade(self, *settings: str) -> None:
        """Install the CRDs and the chart, or upgrade to exactly these settings."""
        for file in sorted((ROOT / "crds").glob("*.yaml")):
            self.kubectl.install_crds(file)
        images = [
            f"--set={name}.image.{part}={text}"
            for name, image in self.cluster.images.items()
            for part, text in zip(("repository", "tag"), image.rsplit(":", 1), strict=True)
        ]
        chart = ["upgrade", "--install", "dgdr", str(CHART), "--create-namespace", "--skip-crds"]
        self.helm(*chart, "--wait", "--timeout=120s", "-f", str(VALUES), *images, *settings)

    def uninstall(self) -> None:
        """Remove the chart; the CRDs stay, as for a user."""
        self.helm("uninstall", "dgdr", "--wait")
