"""A cluster in memory with an operator on it, and the hands of everybody else: users, Job controller, publisher."""

from typing import Any

from dgdr_kube.resource import Object, Resource
from dgdr_operator.controller import Controller
from dgdr_operator.gather import KINDS, new_store
from dgdr_operator.kinds import FIELD_MANAGER, JOB, POD, REQUEST, RUN
from dgdr_operator.metrics import Metrics
from dgdr_operator.queue import WorkQueue
from dgdr_operator.settings import JobSettings, Settings

from tests.api.objects import request
from tests.kube.memory import MemoryKube

NAMESPACE, NAME = "team-a", "qwen"
NOW = "2026-01-02T03:04:05Z"
JOBS = JobSettings(sweeper_image="example.org/sweeper:1", publisher_image="example.org/publisher:1")
MOST_ROUNDS = 50


class World:
    """One cluster. ``settle`` lets the operator work until nothing is left to do."""

    def __init__(self, **settings: Any) -> None:
        self.kube = MemoryKube(FIELD_MANAGER)
        self.publisher = MemoryKube("dgdr-publisher", self.kube)
        self.settings = Settings(job=JOBS, **settings)
        self.now = NOW
        self.start()

    def start(self) -> None:
        """Start the operator, or start it anew: it knows nothing."""
        self.store, self.queue = new_store(), WorkQueue()
        self.metrics = Metrics(self.store, self.queue)
        self.controller = Controller(
            self.kube,
            store=self.store,
            queue=self.queue,
            settings=self.settings,
            metrics=self.metrics,
            now=lambda: self.now,
        )

    def relist(self) -> None:
        """Fill the store from the cluster, and look at every request."""
        for resource in KINDS:
            listing = self.kube.list(resource, None)
            self.store.replace(resource, listing.items, listing.resource_version)
        for value in self.store.all(REQUEST):
            self.queue.add((value["metadata"]["namespace"], value["metadata"]["name"]))

    def settle(self) -> list[str]:
        """Let the operator see everything and work until it has nothing to do; return what it wrote."""
        self.relist()
        before = len(self.kube.writes)
        for _ in range(MOST_ROUNDS):
            key = self.queue.take(timeout_s=0)
            if key is None:
                return self.kube.writes[before:]
            self.controller.look(key)
            self.queue.done(key)
        raise AssertionError(f"it never ends: {self.kube.writes[-20:]}")

    def submit(self, *changes: tuple[str, Any], name: str = NAME, namespace: str = NAMESPACE) -> Object:
        made = request(*changes) | {"metadata": {"name": name, "namespace": namespace}}
        return self.kube.create(REQUEST, made)

    def edit(self, *changes: tuple[str, Any], name: str = NAME) -> None:
        self.kube.change(REQUEST, NAMESPACE, name, spec=request(*changes)["spec"])

    def request(self, name: str = NAME) -> dict[str, Any]:
        return self.kube.get(REQUEST, NAMESPACE, name)

    def all(self, resource: Resource) -> list[dict[str, Any]]:
        return sorted(self.kube.list(resource, None).items, key=lambda value: str(value["metadata"]["name"]))

    def names(self, resource: Resource) -> list[str]:
        return [value["metadata"]["name"] for value in self.all(resource)]

    def run(self, generation: int = 1) -> dict[str, Any]:
        name = next(name for name in self.names(RUN) if f"-run-{generation}-" in name)
        return self.kube.get(RUN, NAMESPACE, name)

    def job(self, generation: int = 1) -> dict[str, Any]:
        return self.kube.get(JOB, NAMESPACE, self.run(generation)["metadata"]["name"])

    def completed(self, generation: int = 1) -> tuple[str, str, str]:
        found = next(item for item in self.run(generation)["status"]["conditions"] if item["type"] == "Completed")
        return found["status"], found["reason"], found["message"]

    def accepted(self) -> tuple[str, str, str] | None:
        for found in self.request().get("status", {}).get("conditions", ()):
            return found["status"], found["reason"], found["message"]
        return None

    def add_pod(self, generation: int = 1, **status: Any) -> str:
        job = self.job(generation)
        template = job["spec"]["template"]["metadata"]
        name = f"{job['metadata']['name']}-{len(self.all(POD)):05}"
        metadata = {"name": name, "namespace": NAMESPACE, **template}
        self.kube.create(POD, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {}})
        self.kube.change(POD, NAMESPACE, name, status=status)
        return name

    def run_pod(self, generation: int = 1) -> str:
        return self.add_pod(generation, **RUNNING_POD)

    def finish_job(self, generation: int, type_: str, reason: str = "", message: str = "") -> None:
        ended = {"type": type_, "status": "True", "reason": reason, "message": message}
        name = self.job(generation)["metadata"]["name"]
        self.kube.change(JOB, NAMESPACE, name, status={"conditions": [ended]})

    def publish(self, generation: int = 1, **status: Any) -> None:
        run = self.run(generation)
        meta = run["metadata"]
        value = {name: run[name] for name in ("apiVersion", "kind", "metadata")} | {"status": status}
        self.publisher.apply_status(RUN, value, uid=meta["uid"], resource_version=meta["resourceVersion"])

    def end(self, generation: int = 1, reason: str = "SearchSucceeded") -> None:
        """Let the search end well: outcome first, then the Job."""
        self.publish(generation, outcome={"reason": reason, "message": "said", "time": NOW})
        self.finish_job(generation, "Complete")


RUNNING_POD = {
    "phase": "Running",
    "initContainerStatuses": [{"name": "publisher", "restartCount": 0, "state": {"running": {}}}],
    "containerStatuses": [{"name": "sweeper", "restartCount": 0, "state": {"running": {}}}],
}
