"""The program as a process: signals at several moments, kill -9, two at once, standard streams that close."""

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from dgdr_cli.output_directory import LOCK

from tests.cli.conftest import Dgdr, Write

PROGRAM = (sys.executable, "-c", "from dgdr_cli.main import main; main()")
HALTING = """
import importlib.abc, os, sys, threading
moment, told = sys.argv[1], int(sys.argv[2])
del sys.argv[1:3]


def halt():
    os.write(told, b"x")
    while not threading.Event().wait(0.01):  # Python 3.11 can miss signals that native threads take, until it wakes up
        pass


if "/" in moment:
    from dgdr_job.search.sweep import Sweep

    def report(self, stage, original=Sweep._report):
        original(self, stage)
        if stage == moment:
            halt()

    Sweep._report = report
else:

    class Finder(importlib.abc.MetaPathFinder):
        def find_spec(self, name, path, target=None):
            if name == moment:
                halt()

    sys.meta_path.insert(0, Finder())

from dgdr_cli.main import main
main()
"""
"""Says that it has come to a moment, and stays there: the import of a module, or a stage of the search."""
LIMIT_S = 60


@pytest.fixture(autouse=True)
def keyboard_interrupts_reach_children() -> Iterator[None]:
    """Tests that are started in the background ignore SIGINT, and so would their children."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def started_until(moment: str, *arguments: object) -> "subprocess.Popen[str]":
    """A ``dgdr`` that has come to a moment."""
    told, tell = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-c", HALTING, moment, str(tell), *map(str, arguments)],
        pass_fds=[tell],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(tell)
    came = os.read(told, 1)
    os.close(told)
    if not came:
        pytest.fail(f"never came to {moment}: {process.communicate(timeout=LIMIT_S)}")
    return process


def ended(process: "subprocess.Popen[str]", *numbers: int) -> tuple[int, str, str]:
    """Exit code, output and errors after signals."""
    for number in numbers:
        process.send_signal(number)
    output, errors = process.communicate(timeout=LIMIT_S)
    assert "Traceback" not in errors
    assert "Exception ignored" not in errors
    return process.returncode, output, errors


def run_of(out: Path) -> Any:
    return yaml.safe_load((out / "run.yaml").read_text())


SIGNALS = [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]


@pytest.mark.parametrize(("number", "code"), SIGNALS)
@pytest.mark.parametrize(
    "moment", ["typer", "dgdr_cli.search", "pydantic", "dgdr_job.main", "dgdr_publisher.publisher"]
)
def test_a_signal_while_modules_are_loaded_ends_quietly(
    write: Write, tmp_path: Path, moment: str, number: int, code: int
) -> None:
    process = started_until(moment, "search", write(), "--out", tmp_path / "out")
    found, output, errors = ended(process, number)
    assert (found, output) == (code, "")
    assert errors in ("dgdr: interrupted\n", "")  # typer says nothing while it reads the arguments
    assert not (tmp_path / "out" / LOCK).exists()


@pytest.mark.parametrize(("number", "code"), SIGNALS)
@pytest.mark.parametrize(
    ("moment", "known"), [("preflight vllm/agg", False), ("vllm/agg agg", False), ("vllm/disagg decode", True)]
)
def test_a_signal_during_a_search_keeps_what_is_known(
    write: Write, tmp_path: Path, moment: str, *, known: bool, number: int, code: int
) -> None:
    out = tmp_path / "out"
    found, output, errors = ended(started_until(moment, "search", write(), "--out", out), number)
    assert (found, errors) == (code, "dgdr: interrupted; writing what is known, once more ends it at once\n")
    status = run_of(out)["status"]
    completed = next(each for each in status["conditions"] if each["type"] == "Completed")
    assert (completed["status"], completed["reason"]) == ("True", "Cancelled")
    assert completed["message"] == status["outcome"]["message"] == f"ended by {signal.Signals(number).name}"
    assert "Cancelled" in output
    assert bool(status.get("candidateRefs")) == known == (out / "dgd.yaml").exists()
    assert (out / "points.parquet").is_file()
    journal = out / "events.ndjson"
    assert not journal.exists() or (
        journal.read_text().endswith("\n") and "search.completed" not in journal.read_text()
    )
    assert not list(out.rglob(".*"))


def test_signals_in_a_burst_are_one(write: Write, tmp_path: Path) -> None:
    process = started_until("vllm/disagg decode", "search", write(), "--out", tmp_path / "out")
    code, _, _ = ended(process, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGTERM)
    assert code in (129, 130, 143)
    assert run_of(tmp_path / "out")["status"]["outcome"]["reason"] == "Cancelled"


def test_a_signal_that_the_caller_ignores_stays_ignored(write: Write, tmp_path: Path) -> None:
    """As under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        process = started_until("vllm/agg agg", "search", write(), "--out", tmp_path / "out")
    finally:
        signal.signal(signal.SIGHUP, before)
    process.send_signal(signal.SIGHUP)
    code, _, _ = ended(process, signal.SIGTERM)
    assert code == 143


