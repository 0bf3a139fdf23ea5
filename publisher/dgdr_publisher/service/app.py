"""``POST /v1/events``, ``GET /v1/state`` and ``GET /v1/health`` of wire version 1."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool

from dgdr_publisher.errors import MalformedLineError, SequenceGapError, StoreError
from dgdr_publisher.service.ingest import Ingest

MEDIA_TYPE = "application/x-ndjson"
MAX_BODY_BYTES = 32 * 1024 * 1024
"""Largest request: an event of 10,000 points is about 5 MB."""
TERMINAL_WAIT_S = 20.0
"""How long a request waits for the end to be published; its answer then acknowledges less, and the sender repeats."""


@dataclass(frozen=True)
class Service:
    """What the routes need."""

    ingest: Ingest
    refused: Callable[[], str]
    """Why the cluster takes nothing more; empty: it does."""
    drain: Callable[[], None] = lambda: None
    """Called once when the server stops, after the last request."""
    max_body_bytes: int = MAX_BODY_BYTES
    terminal_wait_s: float = TERMINAL_WAIT_S


def build_app(service: Service) -> FastAPI:
    """The application over a service."""
    app = FastAPI(title="dgdr publisher", version="v1", openapi_url=None, lifespan=_draining(service))
    ingest = service.ingest

    @app.post("/v1/events")
    async def events(request: Request) -> JSONResponse:
        media_type = request.headers.get("content-type", "").partition(";")[0].strip()
        if media_type != MEDIA_TYPE:
            return _answer(
                HTTPStatus.UNSUPPORTED_MEDIA_TYPE, message=f"send {MEDIA_TYPE}, not {media_type or 'nothing'}"
            )
        body = await _bounded(request, service.max_body_bytes)
        if body is None:
            text = f"the request is larger than {service.max_body_bytes} bytes: send fewer lines in one"
            return _answer(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, message=text)
        ended = service.refused() or ingest.own_failure
        if ended:
            return _answer(HTTPStatus.FAILED_DEPENDENCY, message=ended)
        return await run_in_threadpool(_take, service, body)

    @app.get("/v1/state")
    async def state() -> JSONResponse:
        return JSONResponse(_shown(ingest, service.refused()))

    @app.get("/v1/health")
    async def health() -> JSONResponse:
        return _answer(HTTPStatus.OK, status="ok")

    return app


def _take(service: Service, body: bytes) -> JSONResponse:
    """Take a batch; a thread may wait here for the disk, and for the end to be published."""
    ingest = service.ingest
    try:
        ingest.take(body)
    except SequenceGapError as error:
        return _answer(HTTPStatus.CONFLICT, expectedSeq=error.expected_seq, message=str(error))
    except MalformedLineError as error:
        return _answer(HTTPStatus.UNPROCESSABLE_ENTITY, line=error.line, field=error.field, message=str(error))
    except StoreError as error:
        return _answer(HTTPStatus.SERVICE_UNAVAILABLE, message=str(error))
    ingest.wait_published(service.terminal_wait_s, service.refused)
    if service.refused():
        return _answer(HTTPStatus.FAILED_DEPENDENCY, message=service.refused())
    return _answer(HTTPStatus.OK, ackSeq=ingest.ack_seq)


def _shown(ingest: Ingest, refused: str) -> dict[str, object]:
    state = ingest.state
    progress = state.status.progress
    return {
        "wireVersion": 1,
        "runUid": ingest.run_uid,
        "attempt": state.attempt,
        "ackSeq": ingest.ack_seq,
        "expectedSeq": state.seq + 1,
        "resolved": state.resolved,
        "summary": "" if progress is None else progress.summary,
        "reserve": len(state.reserve),
        "points": sum(len(batch.id) for batch in state.batches),
        "outcome": None if state.outcome is None else state.outcome.reason,
        "refused": refused or None,
    }


async def _bounded(request: Request, limit: int) -> bytes | None:
    """The body; None: it is larger than the limit, and the rest of it is not read."""
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > limit:
            return None
        parts.append(part)
    return b"".join(parts)


def _answer(status: HTTPStatus, /, **content: object) -> JSONResponse:
    return JSONResponse(content, status_code=status)


def _draining(service: Service) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await run_in_threadpool(service.drain)

    return lifespan
