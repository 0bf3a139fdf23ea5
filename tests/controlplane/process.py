"""A child process that never outlives the tests: started with a log file, watched, ended by its pid.

What a test starts must be gone when the test is gone, also when Python itself is killed: on Linux the kernel then kills
the child (``parent_death.py``). That signal follows the *thread* that forked, so every child is forked by one thread
that lives as long as the interpreter; a control plane can thus be started from any thread.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.controlplane.build import ControlPlaneError

STOP_GRACE_S = 5.0
"""How long a process may take to end after SIGTERM before it is killed."""

_POLL_S = 0.05
_ERROR_LINES = 20
_LOG_TAIL_BYTES = 20_000
_PARENT_DEATH = Path(__file__).with_name("parent_death.py")
_FORKER = ThreadPoolExecutor(max_workers=1, thread_name_prefix="controlplane-forker")


class StartError(ControlPlaneError):
    """A process ended, or was not ready in time; the message carries its last log lines."""


class Process:
    """One program with its arguments and its log file; it can be ended and started again.

    Args:
        name: what messages and the log file call it.
        command: program and arguments.
        log: file that receives standard output and standard error; a restart appends.
    """

    def __init__(self, name: str, command: Sequence[str], log: Path) -> None:
        """Describe the process; ``start`` runs it."""
        self.name = name
        self.command = list(command)
        self.log = log
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process id of the running child.

        Raises:
            StartError: it is not running.
        """
        if self._child is None or not self.running:
            raise StartError(f"{self.name} is not running")
        return self._child.pid

    @property
    def running(self) -> bool:
        """Whether the child was started and has not ended."""
        return self._child is not None and self._child.poll() is None

    def start(self) -> None:
        """Start the program; the same arguments as before when it ran already.

        Raises:
            StartError: it is running already.
        """
        if self.running:
            raise StartError(f"{self.name} is running already, as pid {self.pid}")
        self._child = _FORKER.submit(self._fork).result()

    def _fork(self) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [*_kill_with_parent(), *self.command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C goes to pytest alone, which then ends its processes in order
            )

    def stop(self, grace_s: float = STOP_GRACE_S) -> None:
        """End the child: SIGTERM, at most ``grace_s`` seconds, then SIGKILL. Nothing happens when it has ended."""
        if self._child is None:
            return
        self._child.terminate()
        try:
            self._child.wait(grace_s)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """End the child at once by SIGKILL, and wait for its end: the fault that a crash or a lost node is."""
        if self._child is not None:
            self._child.kill()
            self._child.wait()

    def wait_until(self, ready: Callable[[], str | None], deadline_s: float) -> None:
        """Wait until the process is ready.

        Args:
            ready: returns None when the process is ready, else what is missing.
            deadline_s: seconds to wait at most.

        Raises:
            StartError: the process ended, or the deadline passed; the message carries the last log lines.
        """
        end = time.monotonic() + deadline_s
        while (missing := ready()) is not None:
            if not self.running:
                status = "was never started" if self._child is None else f"ended with status {self._child.returncode}"
                raise StartError(self._with_log(f"{self.name} {status} before it was ready: {missing}"))
            if time.monotonic() >= end:
                raise StartError(self._with_log(f"{self.name} was not ready after {deadline_s:g} s: {missing}"))
            time.sleep(_POLL_S)

    def log_tail(self, lines: int = _ERROR_LINES) -> str:
        """Return the last lines of the log, for a message; long lines and long logs are cut."""
        if not self.log.exists():
            return "(no log)"
        with self.log.open("rb") as log:
            size = log.seek(0, os.SEEK_END)
            log.seek(max(0, size - _LOG_TAIL_BYTES))
            text = log.read().decode("utf-8", "replace")
        return "\n".join(text.splitlines()[-lines:])

    def _with_log(self, message: str) -> str:
        return f"{message}\ncommand: {' '.join(self.command)}\nlast lines of {self.log.name}:\n{self.log_tail()}"


def wait_for_end(pid: int, deadline_s: float) -> None:
    """Wait until a process has ended that need not be our child; one that nobody has reaped yet has ended too.

    Raises:
        StartError: it still runs after ``deadline_s`` seconds.
    """
    end = time.monotonic() + deadline_s
    while _runs(pid):
        if time.monotonic() >= end:
            raise StartError(f"pid {pid} still runs after {deadline_s:g} s")
        time.sleep(_POLL_S)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0]
        threads = sum(1 for _ in Path(f"/proc/{pid}/task").iterdir())
    except ProcessLookupError:
        return False
    except FileNotFoundError:  # ended just now, or a system without /proc, where only the signal can tell
        return sys.platform != "linux"
    return state != "Z" or threads > 1  # the first thread may end before the others


def _kill_with_parent() -> list[str]:
    """Return what stands before a command so that the kernel kills it when this Python dies."""
    if sys.platform != "linux":
        return []
    return [sys.executable, "-I", "-S", str(_PARENT_DEATH), str(os.getpid())]
