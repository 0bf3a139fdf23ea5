"""The operator as a program: settings from the environment, threads, until somebody says stop.

Order of the start: probes answer, this replica leads, one list of everything fills the store, workers and watches run.
"""

import argparse
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from functools import partial

from dgdr_kube.client import KubeClient, configuration
from dgdr_kube.errors import KubeError
from kubernetes.config import ConfigException

from dgdr_operator import log
from dgdr_operator.clock import utc_now
from dgdr_operator.controller import Controller
from dgdr_operator.feed import Watches
from dgdr_operator.gather import new_store
from dgdr_operator.kinds import FIELD_MANAGER
from dgdr_operator.leader import Leader
from dgdr_operator.lister import Lister
from dgdr_operator.metrics import Metrics
from dgdr_operator.probes import Probes
from dgdr_operator.queue import WorkQueue
from dgdr_operator.settings import Settings, SettingsError, settings_from

logger = logging.getLogger(__name__)
_LOOK_S = 1.0
"""Seconds between two looks at whether every thread lives."""
_JOIN_S = 3.0
"""What a thread gets to end; one that waits for the API server is left behind."""
LOST, BAD_SETTINGS, NO_CLUSTER = 1, 2, 3
"""Exit codes; 0 when it was told to stop."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the operator; exits with one of the codes above."""
    argparse.ArgumentParser(
        prog="dgdr-operator",
        description="Turns search requests into runs and Jobs. Everything is set by DGDR_* variables, as the chart "
        "writes them; DGDR_SWEEPER_IMAGE and DGDR_PUBLISHER_IMAGE must be there.",
        epilog=f"Exit codes: 0 told to stop, {LOST} lost the lease or a thread, {BAD_SETTINGS} a wrong variable or "
        f"argument, {NO_CLUSTER} no cluster.",
    ).parse_args(arguments)
    try:
        settings = settings_from()
    except SettingsError as error:
        sys.exit(_said(BAD_SETTINGS, str(error)))
    log.configure(settings.log_level)
    try:
        sys.exit(Operator(settings).run())
    except (KubeError, ConfigException) as error:
        sys.exit(_said(NO_CLUSTER, f"{error}; are the CRDs installed, and may this service account list them?"))


class Operator:
    """Everything that runs in one process."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self._synced = False
        self._standby = settings.leader_election
        self._store, self._queue = new_store(), WorkQueue()
        self._metrics = Metrics(self._store, self._queue)
        self._kube = KubeClient(configuration(), FIELD_MANAGER, connections=settings.workers + 2)
        self._controller = Controller(
            self._kube,
            store=self._store,
            queue=self._queue,
            settings=settings,
            metrics=self._metrics,
            now=utc_now,
        )
        self._lister = Lister(self._kube, self._store, self._queue, settings.namespaces)
        self._leader = Leader(
            KubeClient(configuration(), FIELD_MANAGER, timeout_s=settings.lease_s / 6, connections=1),
            namespace=settings.lease_namespace,
            name=settings.lease_name,
            identity=settings.identity,
            lease_s=settings.lease_s,
        )

    def run(self) -> int:
        """Work until SIGTERM or SIGINT; return the exit code."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._stop.set())
        probes = Probes(self._settings.http_port, alive=self._dead, ready=self._not_ready, metrics=self._metrics.text)
        probes.start()
        logger.info("probes and metrics on port %d", probes.port)
        try:
            if self._settings.leader_election and not self._leader.wait(self._stop):
                return 0
            self._standby = False
            return self._work()
        finally:
            self._stop.set()
            self._queue.close()
            for thread in self._threads:
                thread.join(_JOIN_S)
            if self._settings.leader_election:
                self._leader.release()
            probes.stop()

    def _work(self) -> int:
        if self._settings.leader_election:
            self._start("lease", partial(self._leader.hold, self._stop, partial(os._exit, LOST)))
        self._lister.list()
        self._synced = True
        for number in range(self._settings.workers):
            self._start(f"worker-{number}", self._controller.work)
        self._start("relist", self._relist)
        watches = Watches(self._controller, self._settings.namespaces)
        self._start("watches", watches.run)
        while not self._stop.wait(_LOOK_S):
            if (problem := self._dead()) is not None:
                logger.error("%s", problem)
                return LOST
        watches.stop()
        return 0

    def _relist(self) -> None:
        while not self._stop.wait(self._settings.relist_s):
            try:
                self._lister.list()
            except KubeError as error:
                logger.warning("list: %s", error)

    def _start(self, name: str, target: Callable[[], object]) -> None:
        thread = threading.Thread(target=target, name=name, daemon=True)
        thread.start()
        self._threads.append(thread)

    def _dead(self) -> str | None:
        ended = [thread.name for thread in self._threads if not thread.is_alive()]
        return f"{', '.join(ended)} ended" if ended and not self._stop.is_set() else None

    def _not_ready(self) -> str | None:
        return None if self._standby or self._synced else "the first list is not done"


def _said(code: int, message: str) -> int:
    sys.stderr.write(f"dgdr-operator: {message}\n")
    return code
