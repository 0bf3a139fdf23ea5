"""The kubectl callable: arguments, input, and errors that show what kubectl said."""

from pathlib import Path

import pytest

from tests.controlplane.kubectl import Kubectl, KubectlError


def _kubectl(directory: Path, script: str) -> Kubectl:
    executable = directory / "kubectl"
    executable.write_text(f"#!/bin/sh\n{script}\n", "utf-8")
    executable.chmod(0o755)
    return Kubectl(executable, directory / "kubeconfig", directory / "cache")


def test_arguments_input_and_cluster_reach_kubectl(tmp_path: Path) -> None:
    done = _kubectl(tmp_path, 'echo "$@"; cat')("apply", "-f", "-", input="text")
    assert done.stdout == f"--kubeconfig={tmp_path}/kubeconfig --cache-dir={tmp_path}/cache apply -f -\ntext"


def test_an_error_is_raised_with_what_kubectl_said(tmp_path: Path) -> None:
    with pytest.raises(KubectlError, match="`kubectl get pods` ended with status 1:\nno such server"):
        _kubectl(tmp_path, "echo no such server >&2; exit 1")("get", "pods")


def test_an_expected_error_is_returned(tmp_path: Path) -> None:
    done = _kubectl(tmp_path, "echo Invalid >&2; exit 1")("apply", check=False)
    assert (done.returncode, done.stderr) == (1, "Invalid\n")


def test_kubectl_that_hangs_is_killed(tmp_path: Path) -> None:
    with pytest.raises(KubectlError, match=r"`kubectl wait` did not end within 0\.1 s"):
        _kubectl(tmp_path, "exec sleep 60")("wait", timeout_s=0.1)
