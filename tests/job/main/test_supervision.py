"""The parent's hold on the engine, with small real children in its place."""

import json
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dgdr_job.main.journal import COMPLETED, FAILED, Journal
from dgdr_job.main.supervision import CRASHED, MAX_RESTARTS, Supervisor

ROUND = '{"branch": "b", "counters": {"feasible": 3}}'


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    made = Journal(tmp_path / "j", attempt="a", run_uid="u", now=lambda: "2026-01-02T03:04:05Z")
    yield made
    made.close()


def child(body: str) -> list[str]:
    """A child in which ``say(line)`` writes to the parent."""
    head = "import os, signal, sys\nfd = int(sys.argv[-1])\ndef say(line): os.write(fd, line.encode() + b'\\n')\n"
    return [sys.executable, "-c", head + body]


def events(journal: Journal) -> list[tuple[str, Any]]:
    lines = journal.batch(0, 1_000_000)
    assert lines is not None
    found = [json.loads(line) for line in lines.splitlines()]
    assert [each["seq"] for each in found] == list(range(1, len(found) + 1))
    return [(each["type"], each["data"]) for each in found]


def test_what_the_engine_says_is_numbered(journal: Journal) -> None:
    Supervisor(child("say('search.resolved {}'); say('search.completed {}')"), journal).run()
    assert [kind for kind, _ in events(journal)] == ["search.resolved", COMPLETED]


def test_an_engine_that_dies_is_started_again_and_its_half_line_forgotten(journal: Journal, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    body = f"""
say('search.resolved {{}}')
if not os.path.exists({str(marker)!r}):
    open({str(marker)!r}, 'w').close()
    os.write(fd, b'evaluations {{"half')
    os.kill(os.getpid(), signal.SIGKILL)
say('search.completed {{}}')
"""
    Supervisor(child(body), journal).run()
    assert [kind for kind, _ in events(journal)] == ["search.resolved", "search.resolved", COMPLETED]


def test_after_three_restarts_the_search_has_failed(journal: Journal) -> None:
    body = (
        f"say('round.completed {ROUND}'); print('out of luck', file=sys.stderr); os.kill(os.getpid(), signal.SIGSEGV)"
    )
    Supervisor(child(body), journal).run()
    found = events(journal)
    assert [kind for kind, _ in found] == ["round.completed"] * (MAX_RESTARTS + 1) + [FAILED]
    failed = found[-1][1]
    assert (failed["reason"], failed["counters"]) == (CRASHED, {"feasible": 3})
    assert failed["message"].startswith("the engine died 4 times, the last time by signal 11: ")
    assert "out of luck" in failed["message"]


def test_an_engine_that_ends_well_without_an_end_has_crashed_too(journal: Journal) -> None:
    Supervisor(child("say('search.resolved {}')"), journal).run()
    assert events(journal)[-1][0] == FAILED


def test_a_failure_that_the_engine_reports_is_not_tried_again(journal: Journal) -> None:
    Supervisor(child("say('search.failed {}'); sys.exit(4)"), journal).run()
    assert [kind for kind, _ in events(journal)] == [FAILED]


def test_stopping_kills_the_engine_and_journals_no_end(journal: Journal) -> None:
    supervisor = Supervisor(child("say('search.resolved {}'); signal.pause()"), journal)
    thread = threading.Thread(target=supervisor.run)
    thread.start()
    assert journal.batch(0, 1000) is not None  # it runs
    started = time.monotonic()
    supervisor.stop()
    thread.join(10)
    assert not thread.is_alive()
    assert time.monotonic() - started < 5
    assert [kind for kind, _ in events(journal)] == ["search.resolved"]
    assert journal.batch(1, 1000) is None


def test_a_program_that_is_not_there_is_an_error_of_its_own(journal: Journal) -> None:
    supervisor = Supervisor(["./no-such-program"], journal)
    supervisor.run()
    assert isinstance(supervisor.error, FileNotFoundError)
    assert journal.batch(0, 10) is None
