"""The sweeper's journal: numbers, whole lines, continuation."""

import json
import threading
from pathlib import Path

from dgdr_job.main.journal import COMPLETED, Journal


def journal(path: Path) -> Journal:
    return Journal(path, attempt="a", run_uid="u", now=lambda: "2026-01-02T03:04:05Z")


def test_lines_are_events_of_the_wire(tmp_path: Path) -> None:
    made = journal(tmp_path / "sweeper" / "a.ndjson")
    made.append("evaluations", b'{"x":[1,2]}')
    made.append(COMPLETED, b"{}")
    lines = (tmp_path / "sweeper" / "a.ndjson").read_bytes().splitlines()
    assert json.loads(lines[0]) == {
        "seq": 1,
        "attempt": "a",
        "runUid": "u",
        "time": "2026-01-02T03:04:05Z",
        "type": "evaluations",
        "data": {"x": [1, 2]},
    }
    assert json.loads(lines[1])["seq"] == 2
    assert made.end == COMPLETED
    made.close()


def test_batches_hold_what_fits_and_at_least_one(tmp_path: Path) -> None:
    made = journal(tmp_path / "j")
    for _ in range(4):
        made.append("evaluations", b"{}")
    made.stop()
    first = made.batch(0, 1)
    assert first is not None
    assert first.count(b"\n") == 1
    second = made.batch(1, 2 * len(first))
    assert second is not None
    assert [json.loads(line)["seq"] for line in second.splitlines()] == [2, 3]
    assert made.batch(4, 100) is None
    made.close()


def test_a_batch_is_waited_for(tmp_path: Path) -> None:
    made = journal(tmp_path / "j")
    found: list[bytes | None] = []
    waiting = threading.Thread(target=lambda: found.append(made.batch(0, 1000)))
    waiting.start()
    made.append("evaluations", b"{}")
    waiting.join(10)
    assert found[0] is not None
    made.close()


def test_an_earlier_process_of_the_attempt_is_continued_without_its_torn_line(tmp_path: Path) -> None:
    made = journal(tmp_path / "j")
    made.append("search.resolved", b"{}")
    made.append("evaluations", b"{}")
    made.close()
    whole = (tmp_path / "j").read_bytes()
    (tmp_path / "j").write_bytes(whole + whole[:30])
    again = journal(tmp_path / "j")
    assert (again.last_seq, again.end) == (2, None)
    again.append(COMPLETED, b"{}")
    assert again.batch(1, 10_000) == (tmp_path / "j").read_bytes()[len(whole) // 1 - len(whole.splitlines()[1]) - 1 :]
    again.close()
