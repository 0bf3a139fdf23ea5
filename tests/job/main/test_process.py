"""The sweeper as a program, without a publisher: its exit codes, and how small the parent is."""

import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from dgdr_api.base import wire
from dgdr_job.main import process

from tests.job.search.runs import run


@pytest.fixture
def workspace() -> Iterator[Path]:
    """A folder with a short path, since a socket's may have 107 characters."""
    with tempfile.TemporaryDirectory(prefix="dgdr-") as folder:
        yield Path(folder)


def start(workspace: Path, content: str) -> "subprocess.Popen[bytes]":
    path = workspace / "run.json"
    path.write_text(content)
    command = [sys.executable, "-m", "dgdr_job.main.process", "--run", str(path), "--workspace", str(workspace)]
    return subprocess.Popen([*command, "--attempt", "a"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def whole(uid: str = "uid-1") -> str:
    return json.dumps({"metadata": {"uid": uid}, "spec": wire(run(search={"topologies": ["agg"]}))})


def test_the_engine_works_ahead_while_the_publisher_is_away_and_sigterm_keeps_its_journal(workspace: Path) -> None:
    with start(workspace, whole()) as program:
        assert program.stderr is not None
        for line in program.stderr:  # it says so once the engine has come to its end
            if b"the engine ended with 0" in line:
                break
        program.send_signal(signal.SIGTERM)
        assert program.wait(5) == process.TERMINATED
    lines = (workspace / "sweeper" / "a.ndjson").read_bytes()
    found = [json.loads(line) for line in lines.splitlines()]
    assert [each["seq"] for each in found] == list(range(1, len(found) + 1))
    assert {each["runUid"] for each in found} == {"uid-1"}


def test_sigterm_while_the_run_is_not_known_yet(workspace: Path) -> None:
    with start(workspace, json.dumps(wire(run()))) as program:
        assert program.stderr is not None
        assert b"the engine runs" in program.stderr.readline()
        program.send_signal(signal.SIGTERM)
        assert program.wait(5) == process.TERMINATED
    assert (workspace / "sweeper" / "a.ndjson").read_bytes() == b""


def test_wrong_arguments_and_a_workspace_that_cannot_be_used_are_failures(tmp_path: Path) -> None:
    code = "import sys; from dgdr_job.main.process import main; sys.exit(main(sys.argv[1:]))"
    wrong: tuple[tuple[str, ...], ...] = (
        (),
        ("--run", "x", "--workspace", "/proc/none/such", "--attempt", "a"),
    )
    for arguments in wrong:
        ended = subprocess.run([sys.executable, "-c", code, *arguments], check=False, capture_output=True)
        assert ended.returncode == process.FAILED, ended.stderr


def test_the_parent_does_not_import_the_engine() -> None:
    code = (
        "import sys, dgdr_job.main.process, dgdr_job.main.client, dgdr_job.main.supervision; "
        "sys.exit(bool({'numpy', 'pydantic', 'dgdr_job.search'} & sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_package_gives_what_the_engine_gives_and_nothing_else() -> None:
    import dgdr_job.main as package  # noqa: PLC0415 - the package itself is what is tested

    assert {package.sweep.__module__, package.check.__module__} == {"dgdr_job.main.engine"}
    with pytest.raises(AttributeError, match="has no attribute 'other'"):
        _ = package.other
