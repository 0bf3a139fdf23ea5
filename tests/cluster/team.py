"""A team that uses the operator: one namespace of a real cluster, and everything that a user sees in it."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import yaml
from dgdr_api.group import LABEL_RUN_UID
from dgdr_kube.client import KubeClient
from dgdr_kube.errors import NotFound, Retryable
from dgdr_kube.resource import CONFIG_MAP, JOB, POD, Resource
from dgdr_operator.kinds import REQUEST, RUN, condition_of
from dgdr_publisher.cluster.kinds import CANDIDATE

from tests.api.objects import changed
from tests.conftest import ROOT
from tests.controlplane.kubectl import Kubectl

T = TypeVar("T")
DEADLINE_S = 240.0
"""Far beyond what a search and its pod need here: a condition that does not come is a failure, not a slow machine."""
POLL_S = 0.1


def eventually(found: Callable[[], T | None], what: str, deadline_s: float = DEADLINE_S) -> T:
    """Ask until there is an answer. An API server that does not answer now is asked again.

    Raises:
        AssertionError: there is none in time; it names what was waited for.
    """
    end = time.monotonic() + deadline_s
    last: object = None
    while True:
        try:
            value = found()
        except Retryable as error:
            value, last = None, error
        if value is not None and value is not False:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {deadline_s:g} s: {what}{f' ({last})' if last else ''}")
        time.sleep(POLL_S)


def document(example: str, *changes: tuple[str, Any]) -> dict[str, Any]:
    """An example as a document, with changes below its spec; the value ``...`` removes a field."""
    made: dict[str, Any] = yaml.safe_load((ROOT / "examples" / f"{example}.yaml").read_text())
    return changed(made, *((f"spec.{path}", value) for path, value in changes))


@dataclass(frozen=True)
class Team:
    """A user with kubectl in one namespace."""

    kubectl: Kubectl
    kube: KubeClient
    namespace: str

    def apply(self, request: dict[str, Any]) -> None:
        """``kubectl apply`` a request in this namespace."""
        placed = request | {"metadata": request["metadata"] | {"namespace": self.namespace}}
        self.kubectl("apply", "-f", "-", input=json.dumps(placed))

    def request(self, name: str) -> dict[str, Any]:
        return self.kube.get(REQUEST, self.namespace, name)

    def accepted(self, name: str, reason: str) -> dict[str, Any]:
        """Wait for the answer to the current generation of a request; it must be this one."""

        def answered() -> dict[str, Any] | None:
            found = self.request(name)
            said = condition_of(found, "Accepted")
            current = said is not None and said.get("observedGeneration") == found["metadata"]["generation"]
            return said if current else None

        said = eventually(answered, f"Accepted of {name}")
        assert said["reason"] == reason, said
        return said

    def find(self, resource: Resource, name: str) -> dict[str, Any] | None:
        try:
            return self.kube.get(resource, self.namespace, name)
        except NotFound:
            return None

    def names(self, resource: Resource) -> list[str]:
        return sorted(item["metadata"]["name"] for item in self.kube.list(resource, self.namespace).items)

    def run(self, name: str, generation: int = 1) -> dict[str, Any]:
        """The run of a generation of a request, when there is one."""

        def found() -> dict[str, Any] | None:
            runs = self.kube.list(RUN, self.namespace).items
            start = f"{name}-run-{generation}-"
            return next((run for run in runs if run["metadata"]["name"].startswith(start)), None)

        return eventually(found, f"a run of {name}, generation {generation}")

    def status(self, name: str, generation: int = 1) -> dict[str, Any]:
        """The status of a run now."""
        found: dict[str, Any] = self.run(name, generation).get("status") or {}
        return found

    def until(
        self, name: str, holds: Callable[[dict[str, Any]], object], what: str, generation: int = 1
    ) -> dict[str, Any]:
        """Wait until something holds of a run's status; return the status."""

        def found() -> dict[str, Any] | None:
            status = self.status(name, generation)
            return status if holds(status) else None

        try:
            return eventually(found, what)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.told(name, generation)}") from error

    def end(self, name: str, generation: int = 1) -> dict[str, Any]:
        """Wait for the end of a run; return it."""
        self.until(name, lambda status: completed(status)[0] == "True", f"the end of {name}", generation)
        return self.run(name, generation)

    def job(self, name: str, generation: int = 1) -> dict[str, Any] | None:
        return self.find(JOB, self.run(name, generation)["metadata"]["name"])

    def pods(self, name: str, generation: int = 1) -> list[dict[str, Any]]:
        """Pods of a run, oldest first."""
        uid = self.run(name, generation)["metadata"]["uid"]
        found = self.kube.list(POD, self.namespace, label_selector=f"{LABEL_RUN_UID}={uid}").items
        return sorted(found, key=lambda pod: (pod["metadata"]["creationTimestamp"], pod["metadata"]["name"]))

    def candidates(self, run: dict[str, Any]) -> dict[str, dict[str, Any]]:
        """Candidates of a run by name."""
        selector = f"{LABEL_RUN_UID}={run['metadata']['uid']}"
        found = self.kube.list(CANDIDATE, self.namespace, label_selector=selector).items
        return {item["metadata"]["name"]: item for item in found}

    def shards(self, run: dict[str, Any]) -> tuple[dict[str, Any], ...]:
        """ConfigMaps of a run's report."""
        selector = f"{LABEL_RUN_UID}={run['metadata']['uid']}"
        return self.kube.list(CONFIG_MAP, self.namespace, label_selector=selector).items

    def told(self, name: str, generation: int = 1) -> str:
        """What a person would look at when something does not come: status, pods, logs."""
        run = self.run(name, generation)
        pods = self.kubectl("describe", "pods", "-n", self.namespace, check=False).stdout
        selector = f"{LABEL_RUN_UID}={run['metadata']['uid']}"
        logs = self.kubectl(
            "logs", "-n", self.namespace, "-l", selector, "--all-containers", "--tail=50", check=False
        ).stdout
        return f"{yaml.safe_dump(run.get('status'))}\n{pods[-6000:]}\n{logs}"


def completed(status: dict[str, Any]) -> tuple[str, str, str]:
    """Status, reason and message of the condition Completed; empty before there is one."""
    for found in status.get("conditions", ()):
        if found["type"] == "Completed":
            return found["status"], found["reason"], found["message"]
    return "", "", ""
