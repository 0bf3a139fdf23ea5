"""The publisher as a program: one run, one workspace, one socket."""

import argparse
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import uvicorn
from dgdr_api.run import RunStatus
from dgdr_kube.client import KubeClient, configuration
from dgdr_kube.kube import Kube

from dgdr_publisher.cluster.owned import FIELD_MANAGER
from dgdr_publisher.cluster.store import ClusterStore, read_run
from dgdr_publisher.errors import BusyError, PublisherError
from dgdr_publisher.search_state import SearchState
from dgdr_publisher.service.app import Service, build_app
from dgdr_publisher.service.ingest import Ingest
from dgdr_publisher.service.journal import Journal
from dgdr_publisher.service.logs import log_to, logs_of
from dgdr_publisher.service.pace import Backoff, Pace
from dgdr_publisher.service.run_loop import STATUS_S, PublishLoop, start
from dgdr_publisher.service.writer import CHECKPOINT_S, Writer

SOCKET = "publisher.sock"
"""In the workspace; the sweeper looks for it there."""
DRAIN_S = 20.0
"""Of the grace period of 30 seconds: to publish what is known when the program must end."""
STARTUP_S = 240.0
"""How long the cluster may be silent at the start before the program ends and is started again."""
FAILED = 4
_T = TypeVar("_T")

_log = logging.getLogger(__name__)


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM.

    Returns:
        0: it was asked to end; 4: it could not start.
    """
    given = _parser().parse_args(arguments)
    given.workspace.mkdir(parents=True, exist_ok=True)
    log_to(given.workspace, namespace=given.namespace, run=given.run_name, attempt=given.attempt)
    threading.excepthook = _end
    kubeconfig = os.environ.get("KUBECONFIG")
    try:
        kube = KubeClient(configuration(Path(kubeconfig) if kubeconfig else None), FIELD_MANAGER)
        service = serve(kube, given.namespace, given.run_name, given.workspace)
    except PublisherError as error:
        _log.error("cannot publish the run: %s", error)
        return FAILED
    _log.info("publishing the run")
    config = uvicorn.Config(
        build_app(service),
        uds=str(given.workspace / SOCKET),
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=5,
        ws="none",
    )
    uvicorn.Server(config).run()
    return 0


def serve(kube: Kube, namespace: str, run_name: str, workspace: Path) -> Service:
    """Read what the cluster and the journal hold, and start to publish.

    Raises:
        PublisherError: the run cannot be read, or the workspace not be used.
    """
    run = _patient(lambda: read_run(kube, namespace, run_name))
    journal = Journal(workspace / "publisher" / "events.ndjson")
    store = ClusterStore(kube, run, journal)
    _patient(store.candidates.load)
    earlier = _patient(store.report.load)
    status = run.status or RunStatus()
    ingest = Ingest(run, journal, SearchState(status=status, earlier=earlier, outcome=status.outcome), now)
    ingest.replay()
    writer = Writer(run, store, clock=now, checkpoints=Pace(CHECKPOINT_S, time.monotonic), logs=logs_of(workspace))
    loop = PublishLoop(ingest, writer, Pace(STATUS_S, time.monotonic), time.monotonic)
    if status.outcome is not None:
        _patient(writer.tidy)
        return Service(ingest, lambda: loop.refused)
    thread = start(loop)

    def drain() -> None:
        loop.stop(DRAIN_S)
        thread.join(DRAIN_S + 2)

    return Service(ingest, lambda: loop.refused, drain)


def now() -> str:
    """The time now: UTC, RFC 3339, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _end(crash: threading.ExceptHookArgs) -> None:
    """End the program with its publishing thread: the container is started again and replays its journal."""
    _log.critical("the publishing thread crashed", exc_info=crash.exc_value)
    os._exit(FAILED)


def _patient(ask: Callable[[], _T]) -> _T:
    """Ask the cluster until it answers, for as long as a start may take."""
    backoff, until = Backoff(), time.monotonic() + STARTUP_S
    while True:
        try:
            return ask()
        except BusyError as error:
            wait_s = backoff.after(retry_after_s=error.retry_after_s, conflict=error.conflict)
            if time.monotonic() + wait_s > until:
                raise
            _log.warning("the cluster does not answer, again in %.1f s: %s", wait_s, error)
            time.sleep(wait_s)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="dgdr-publisher", description=__doc__)
    parser.add_argument("--run-name", required=True, help="name of the DynamoGraphDeploymentRun")
    parser.add_argument("--namespace", required=True, help="its namespace")
    parser.add_argument("--workspace", required=True, type=Path, help="folder shared with the sweeper")
    parser.add_argument("--attempt", required=True, help="uid of the pod")
    return parser


if __name__ == "__main__":
    sys.exit(main())
