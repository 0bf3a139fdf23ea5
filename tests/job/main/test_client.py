"""Delivery over the socket: repetition, replay, patience, refusals; time is passed in."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import httpx
import pytest
from dgdr_job.main.client import LONGEST_WAIT_S, PATIENCE_S, DeliveryError, EventClient, Time
from dgdr_job.main.journal import COMPLETED, Journal


@dataclass
class Clock:
    """Sleeping moves it."""

    seconds: float = 0.0
    sleeps: list[float] = field(default_factory=list)

    def __call__(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.seconds += seconds


Answer = Callable[[httpx.Request], httpx.Response]


@dataclass
class Publisher:
    """Answers as the real one, where a test does not say otherwise."""

    seq: int = 0
    first: list[Answer] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.sizes.append(len(request.content))
        if self.first:
            return self.first.pop(0)(request)
        seqs = [json.loads(line)["seq"] for line in request.content.splitlines()]
        if seqs[0] > self.seq + 1:
            return httpx.Response(409, json={"expectedSeq": self.seq + 1})
        self.seq = max(self.seq, seqs[-1])
        return httpx.Response(200, json={"ackSeq": self.seq})


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    made = Journal(tmp_path / "j", attempt="a", run_uid="u", now=lambda: "2026-01-02T03:04:05Z")
    for kind in ("search.resolved", "evaluations", COMPLETED):
        made.append(kind, b'{"x":1}')
    yield made
    made.close()


def client(publisher: Answer, clock: Clock | None = None) -> EventClient:
    clock = clock or Clock()
    return EventClient(Path("none"), Time(clock, clock.sleep), httpx.MockTransport(publisher))


def refused(request: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError("connection refused")


def test_everything_is_delivered_in_one_batch(journal: Journal) -> None:
    publisher = Publisher()
    client(publisher).deliver(journal)
    assert (publisher.seq, len(publisher.sizes)) == (3, 1)


def test_a_restarted_publisher_gets_what_it_lacks(journal: Journal) -> None:
    publisher = Publisher(first=[lambda _: httpx.Response(200, json={"ackSeq": 2})])
    client(publisher).deliver(journal)
    assert publisher.seq == 3
    assert len(publisher.sizes) == 3  # acknowledged to 2; a gap at 3; from 1


def test_an_end_that_is_not_published_yet_is_sent_again(journal: Journal) -> None:
    publisher = Publisher(first=[lambda _: httpx.Response(200, json={"ackSeq": 2})] * 4, seq=2)
    clock = Clock()
    client(publisher, clock).deliver(journal)
    assert publisher.seq == 3
    assert len(clock.sleeps) == 3


def test_a_publisher_that_restarts_is_waited_for(journal: Journal) -> None:
    busy = lambda _: httpx.Response(503, json={"message": "no space"})  # noqa: E731
    publisher, clock = Publisher(first=[refused, busy, *([refused] * 30)]), Clock()
    client(publisher, clock).deliver(journal)
    assert publisher.seq == 3
    assert clock.sleeps[:4] == [0.2, 0.4, 0.8, 1.6]
    assert max(clock.sleeps) == LONGEST_WAIT_S


def test_patience_ends_after_more_than_ten_minutes_of_silence(journal: Journal) -> None:
    clock = Clock()
    with pytest.raises(DeliveryError, match=r"did not take the events for 660 s: ConnectError"):
        client(refused, clock).deliver(journal)
    assert PATIENCE_S > 600
    assert PATIENCE_S <= clock.seconds <= PATIENCE_S + LONGEST_WAIT_S


@pytest.mark.parametrize("status", [422, 424, 415])
def test_a_refusal_is_final(journal: Journal, status: int) -> None:
    clock = Clock()
    with pytest.raises(DeliveryError, match=f"{status} line 2: data.x"):
        client(lambda _: httpx.Response(status, json={"message": "line 2: data.x"}), clock).deliver(journal)
    assert clock.sleeps == []


def test_a_batch_that_is_too_large_is_halved_down_to_one_event(journal: Journal) -> None:
    publisher = Publisher()

    def small(request: httpx.Request) -> httpx.Response:
        return httpx.Response(413, json={}) if request.content.count(b"\n") > 1 else publisher(request)

    client(small).deliver(journal)
    assert publisher.seq == 3
    with pytest.raises(DeliveryError, match="413"):
        client(lambda _: httpx.Response(413, json={})).deliver(journal)


def test_a_number_that_was_never_sent_is_refused(journal: Journal) -> None:
    with pytest.raises(DeliveryError, match="expects event 9, there are 3"):
        client(lambda _: httpx.Response(409, json={"expectedSeq": 9})).deliver(journal)


def test_a_publisher_that_expects_what_it_was_sent_does_not_spin(journal: Journal) -> None:
    clock = Clock()
    with pytest.raises(DeliveryError, match="which it was sent"):
        client(lambda _: httpx.Response(409, json={"expectedSeq": 1}), clock).deliver(journal)
    assert len(clock.sleeps) < 100


def test_the_run_is_asked_of_the_publisher() -> None:
    answers: list[Answer] = [refused, lambda _: httpx.Response(200, json={"runUid": "uid-1"})]
    publisher = Publisher(first=answers)
    assert client(publisher).run_uid() == "uid-1"


def test_over_a_real_socket(journal: Journal, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = Path(f"/tmp/dgdr-test-{tmp_path_factory.mktemp('s').name}.sock")  # noqa: S108 - short enough for a socket
    seen: list[tuple[str, str, int]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            seen.append((self.path, self.headers["Content-Type"], body.count(b"\n")))
            answer = b'{"ackSeq":3}'
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def address_string(self) -> str:
            return "socket"

        def log_message(self, *_: object) -> None:
            pass

    class Server(HTTPServer):
        address_family = socket.AF_UNIX

        def server_bind(self) -> None:
            self.socket.bind(str(path))

    try:
        with Server(str(path), Handler) as server:  # type: ignore[arg-type]
            thread = threading.Thread(target=server.handle_request)
            thread.start()
            sender = EventClient(path)
            sender.deliver(journal)
            sender.close()
            thread.join()
    finally:
        path.unlink(missing_ok=True)
    assert seen == [("/v1/events", "application/x-ndjson", 3)]
