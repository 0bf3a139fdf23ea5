"""Sends the journal to the publisher over its unix socket, until the end is acknowledged."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx

from dgdr_job.main.journal import Journal

PATIENCE_S = 660.0
"""How long the publisher may not answer: its container's restarts may be minutes apart."""
BATCH_BYTES = 8 * 1024 * 1024
LONGEST_WAIT_S = 10.0
_FIRST_WAIT_S = 0.2
_TIMEOUT = httpx.Timeout(60.0, connect=5.0)
_URL = "http://publisher/v1"

_log = logging.getLogger(__name__)


class DeliveryError(Exception):
    """The events cannot be delivered: the publisher refuses them, or has been silent for too long."""


@dataclass(frozen=True)
class Time:
    """Where time comes from."""

    clock: Callable[[], float] = time.monotonic
    """Seconds, never going back."""
    sleep: Callable[[float], None] = time.sleep


class EventClient:
    """A client of wire version 1.

    Args:
        socket: path of the publisher's socket.
        time: clock and sleep.
        transport: instead of the socket.
    """

    def __init__(self, socket: Path, time: Time | None = None, transport: httpx.BaseTransport | None = None) -> None:
        self._time = time or Time()
        self._http = httpx.Client(transport=transport or httpx.HTTPTransport(uds=str(socket)), timeout=_TIMEOUT)
        self._waits = 0
        self._until = self._time.clock() + PATIENCE_S

    def run_uid(self) -> str:
        """Uid of the run that the publisher publishes.

        Raises:
            DeliveryError: it does not answer.
        """
        while True:
            answer = self._ask("GET", "/state")
            if answer is not None and answer.status_code == HTTPStatus.OK:
                self._heard()
                return str(answer.json()["runUid"])
            self._wait("no answer" if answer is None else f"{answer.status_code} {answer.text[:200]}")

    def deliver(self, journal: Journal) -> None:
        """Send every event of a journal; returns when the last one is acknowledged.

        Raises:
            DeliveryError: the publisher refuses an event, or has been silent for too long.
        """
        acknowledged, size = 0, BATCH_BYTES
        while (lines := journal.batch(acknowledged, size)) is not None:
            answer = self._ask("POST", "/events", lines)
            if answer is None:
                continue
            status, content = answer.status_code, _content(answer)
            if status == HTTPStatus.OK:
                acknowledged = self._acknowledged(acknowledged, int(content["ackSeq"]))
            elif status == HTTPStatus.CONFLICT:
                acknowledged = self._rewound(acknowledged, int(content["expectedSeq"]), journal.last_seq)
            elif status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE and lines.count(b"\n") > 1:
                size = len(lines) // 2
            elif status >= HTTPStatus.INTERNAL_SERVER_ERROR:
                self._wait(f"{status} {content.get('message', '')}")
            else:
                raise DeliveryError(f"the publisher refuses the events: {status} {content.get('message', '')}")

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    def _ask(self, method: str, path: str, body: bytes | None = None) -> httpx.Response | None:
        """One request; None: no answer, and it has waited."""
        headers = {"Content-Type": "application/x-ndjson"} if body is not None else {}
        try:
            return self._http.request(method, f"{_URL}{path}", content=body, headers=headers)
        except httpx.TransportError as error:
            self._wait(f"{type(error).__name__}: {error}")
            return None

    def _acknowledged(self, before: int, now: int) -> int:
        """Go on after what was acknowledged; an end that is not published yet is sent again."""
        self._heard()
        if now <= before:
            self._time.sleep(_FIRST_WAIT_S)
        return max(before, now)

    def _rewound(self, before: int, expected: int, last: int) -> int:
        if not 1 <= expected <= last:
            raise DeliveryError(f"the publisher expects event {expected}, there are {last}")
        if expected - 1 == before:  # it was sent exactly that: waiting keeps a fault from spinning
            self._wait(f"it expects event {expected}, which it was sent")
        else:
            self._heard()
        return expected - 1

    def _heard(self) -> None:
        self._waits = 0
        self._until = self._time.clock() + PATIENCE_S

    def _wait(self, why: str) -> None:
        if self._time.clock() >= self._until:
            raise DeliveryError(f"the publisher did not take the events for {PATIENCE_S:g} s: {why}")
        wait_s = min(LONGEST_WAIT_S, _FIRST_WAIT_S * 2.0 ** min(self._waits, 16))
        self._waits += 1
        _log.warning("the publisher did not take the events, again in %.1f s: %s", wait_s, why)
        self._time.sleep(wait_s)


def _content(answer: httpx.Response) -> dict[str, Any]:
    if answer.headers.get("content-type", "").startswith("application/json"):
        found = answer.json()
        return found if isinstance(found, dict) else {}
    return {"message": answer.text[:200]}
