"""A publisher over a store in memory, with a clock that a test moves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from dgdr_api.candidate_resource import DynamoGraphDeploymentCandidate
from dgdr_api.events import Evaluations, Event
from dgdr_api.run import DynamoGraphDeploymentRun, RunStatus
from dgdr_publisher.search_state import SearchState
from dgdr_publisher.service.ingest import Ingest
from dgdr_publisher.service.journal import Journal
from dgdr_publisher.service.pace import Pace
from dgdr_publisher.service.run_loop import STATUS_S, PublishLoop
from dgdr_publisher.service.writer import CHECKPOINT_S, Writer

from tests.publisher.samples import NOW, run


@dataclass
class Clock:
    """Seconds that a test counts."""

    seconds: float = 100.0

    def __call__(self) -> float:
        return self.seconds


@dataclass
class Store:
    """Remembers what it was asked, and raises what a test wants."""

    calls: list[str] = field(default_factory=list)
    held: dict[str, DynamoGraphDeploymentCandidate] = field(default_factory=dict)
    statuses: list[RunStatus] = field(default_factory=list)
    points: list[int] = field(default_factory=list)
    errors: dict[str, list[Exception]] = field(default_factory=dict)
    remark: str = ""
    logs: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def candidates(self) -> "Store":
        return self

    @property
    def report(self) -> "Store":
        return self

    @property
    def first_shard(self) -> str | None:
        return "report-0" if self.points else None

    def load(self) -> None:
        self._call("load")

    def write_candidates(self, candidates: Sequence[DynamoGraphDeploymentCandidate]) -> None:
        self._call("candidates")
        self.held |= {one.metadata.name: one for one in candidates}

    def delete_others(self, names: set[str]) -> None:
        self._call("delete")
        self.held = {name: one for name, one in self.held.items() if name in names}

    def write_run(self, run: DynamoGraphDeploymentRun) -> None:
        self._call("run")
        assert run.status is not None
        assert {ref.name for ref in run.status.candidate_refs} <= self.held.keys()
        self.statuses.append(run.status)

    def write_points(self, batches: Sequence[Evaluations], _: Mapping[str, str], **__: object) -> None:
        self._call("points")
        self.points.append(sum(len(batch.id) for batch in batches))

    def write_logs(self, logs: Mapping[str, Sequence[str]], _: Mapping[str, object]) -> None:
        self._call("logs")
        self.logs = logs

    def _call(self, what: str) -> None:
        pending = self.errors.get(what, [])
        if pending:
            raise pending.pop(0)
        self.calls.append(what)


@dataclass
class Publishing:
    """The parts of a publisher, with nothing running."""

    run: DynamoGraphDeploymentRun
    store: Store
    clock: Clock
    ingest: Ingest
    loop: PublishLoop
    writer: Writer

    def send(self, *events: Event) -> None:
        self.ingest.take(lines(*events))

    def step(self) -> float | None:
        """Do what the thread would do now; returns how long it would wait instead."""
        state = self.ingest.state
        wait_s = self.loop.wait_s(state)
        if wait_s == 0:
            self.loop._publish(state)
        return wait_s


def lines(*events: Event) -> bytes:
    return b"".join(event.model_dump_json(by_alias=True, exclude_none=True).encode() + b"\n" for event in events)


def publishing(folder: Path, of: DynamoGraphDeploymentRun | None = None, store: Store | None = None) -> Publishing:
    of, store, clock = of or run(), store or Store(), Clock()
    status = of.status or RunStatus()
    ingest = Ingest(
        of, Journal(folder / "events.ndjson"), SearchState(status=status, outcome=status.outcome), lambda: NOW
    )
    ingest.replay()
    anything: Any = store
    writer = Writer(of, anything, clock=lambda: NOW, checkpoints=Pace(CHECKPOINT_S, clock), logs=lambda: {"a": ["b"]})
    loop = PublishLoop(ingest, writer, Pace(STATUS_S, clock), clock)
    return Publishing(of, store, clock, ingest, loop, writer)


@pytest.fixture
def live(tmp_path: Path) -> Publishing:
    return publishing(tmp_path)
