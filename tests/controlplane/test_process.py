"""A child process ends when it is told to, when it must, and when Python dies."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.controlplane.process import Process, StartError, wait_for_end

_REPOSITORY = Path(__file__).resolve().parents[2]
_DEADLINE_S = 20.0

_UNTIL_SIGTERM = "import signal; print('ready', flush=True); signal.pause()"
_IGNORES_SIGTERM = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + _UNTIL_SIGTERM
_ENDS = "print('no quorum', flush=True); raise SystemExit(3)"

_STARTS_A_CHILD_AND_DIES = """
import os, signal, sys
from pathlib import Path
from tests.controlplane.process import Process

child = Process("child", [sys.executable, "-c", "import signal; signal.pause()"], Path(sys.argv[1]))
child.start()
print(child.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def _python(code: str, log: Path) -> Process:
    return Process("child", [sys.executable, "-c", code], log)


def _wait_for_lines(process: Process, count: int = 1) -> None:
    process.wait_until(lambda: None if process.log.read_bytes().count(b"\n") == count else "a line", _DEADLINE_S)


def test_stop_ends_a_process_by_sigterm(tmp_path: Path) -> None:
    process = _python(_UNTIL_SIGTERM, tmp_path / "log")
    process.start()
    _wait_for_lines(process)
    pid = process.pid
    process.stop()
    assert not process.running
    wait_for_end(pid, 0)


def test_stop_kills_a_process_that_ignores_sigterm(tmp_path: Path) -> None:
    process = _python(_IGNORES_SIGTERM, tmp_path / "log")
    process.start()
    _wait_for_lines(process)
    process.stop(grace_s=0.1)
    assert not process.running


def test_stop_before_start_and_after_the_end_does_nothing(tmp_path: Path) -> None:
    process = _python(_UNTIL_SIGTERM, tmp_path / "log")
    process.stop()
    process.start()
    process.kill()
    process.stop()
    with pytest.raises(StartError, match="child is not running"):
        _ = process.pid


def test_a_killed_process_starts_again_and_appends_to_its_log(tmp_path: Path) -> None:
    process = _python(_UNTIL_SIGTERM, tmp_path / "log")
    for starts in (1, 2):
        process.start()
        _wait_for_lines(process, starts)
        process.kill()
    assert process.log_tail() == "ready\nready"


def test_a_running_process_is_not_started_twice(tmp_path: Path) -> None:
    process = _python(_UNTIL_SIGTERM, tmp_path / "log")
    process.start()
    with pytest.raises(StartError, match="running already"):
        process.start()
    process.kill()


def test_a_process_that_ends_before_it_is_ready_is_reported_with_its_log(tmp_path: Path) -> None:
    process = _python(_ENDS, tmp_path / "log")
    process.start()
    with pytest.raises(StartError, match=r"ended with status 3 before it was ready: port(.|\n)*no quorum"):
        process.wait_until(lambda: "port", _DEADLINE_S)


def test_a_process_that_is_not_ready_in_time_is_reported(tmp_path: Path) -> None:
    process = _python(_UNTIL_SIGTERM, tmp_path / "log")
    process.start()
    with pytest.raises(StartError, match=r"not ready after 0\.1 s: port"):
        process.wait_until(lambda: "port", 0.1)
    process.kill()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux kills a child when its parent dies")
def test_a_process_dies_with_python(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _STARTS_A_CHILD_AND_DIES, str(tmp_path / "log")]
    parent = subprocess.run(command, cwd=_REPOSITORY, stdout=subprocess.PIPE, text=True, check=False)
    assert parent.returncode == -9
    wait_for_end(int(parent.stdout), _DEADLINE_S)
