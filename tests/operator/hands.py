"""The hands of everybody but the operator, on a real API server without controllers or nodes."""

import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any, TypeVar

from dgdr_kube.client import KubeClient
from dgdr_kube.errors import NotFound, Stale
from dgdr_kube.resource import JOB, POD, Resource
from dgdr_operator.kinds import REQUEST, RUN, condition_of

from tests.api.objects import request
from tests.controlplane.kubectl import Kubectl
from tests.controlplane.process import Process

T = TypeVar("T")
DEADLINE_S = 60.0
POLL_S = 0.05
NOW = "2026-01-02T03:04:05Z"


def eventually(found: Callable[[], T | None], deadline_s: float = DEADLINE_S) -> T:
    """Ask until there is an answer; the deadline is far beyond what a loaded machine needs."""
    end = time.monotonic() + deadline_s
    while (value := found()) is None or value is False:
        if time.monotonic() > end:
            raise AssertionError(f"not within {deadline_s:g} s")
        time.sleep(POLL_S)
    return value


class OperatorProcess:
    """An operator as a process of its own."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self._port: int | None = None

    @property
    def port(self) -> int:
        if self._port is None:
            found = eventually(lambda: re.search(r"probes and metrics on port (\d+)", self.process.log.read_text()))
            self._port = int(found[1])
        return self._port

    def page(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def wait_until_ready(self) -> None:
        self.process.wait_until(
            lambda: None if "listed" in self.process.log.read_text() else self.process.log_tail(), DEADLINE_S
        )

    def metric(self, line: str) -> float:
        """Return the value of a metric, labels included; 0 when there is none."""
        for found in self.page("/metrics")[1].splitlines():
            if found.startswith(f"{line} "):
                return float(found.rsplit(" ", 1)[1])
        return 0.0

    def log(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.process.log.read_text().splitlines() if line.startswith("{")]


class Hands:
    """A user, the garbage collector, the Job controller and the kubelet."""

    def __init__(self, kubectl: Kubectl, kube: KubeClient, operator: OperatorProcess) -> None:
        self.kubectl, self.kube, self.operator = kubectl, kube, operator

    def submit(self, namespace: str, *changes: tuple[str, Any], name: str = "qwen") -> dict[str, Any]:
        made = request(*changes) | {"metadata": {"name": name, "namespace": namespace}}
        return self.kube.create(REQUEST, made)

    def edit(self, namespace: str, *changes: tuple[str, Any], name: str = "qwen") -> None:
        """Replace the spec as a user does who edits it."""

        def written() -> bool:
            found = self.kube.get(REQUEST, namespace, name)
            done = self.kubectl(
                "replace",
                "-f",
                "-",
                check=False,
                input=json.dumps(found | request(*changes) | {"metadata": found["metadata"]}),
            )
            return done.returncode == 0

        eventually(lambda: written() or None)

    def find(self, resource: Resource, namespace: str, name: str) -> dict[str, Any] | None:
        try:
            return self.kube.get(resource, namespace, name)
        except NotFound:
            return None

    def names(self, resource: Resource, namespace: str) -> list[str]:
        return sorted(value["metadata"]["name"] for value in self.kube.list(resource, namespace).items)

    def run(self, namespace: str, generation: int = 1, name: str = "qwen") -> dict[str, Any]:
        """Wait for the run of a generation, and for its Job."""

        def found() -> dict[str, Any] | None:
            for value in self.kube.list(RUN, namespace).items:
                if value["metadata"]["name"].startswith(f"{name}-run-{generation}-"):
                    return value
            return None

        return eventually(found)

    def job(self, namespace: str, generation: int = 1, name: str = "qwen") -> dict[str, Any]:
        run = self.run(namespace, generation, name)["metadata"]["name"]
        return eventually(lambda: self.find(JOB, namespace, run))

    def wait_completed(self, namespace: str, reason: str, generation: int = 1, name: str = "qwen") -> dict[str, Any]:
        """Wait until a run's condition Completed has a reason; return the condition."""

        def found() -> dict[str, Any] | None:
            said = condition_of(self.run(namespace, generation, name), "Completed")
            return said if said is not None and said["reason"] == reason else None

        return eventually(found)

    def wait_accepted(self, namespace: str, reason: str, generation: int, name: str = "qwen") -> dict[str, Any]:
        def found() -> dict[str, Any] | None:
            said = condition_of(self.kube.get(REQUEST, namespace, name), "Accepted")
            answered = said is not None and (said["reason"], said["observedGeneration"]) == (reason, generation)
            return said if answered else None

        return eventually(found)

    def patch_status(self, resource: Resource, namespace: str, name: str, status: dict[str, Any]) -> None:
        patch = json.dumps({"status": status})
        kind = f"{resource.plural}.{resource.api_version.rpartition('/')[0]}".rstrip(".")
        self.kubectl("patch", kind, name, "-n", namespace, "--subresource=status", "--type=merge", f"--patch={patch}")

    def collect(self, namespace: str, generation: int = 1) -> None:
        """Wait for the foreground deletion of a Job, and finish it as the garbage collector does."""
        name = self.run(namespace, generation)["metadata"]["name"]

        def asked() -> bool | None:
            job = self.kube.get(JOB, namespace, name)
            return bool(job["metadata"].get("deletionTimestamp")) or None

        eventually(asked)
        assert self.kube.get(JOB, namespace, name)["metadata"]["finalizers"] == ["foregroundDeletion"]
        self.kubectl("patch", "job", name, "-n", namespace, "--type=merge", '--patch={"metadata":{"finalizers":null}}')

    def start_pod(self, namespace: str, generation: int = 1, **status: Any) -> str:
        job = self.job(namespace, generation)
        template = job["spec"]["template"]
        name = f"{job['metadata']['name']}-0"
        metadata = {"name": name, "namespace": namespace, **template["metadata"]}
        self.kube.create(POD, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]})
        self.patch_status(POD, namespace, name, status)
        return name

    def publish(self, publisher: KubeClient, namespace: str, generation: int = 1, **status: Any) -> None:

        def written() -> bool:
            run = self.run(namespace, generation)
            meta = run["metadata"]
            named = {name: meta[name] for name in ("name", "namespace")}
            value = {"apiVersion": run["apiVersion"], "kind": run["kind"], "metadata": named, "status": status}
            try:
                publisher.apply_status(RUN, value, uid=meta["uid"], resource_version=meta["resourceVersion"])
            except Stale:
                return False
            return True

        eventually(lambda: written() or None)

    def finish_job(self, namespace: str, generation: int = 1) -> None:
        name = self.job(namespace, generation)["metadata"]["name"]
        ended = {"status": "True", "lastTransitionTime": NOW, "lastProbeTime": NOW}
        conditions = [{"type": kind, **ended} for kind in ("SuccessCriteriaMet", "Complete")]
        times = {"startTime": NOW, "completionTime": NOW}
        self.patch_status(JOB, namespace, name, {"succeeded": 1, "conditions": conditions, **times})

    def fail_job(self, namespace: str, reason: str, message: str, generation: int = 1) -> None:
        name = self.job(namespace, generation)["metadata"]["name"]
        ended = {"status": "True", "reason": reason, "message": message, "lastTransitionTime": NOW}
        conditions = [{"type": kind, **ended} for kind in ("FailureTarget", "Failed")]
        self.patch_status(JOB, namespace, name, {"failed": 1, "conditions": conditions, "startTime": NOW})
