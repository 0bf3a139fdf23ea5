"""Dynamo's part of a cluster, and ``kubectl dgdr`` as a user calls it."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dgdr_kube.resource import Resource

from tests.conftest import ROOT

DGD = Resource("nvidia.com/v1beta1", "DynamoGraphDeployment", "dynamographdeployments")


@dataclass(frozen=True)
class Dynamo:
    """A cluster that knows Dynamo's deployments, seen by a user with our plugin on the PATH."""

    kubeconfig: Path
    kubectl: Path
    environment: Mapping[str, str] = field(default_factory=dict)

    def dgdr(self, *arguments: str, timeout_s: float = 240.0) -> subprocess.CompletedProcess[str]:
        """Run ``kubectl dgdr …``."""
        beside = str(Path(sys.executable).parent)
        assert shutil.which("kubectl-dgdr", path=beside) is not None
        environment = os.environ | {"PATH": f"{beside}{os.pathsep}{os.environ['PATH']}"} | dict(self.environment)
        return subprocess.run(
            [str(self.kubectl), "dgdr", *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout_s,
            env=environment | {"KUBECONFIG": str(self.kubeconfig)},
        )


def dynamo_crd() -> Path:
    """Path of the CRD of DynamoGraphDeployment: Dynamo's own where it lies beside this repository, else a small one."""
    real = ROOT.parent / "shared" / "data" / "crds" / "nvidia.com_dynamographdeployments.yaml"
    return real if real.is_file() else Path(__file__).parent / "dgd-crd.yaml"
