"""The routes: acknowledgement, gaps, malformed lines, bounds."""

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from dgdr_publisher.service.app import Service, build_app

from tests.publisher.samples import DISAGG, events
from tests.publisher.service.conftest import Publishing, lines, publishing

WHOLE = events(DISAGG)
NDJSON = {"Content-Type": "application/x-ndjson"}
Post = Callable[..., httpx.Response]


@pytest.fixture
def post(live: Publishing) -> Post:
    """One request to a service that waits for nothing."""

    def ask(
        content: Any, headers: dict[str, str] | None = None, method: str = "POST", **service: Any
    ) -> httpx.Response:
        made = Service(live.ingest, lambda: live.loop.refused, terminal_wait_s=0, **service)

        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(build_app(made))
            async with httpx.AsyncClient(transport=transport, base_url="http://publisher") as client:
                path = "/v1/events" if method == "POST" else str(content)
                return await client.request(
                    method, path, content=None if method == "GET" else content, headers=headers or NDJSON
                )

        return anyio.run(send)

    return ask


def test_events_are_acknowledged_and_repeated_ones_again(post: Post, live: Publishing) -> None:
    for _ in range(2):
        answer = post(lines(*WHOLE[:3]))
        assert (answer.status_code, answer.json()) == (200, {"ackSeq": 3})
    assert live.ingest.state.seq == 3


def test_a_gap_names_what_is_expected_and_keeps_what_came_before_it(post: Post) -> None:
    answer = post(lines(WHOLE[0], WHOLE[2]))
    assert (answer.status_code, answer.json()["expectedSeq"]) == (409, 2)
    assert post(lines(*WHOLE[1:3])).json() == {"ackSeq": 3}


def test_the_end_is_acknowledged_only_once_it_is_published(post: Post, live: Publishing) -> None:
    assert post(lines(*WHOLE)).json() == {"ackSeq": len(WHOLE) - 1}
    assert post(lines(WHOLE[-1])).json() == {"ackSeq": len(WHOLE) - 1}
    live.step()
    assert post(lines(WHOLE[-1])).json() == {"ackSeq": len(WHOLE)}


def broken(change: Callable[[dict[str, Any]], Any]) -> bytes:
    document = json.loads(lines(WHOLE[-2]))
    change(document)
    return json.dumps(document).encode() + b"\n"


@pytest.mark.parametrize(
    ("line", "field"),
    [
        (broken(lambda document: document["data"]["counters"].update(feasible=-1)), "data.counters.feasible"),
        (broken(lambda document: document["data"].pop("reserve")), "data.reserve"),
        (broken(lambda document: document.update(type="search.started")), "type"),
        (broken(lambda document: document.update(extra=1)), "extra"),
        (broken(lambda document: document.update(seq=0)), "seq"),
        (broken(lambda document: document.update(time="today")), "time"),
        (broken(lambda document: document.update(runUid="other", seq=3)), "type"),
        (b"{\n", ""),
        (b"[]\n", ""),
        (b"\xff\n", ""),
    ],
)
def test_a_malformed_line_is_named_and_ends_the_run(
    post: Post, live: Publishing, tmp_path: Path, line: bytes, field: str
) -> None:
    answer = post(lines(*WHOLE[:2]) + line)
    assert answer.status_code == 422
    assert (answer.json()["line"], answer.json()["field"]) == (3, field)
    assert "line 3" in answer.json()["message"]
    live.step()
    outcome = live.store.statuses[-1].outcome
    assert outcome is not None
    assert outcome.reason == "SearchFailed"
    assert outcome.message.startswith("MalformedEvent: line 3")
    for restarted in (live, publishing(tmp_path)):
        assert restarted.ingest.own_failure.startswith("MalformedEvent: line 3")
    assert post(lines(WHOLE[2])).status_code == 424


def test_a_line_that_cannot_follow_is_malformed(post: Post, live: Publishing) -> None:
    answer = post(lines(WHOLE[1].model_copy(update={"seq": 1})))
    assert answer.status_code == 422
    assert "before search.resolved" in answer.json()["message"]
    assert live.ingest.state.failed


def test_the_request_is_bounded_also_when_it_does_not_say_its_length(post: Post, live: Publishing) -> None:
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 1000

    for content in (b"x" * 10_001, endless()):
        answer = post(content, max_body_bytes=10_000)
        assert answer.status_code == 413
        assert "10000 bytes" in answer.json()["message"]
    assert live.ingest.state.seq == 0


def test_another_media_type_is_refused(post: Post) -> None:
    assert post(lines(*WHOLE), {"Content-Type": "application/json"}).status_code == 415


def test_what_the_cluster_refuses_is_told(post: Post, live: Publishing) -> None:
    live.loop.refused = "403 no"
    answer = post(lines(WHOLE[0]))
    assert (answer.status_code, answer.json()) == (424, {"message": "403 no"})


def test_a_full_workspace_is_a_reason_to_come_again(
    post: Post, live: Publishing, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        answer = post(lines(*WHOLE[:2]))
        assert answer.status_code == 503
        assert "No space left" in answer.json()["message"]
    assert live.ingest.state.seq == 0
    assert post(lines(*WHOLE[:2])).json() == {"ackSeq": 2}


def test_state_and_health(post: Post, live: Publishing) -> None:
    post(lines(*WHOLE[:-1]))
    state = post("/v1/state", method="GET").json()
    assert state == {
        "wireVersion": 1,
        "runUid": live.run.metadata.uid,
        "attempt": "laptop",
        "ackSeq": len(WHOLE) - 1,
        "expectedSeq": len(WHOLE),
        "resolved": True,
        "summary": "12/12",
        "reserve": 1,
        "points": 2,
        "outcome": None,
        "refused": None,
    }
    assert post("/v1/health", method="GET").json() == {"status": "ok"}


def test_the_journal_forgets_a_line_that_a_crash_tore(tmp_path: Path) -> None:
    first = publishing(tmp_path)
    first.send(*WHOLE[:3])
    with (tmp_path / "events.ndjson").open("ab") as file:
        file.write(lines(WHOLE[3])[:-40])
    again = publishing(tmp_path)
    assert again.ingest.state.seq == 3
    again.send(*WHOLE[3:])
    assert publishing(tmp_path).ingest.state.seq == len(WHOLE)
