"""The walk that docs/cluster.md shows works as it is shown."""

from pathlib import Path

import pytest

from tests.cluster.install import Installation
from tests.cluster.promotion import Dynamo
from tests.cluster.walk import steps, walk


def test_the_walk(
    installation: Installation, dynamo: Dynamo, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    try:
        ended = walk(dynamo.kubeconfig, tmp_path / "walk.sh")
        shown = capfd.readouterr().out
        assert ended.returncode == 0, shown
    finally:
        installation.kubectl("delete", "namespace", "demo", "--ignore-not-found")
    last = steps().splitlines()[-1]
    _, _, left = shown.rpartition(last)
    assert "dynamographdeployment.nvidia.com/chat" in left
    assert "dynamographdeploymentrun" not in left
    assert "SearchSucceeded" in shown
