"""A real API server with our kinds, and runs in it."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from dgdr_api.base import wire
from dgdr_api.run import DynamoGraphDeploymentRun
from dgdr_kube.client import KubeClient, configuration
from dgdr_kube.errors import Retryable
from dgdr_kube.kube import Kube, Listing, Propagation
from dgdr_kube.resource import Object, Resource
from dgdr_publisher.cluster.kinds import CANDIDATE, RUN

from tests.conftest import ROOT
from tests.controlplane.kubectl import Kubectl
from tests.publisher.samples import run
from tests.publisher.waiting import until

Fault = Callable[[str, Resource, Object | str], None]


@dataclass
class Observed:
    """A cluster that writes down what it is asked to change, and fails where a test wants it to."""

    kube: Kube
    calls: list[tuple[str, str, str]] = field(default_factory=list)
    """Verb, kind and name, in order."""
    fault: Fault = lambda _verb, _resource, _value: None
    """Raises instead of asking."""
    lost: Fault = lambda _verb, _resource, _value: None
    """Raises after the server did it: the answer is lost."""

    def get(self, resource: Resource, namespace: str, name: str) -> dict[str, Any]:
        self.fault("get", resource, name)
        return self.kube.get(resource, namespace, name)

    def list(
        self, resource: Resource, namespace: str | None, *, label_selector: str = "", field_selector: str = ""
    ) -> Listing:
        self.fault("list", resource, "")
        return self.kube.list(resource, namespace, label_selector=label_selector, field_selector=field_selector)

    def create(self, resource: Resource, value: Object, *, dry_run: bool = False) -> dict[str, Any]:
        return self._change("create", resource, value, lambda: self.kube.create(resource, value, dry_run=dry_run))

    def replace(self, resource: Resource, value: Object) -> dict[str, Any]:
        return self._change("replace", resource, value, lambda: self.kube.replace(resource, value))

    def apply(self, resource: Resource, value: Object) -> dict[str, Any]:
        return self._change("apply", resource, value, lambda: self.kube.apply(resource, value))

    def apply_status(self, resource: Resource, value: Object, *, uid: str, resource_version: str) -> dict[str, Any]:
        return self._change(
            "status",
            resource,
            value,
            lambda: self.kube.apply_status(resource, value, uid=uid, resource_version=resource_version),
        )

    def delete(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        *,
        uid: str,
        resource_version: str | None = None,
        propagation: Propagation = "Foreground",
    ) -> None:
        self.fault("delete", resource, name)
        self.kube.delete(resource, namespace, name, uid=uid, resource_version=resource_version, propagation=propagation)
        self.calls.append(("delete", resource.kind, name))

    def _change(
        self, verb: str, resource: Resource, value: Object, ask: Callable[[], dict[str, Any]]
    ) -> dict[str, Any]:
        self.fault(verb, resource, value)
        found = ask()
        self.calls.append((verb, resource.kind.removeprefix("DynamoGraphDeployment"), value["metadata"]["name"]))
        self.lost(verb, resource, value)
        return found


@pytest.fixture(scope="session")
def crds(kubectl: Kubectl, kubeconfig: Path) -> None:
    """Our kinds are established, and their storage answers: that is a moment later."""
    for file in sorted((ROOT / "crds").glob("*.yaml")):
        kubectl.install_crds(file)
    client = KubeClient(configuration(kubeconfig), "dgdr-tests")

    def answers() -> bool:
        try:
            return all(client.list(kind, "default").resource_version for kind in (RUN, CANDIDATE))
        except Retryable:
            return False

    until(answers, "lists of our kinds")


@pytest.fixture
def kube(crds: None, kubeconfig: Path) -> KubeClient:
    """The API server, asked as the publisher."""
    return KubeClient(configuration(kubeconfig), "dgdr-publisher")


@pytest.fixture
def operator(crds: None, kubeconfig: Path) -> KubeClient:
    """The API server, asked as the operator."""
    return KubeClient(configuration(kubeconfig), "dgdr-operator")


@pytest.fixture
def observed(kube: KubeClient) -> Observed:
    return Observed(kube)


Create = Callable[..., DynamoGraphDeploymentRun]


@pytest.fixture
def create_run(operator: KubeClient, namespace: str) -> Create:
    """Create a run of the samples in a fresh namespace, as the operator does."""

    def create(of: DynamoGraphDeploymentRun | None = None) -> DynamoGraphDeploymentRun:
        body = wire(of or run())
        body["metadata"] |= {"namespace": namespace}
        body["metadata"].pop("uid", None)
        owners = body["metadata"].get("ownerReferences", ())
        for owner in owners:
            owner["uid"] = str(uuid.uuid4())
        return DynamoGraphDeploymentRun.model_validate(operator.create(RUN, body))

    return create