def test_an_exception_that_python_drops_comes_again() -> None:
    """A signal that arrives in a destructor must not be lost."""
    program = (
        "import os, signal, threading\n"
        "from dgdr_cli import signals\n"
        "signals.listen()\n"
        "class Dying:\n"
        "    def __del__(self):\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        "try:\n"
        "    Dying()\n"
        "    threading.Event().wait()\n"
        "except signals.Stopped as stop:\n"
        "    print(stop)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "SIGTERM\n", "")


def test_an_error_that_foreign_code_makes_of_a_signal_is_the_signal(write: Write, tmp_path: Path) -> None:
    program = (
        "import os, signal\n"
        "from dgdr_job.search.sweep import Sweep\n"
        "def report(self, stage):\n"
        "    try:\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        "    except BaseException as error:\n"
        "        raise SystemError('returned a result with an exception set') from error\n"
        "Sweep._report = report\n"
        "from dgdr_cli.main import main\n"
        "main()\n"
    )
    out = tmp_path / "out"
    words = ["search", str(write()), "--out", str(out)]
    done = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 143
    assert run_of(out)["status"]["outcome"]["reason"] == "Cancelled"


def test_a_killed_search_is_gone_on_with(dgdr: Dgdr, write: Write, tmp_path: Path) -> None:
    out, request = tmp_path / "out", write()
    process = started_until("vllm/disagg decode", "search", request, "--out", out)
    assert ended(process, signal.SIGKILL)[0] == -signal.SIGKILL
    assert run_of(out)["status"]["phase"] == "Running"
    refused = dgdr("search", request, "--out", out)
    assert refused.exit_code == 2
    assert "--resume" in refused.stderr
    again = dgdr("search", request, "--out", out, "--resume")
    assert again.exit_code == 0, again.output
    assert dgdr("search", request, "--out", tmp_path / "fresh").exit_code == 0
    fresh = run_of(tmp_path / "fresh")["status"]["candidateRefs"]
    assert run_of(out)["status"]["candidateRefs"] == fresh
    assert not (out / LOCK).exists()


def test_a_journal_that_cannot_grow_leaves_whole_lines_and_a_run_that_failed(write: Write, tmp_path: Path) -> None:
    program = (
        "import resource\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))\n"
        "from dgdr_cli.main import main\n"
        "main()\n"
    )
    out = tmp_path / "out"
    words = [sys.executable, "-c", program, "search", str(write()), "--out", str(out)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 4
    assert f"dgdr: {out / 'events.ndjson'}: File too large" in done.stderr
    status = run_of(out)["status"]
    assert (status["phase"], status["outcome"]["reason"]) == ("Failed", "SearchFailed")
    assert "File too large" in status["outcome"]["message"]
    lines = (out / "events.ndjson").read_text().splitlines(keepends=True)
    assert [json.loads(line)["seq"] for line in lines] == list(range(1, len(lines) + 1))
    assert lines[-1].endswith("\n")


def test_two_searches_at_once_do_not_mix(dgdr: Dgdr, write: Write, tmp_path: Path) -> None:
    out, request = tmp_path / "out", write()
    first = started_until("vllm/disagg decode", "search", request, "--out", out)
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    for option in ((), ("--force",), ("--resume",)):
        second = dgdr("search", request, "--out", out, *option)
        assert second.exit_code == 2
        assert "another search writes there" in second.stderr
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    assert ended(first, signal.SIGTERM)[0] == 143
    assert dgdr("search", request, "--out", out, "--resume").exit_code == 0


def shell(line: str, *arguments: object) -> "subprocess.CompletedProcess[str]":
    """A line of shell with ``dgdr`` as a function and arguments; the exit code is that of dgdr."""
    text = f'set -o pipefail; dgdr() {{ "$PYTHON" -c "{PROGRAM[2]}" "$@"; }}; {line}'
    return subprocess.run(
        ["bash", "-c", text, "bash", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
        env=os.environ | {"PYTHON": sys.executable},
    )


def test_a_reader_that_goes_away_changes_no_exit_code(write: Write, tmp_path: Path) -> None:
    found = shell('dgdr search "$1" --out "$2" | head -1', write(), tmp_path / "found")
    assert (found.returncode, found.stdout.strip(), found.stderr) == (0, "Candidates", "")
    request = write(spec__modelRef__name="Qwen/Qwen3-33B")
    refused = shell('dgdr search "$1" --out "$2" -o json | true', request, tmp_path / "refused")
    assert (refused.returncode, refused.stderr) == (3, "")
    for command in ("schema request", "catalog skus", "catalog versions -o json", "--help"):
        printed = shell(f"dgdr {command} | true")
        assert (printed.returncode, printed.stderr) == (0, ""), command


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_a_stream_that_is_closed_changes_no_exit_code(write: Write, tmp_path: Path, closed: str) -> None:
    request = write(spec__modelRef__name="Qwen/Qwen3-33B")
    assert shell(f'dgdr search "$1" --out "$2" {closed}', request, tmp_path / "out").returncode == 3
    assert run_of(tmp_path / "out")["status"]["outcome"]["reason"] == "Unsupported"
    assert shell(f"dgdr catalog skus {closed}").returncode == 0
    assert shell(f'dgdr search "$1" --out "$2" {closed}', tmp_path / "none", tmp_path / "other").returncode == 2


def test_output_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    full = shell("dgdr catalog skus > /dev/full")
    assert (full.returncode, full.stderr) == (4, "dgdr: standard output: No space left on device\n")


def test_a_terminal_that_closes_ends_the_search_with_results(write: Write, tmp_path: Path) -> None:
    out = tmp_path / "out"
    told, tell = os.pipe()
    words = [sys.executable, "-c", HALTING, "vllm/disagg decode", str(tell), "search", str(write()), "--out", str(out)]
    child, terminal = pty.fork()
    if child == 0:
        os.set_inheritable(tell, True)  # noqa: FBT003 - the standard library's form
        os.execv(words[0], words)  # noqa: S606
    os.close(tell)
    assert os.read(told, 1) == b"x"
    os.close(told)
    os.close(terminal)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 129
    assert run_of(out)["status"]["outcome"]["reason"] == "Cancelled"
