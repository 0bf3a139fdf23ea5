"""One search in four ways that take turns: engine alone, sweeper with a sink, with the publisher, on the laptop."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from dgdr_api.run import DynamoGraphDeploymentRun
from dgdr_kube.client import KubeClient, configuration

from benchmarks.cluster_pod import Memory, Pod, Search, pod
from benchmarks.process import Run, measure
from benchmarks.run import DGDR
from tests.controlplane.kubectl import Kubectl
from tests.controlplane.plane import ControlPlane
from tests.publisher.service.programs import create


@dataclass
class Ways:
    """What was measured of one request."""

    alone_s: list[float] = field(default_factory=list)
    """Whole process of the engine without its parent, its events to /dev/null."""
    sink: list[Search] = field(default_factory=list)
    publisher: list[Search] = field(default_factory=list)
    laptop: list[Run] = field(default_factory=list)
    ready_s: list[float] = field(default_factory=list)
    """Start of the publisher's process until its socket was there."""
    memory: Memory | None = None
    """Of one further search, with the publisher."""


class Searches:
    """Runs searches of one request, each in a namespace and with a workspace of its own.

    Args:
        plane: the API server.
        kubectl: makes the namespaces.
        folder: for files.
        request: the request.
    """

    def __init__(self, plane: ControlPlane, kubectl: Kubectl, folder: Path, request: dict[str, Any]) -> None:
        self._plane, self._kubectl, self._folder, self._request = plane, kubectl, folder, request
        self._operator = KubeClient(configuration(plane.kubeconfig), "dgdr-operator")
        self._count = 0
        self._found = Ways()

    def measured(self, runs: int, say: Callable[[str], None]) -> Ways:
        """Search so many times in each way; each round begins with another one."""
        ways = [self._alone, self._sink, self._publisher, self._laptop]
        for number in range(runs):
            say(f"{self._request['metadata']['name']}, run {number + 1} of {runs}")
            first = number % len(ways)
            for way in ways[first:] + ways[:first]:
                way()
        with self._pod() as made:
            made.start_publisher()
            self._found.memory = made.watched_search()
        return self._found

    def _alone(self) -> None:
        with self._pod() as made:
            self._found.alone_s.append(made.engine_alone())

    def _sink(self) -> None:
        with self._pod() as made:
            made.start_sink()
            self._found.sink.append(made.search())

    def _publisher(self) -> None:
        with self._pod() as made:
            self._found.ready_s.append(made.start_publisher())
            self._found.publisher.append(made.search())

    def _laptop(self) -> None:
        request = self._file()
        out, cache = request.with_suffix(".out"), request.with_suffix(".cache")
        command: list[str | Path] = [DGDR, "search", request, "--out", out]
        self._found.laptop.append(measure(command, self._folder / "log", {"DGDR_CACHE_DIR": str(cache)}))

    def _pod(self) -> AbstractContextManager[Pod]:
        return pod(self._run(), self._plane.kubeconfig)

    def _run(self) -> DynamoGraphDeploymentRun:
        return create(self._operator, self._file())

    def _file(self) -> Path:
        """The request in a namespace that nothing is in yet."""
        self._count += 1
        name = self._request["metadata"]["name"]
        namespace = f"{name}-{self._count}"
        self._kubectl("create", "namespace", namespace)
        path = self._folder / f"{namespace}.yaml"
        path.write_text(yaml.safe_dump({**self._request, "metadata": {"name": name, "namespace": namespace}}))
        return path
