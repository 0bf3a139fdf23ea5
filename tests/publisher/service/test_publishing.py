"""When what is written: pace, order, repetition after errors, giving up, a search that begins again."""

import subprocess
import sys
from pathlib import Path

import pytest
from dgdr_api.events import Counters, Failed, RoundCompleted
from dgdr_publisher.errors import BusyError, RefusedError
from dgdr_publisher.service.run_loop import LATE_IMPORTS, MOST_CONFLICTS, start

from tests.publisher.samples import AGG, COUNTERS, DISAGG, NOW, events, numbered, points, resolved, run, spec
from tests.publisher.service.conftest import Publishing, Store, publishing

WHOLE = events(DISAGG, AGG)


def test_nothing_is_written_before_the_first_event(live: Publishing) -> None:
    assert live.step() is None
    assert live.store.calls == []


def test_the_start_goes_at_once_and_then_one_status_in_five_seconds(live: Publishing) -> None:
    live.send(WHOLE[0])
    assert live.step() == 0
    assert live.store.calls == ["run"]
    live.send(*WHOLE[1:-1])
    assert live.step() == 5
    live.clock.seconds += 4
    assert live.step() == 1
    live.clock.seconds += 1
    assert live.step() == 0
    assert live.store.calls == ["run", "candidates", "points", "run", "delete"]
    assert live.step() is None


def test_candidates_are_published_while_the_search_runs_and_ranked_at_its_end(live: Publishing) -> None:
    live.send(*WHOLE[:-1])
    live.step()
    assert [one.status.rank for one in live.store.held.values() if one.status] == [None, None]
    assert [ref.name for ref in live.store.statuses[-1].candidate_refs] == list(live.store.held)
    live.send(WHOLE[-1])
    assert live.step() == 0
    assert [one.status.rank for one in live.store.held.values() if one.status] == [1, 2]


def test_the_end_goes_at_once_in_the_order_that_names_nothing_absent(live: Publishing) -> None:
    live.send(WHOLE[0])
    live.step()
    live.send(*WHOLE[1:])
    assert live.ingest.ack_seq == len(WHOLE) - 1
    assert live.step() == 0
    assert live.store.calls == ["run", "load", "candidates", "points", "logs", "run", "delete"]
    assert live.ingest.ack_seq == len(WHOLE)
    assert live.store.statuses[-1].report_ref is not None
    assert live.store.logs == {"a": ["b"]}


def test_a_candidate_that_is_overtaken_is_deleted_after_the_status_no_longer_names_it(tmp_path: Path) -> None:
    of = run(spec(recommendation={"maxCandidates": 1}))
    live = publishing(tmp_path, of)
    first, *rest = ((AGG.id,), (DISAGG.id, AGG.id))
    told = numbered(
        [
            resolved(),
            AGG,
            RoundCompleted(branch="vllm/disagg", round=1, total=2, counters=Counters(scheduled=12), reserve=first),
            DISAGG,
            RoundCompleted(branch="vllm/disagg", round=2, total=2, counters=COUNTERS, reserve=rest[0]),
        ],
        of,
    )
    live.send(*told[:3])
    live.step()
    (before,) = live.store.held
    live.send(*told[3:])
    live.clock.seconds += 5
    live.step()
    (after,) = live.store.held
    assert before != after
    assert live.store.calls[-3:] == ["candidates", "run", "delete"]


def test_an_error_that_may_pass_is_tried_again_with_longer_waits(live: Publishing) -> None:
    live.store.errors["run"] = [BusyError("429") for _ in range(8)]
    live.send(WHOLE[0])
    waits = []
    for _ in range(8):
        assert live.step() == 0
        waits.append(live.step())
        live.clock.seconds += waits[-1] or 0
    assert waits == [0.5, 1, 2, 4, 8, 16, 30, 30]
    assert live.step() == 0
    assert live.store.calls == ["run"]
    assert not live.loop.refused


def test_the_server_may_ask_for_a_longer_wait(live: Publishing) -> None:
    live.store.errors["run"] = [BusyError("429", retry_after_s=12)]
    live.send(WHOLE[0])
    live.step()
    assert live.step() == 12


@pytest.mark.parametrize("where", ["candidates", "points", "load"])
def test_a_refusal_ends_the_run_with_the_reason(live: Publishing, where: str) -> None:
    live.store.errors[where] = [RefusedError("403 forbidden: no candidates for you")]
    live.send(*WHOLE)
    live.step()
    assert live.loop.refused == "403 forbidden: no candidates for you"
    assert live.step() == 0
    status = live.store.statuses[-1]
    assert status.outcome is not None
    assert status.outcome.reason == "SearchFailed"
    assert "403 forbidden" in status.outcome.message
    assert status.candidate_refs == ()
    assert live.ingest.ack_seq == len(WHOLE) - 1


def test_a_refusal_of_everything_is_told_to_the_sweeper_alone(live: Publishing) -> None:
    live.store.errors["run"] = [RefusedError("403 status"), RefusedError("403 status")]
    live.send(WHOLE[0])
    live.step()
    live.step()
    assert live.store.statuses == []
    assert live.loop.refused == "403 status"
    assert live.ingest.state.failed


