"""The program as a person calls it: by its own name, and as kubectl's plugin."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from dgdr_cli.cluster.commands import COMMANDS
from dgdr_cli.cluster.kinds import CANDIDATE, DGD

from tests.cli.cluster.conftest import PROGRAM
from tests.cli.cluster.world import World
from tests.cli.conftest import Dgdr
from tests.controlplane.kubectl import Kubectl


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example_and_the_options_of_kubectl(dgdr: Dgdr, command: str) -> None:
    ended = dgdr(command, "--help")
    assert ended.exit_code == 0
    for words in (f"Example: kubectl dgdr {command}", "--namespace", "-n", "--context", "--kubeconfig"):
        assert words in ended.stdout


def test_the_commands_import_nothing_heavy_until_they_run() -> None:
    program = (
        "import sys; import dgdr_cli.app; "
        "heavy = {'pydantic', 'kubernetes', 'urllib3', 'yaml', 'rich.live', 'dgdr_kube.client', 'dgdr_operator'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.fixture
def plugin(tmp_path: Path) -> dict[str, str]:
    """An environment in which kubectl finds the plugin."""
    program = tmp_path / "kubectl-dgdr"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "{PROGRAM}" "$@"\n')
    program.chmod(0o755)
    return os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "KUBERC": "off", "COLUMNS": "120"}


def test_kubectl_dgdr(kubectl: Kubectl, plugin: dict[str, str], world: World, kubeconfig: Path) -> None:
    found = world.ended()

    def called(*words: str) -> "subprocess.CompletedProcess[str]":
        command = [str(kubectl.executable), "dgdr", *words]
        env = plugin | {"KUBECONFIG": str(kubeconfig)}
        return subprocess.run(command, capture_output=True, text=True, check=False, env=env, timeout=60)

    assert "Usage: kubectl dgdr [OPTIONS] COMMAND" in called("--help").stdout
    assert "completion" not in called("--help").stdout  # kubectl asks a program of another name for it
    assert "Usage: kubectl dgdr promote [OPTIONS]" in called("promote", "--help").stdout
    where = ("-n", world.namespace)
    made = called("promote", found.candidates[0], "--name", "qwen", *where)
    assert (made.returncode, made.stderr) == (0, "")
    assert world.has(DGD, "qwen")
    absent = called("runs", "absent", *where)
    assert absent.returncode == 2
    wrong = called("promote", found.candidates[0])
    assert wrong.returncode == 2
    assert "kubectl dgdr promote" in wrong.stderr
    listed = called("show", "absent", *where)
    assert "`kubectl dgdr candidates RUN -n" in listed.stderr
    assert world.has(CANDIDATE, found.candidates[0])