def test_conflicts_without_end_are_a_bug_that_is_reported(live: Publishing) -> None:
    live.store.errors["run"] = [BusyError("409", conflict=True) for _ in range(MOST_CONFLICTS)]
    live.send(WHOLE[0])
    for _ in range(MOST_CONFLICTS):
        live.clock.seconds += 60
        live.step()
    assert live.loop.refused == f"{MOST_CONFLICTS} conflicts in a row: 409"


def test_checkpoints_of_the_report_are_a_minute_apart(live: Publishing) -> None:
    told = numbered([resolved(), points(DISAGG), points(AGG), points()], live.run)
    for event in told:
        live.send(event)
        live.step()
        live.clock.seconds += 20
    assert live.store.points == [2]
    live.clock.seconds += 20
    live.send(*numbered([*(each.data for each in told), points()], live.run)[4:])
    live.step()
    assert live.store.points == [2, 6]


def test_after_a_restart_the_journal_is_known_and_nothing_goes_back(tmp_path: Path) -> None:
    first = publishing(tmp_path)
    first.send(*WHOLE[:-1])
    first.step()
    status = first.store.statuses[-1]
    again = publishing(tmp_path, first.run.model_copy(update={"status": status}), Store(held=dict(first.store.held)))
    assert again.ingest.state.seq == len(WHOLE) - 1
    again.step()
    assert again.store.statuses[-1] == status
    again.send(*WHOLE)
    again.step()
    first.send(WHOLE[-1])
    first.step()
    assert again.store.statuses[-1] == first.store.statuses[-1]
    assert again.store.held == first.store.held


def test_a_search_that_begins_again_shows_nothing_until_it_has_caught_up(tmp_path: Path) -> None:
    first = publishing(tmp_path / "one")
    first.send(*WHOLE[:-1])
    first.step()
    shown = first.store.statuses[-1]
    of = first.run.model_copy(update={"status": shown})
    second = publishing(tmp_path / "two", of, Store(held=dict(first.store.held)))
    behind = Counters(scheduled=12, feasible=1, remaining=11)
    told = numbered(
        [resolved(), AGG, RoundCompleted(branch="vllm/disagg", round=1, total=1, counters=behind, reserve=(AGG.id,))],
        of,
        attempt="second",
    )
    second.send(*told)
    second.step()
    status = second.store.statuses[-1]
    assert status.candidate_refs == shown.candidate_refs
    assert (status.progress, status.best, status.versions) == (shown.progress, shown.best, shown.versions)
    assert "candidates" not in second.store.calls
    assert second.store.held == first.store.held
    second.send(*numbered([each.data for each in WHOLE], of, attempt="third"))
    second.step()
    assert second.store.statuses[-1].candidate_refs == shown.candidate_refs
    assert second.store.statuses[-1].outcome is not None


def test_a_failed_search_keeps_what_is_published_and_every_point(live: Publishing) -> None:
    live.send(*WHOLE[:-1])
    live.step()
    failed = Failed(reason="KeyError", message="boom", counters=Counters(scheduled=12, failed=1))
    live.send(numbered([*(each.data for each in WHOLE[:-1]), failed], live.run)[-1])
    live.step()
    status = live.store.statuses[-1]
    assert [ref.name for ref in status.candidate_refs] == list(live.store.held)
    assert status.outcome is not None
    assert (status.outcome.reason, status.outcome.message) == ("SearchFailed", "KeyError: boom")
    assert live.store.points[-1] == 3


def test_a_run_that_has_ended_takes_another_attempt_without_a_write(tmp_path: Path) -> None:
    first = publishing(tmp_path / "one")
    first.send(*WHOLE)
    first.step()
    of = first.run.model_copy(update={"status": first.store.statuses[-1]})
    second = publishing(tmp_path / "two", of)
    second.send(*numbered([each.data for each in WHOLE], of, attempt="second"))
    assert second.ingest.ack_seq == len(WHOLE)
    assert second.store.calls == []


def test_stopping_publishes_what_is_known_without_waiting_for_the_pace(live: Publishing) -> None:
    live.send(WHOLE[0])
    live.step()
    live.send(*WHOLE[1:-1])
    live.loop.stop(10)
    thread = start(live.loop)
    thread.join(10)
    assert not thread.is_alive()
    assert live.store.statuses[-1].progress is not None
    assert live.store.statuses[-1].progress.summary == "12/12"
    assert live.store.statuses[-1].outcome is None


def test_the_time_of_the_events_does_not_matter(live: Publishing) -> None:
    live.send(WHOLE[0])
    live.step()
    assert live.store.statuses[-1].last_progress_time == NOW


def test_what_is_imported_early_is_what_the_report_needs_and_no_more() -> None:
    code = f"""
import importlib, sys
from dgdr_publisher.points import parquet_bytes
from tests.publisher.samples import AGG, points
for module in {LATE_IMPORTS}:
    importlib.import_module(module)
before = set(sys.modules)
parquet_bytes([points(AGG)], {{}})
assert "pandas" not in sys.modules
late = {{name for name in set(sys.modules) - before if name.startswith(("pyarrow", "numpy"))}}
assert not late, late
"""
    subprocess.run([sys.executable, "-c", code], check=True)
