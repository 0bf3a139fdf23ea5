"""Faults on a real API server: more than one operator, operators that die, an API server that dies."""

import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from dgdr_kube.kube import Kube
from dgdr_kube.resource import EVENT, JOB, LEASE
from dgdr_operator.kinds import REQUEST, RUN

from tests.controlplane.kubectl import Kubectl
from tests.controlplane.plane import ControlPlane, start_control_plane
from tests.operator.conftest import StartOperator, client
from tests.operator.hands import Hands, eventually

NO_ELECTION = "DGDR_LEADER_ELECTION=false"
REQUESTS = 20


@pytest.fixture(scope="module")
def plane(controlplane_binaries: dict[str, Path]) -> Iterator[ControlPlane]:
    with start_control_plane(controlplane_binaries) as started:
        yield started


@pytest.fixture(scope="module")
def kubectl(plane: ControlPlane, install: Callable[[ControlPlane], Kubectl]) -> Kubectl:
    return install(plane)


@pytest.fixture(scope="module")
def kube(plane: ControlPlane) -> Kube:
    return client(plane, "test")


def test_two_operators_at_once_make_nothing_twice(
    plane: ControlPlane, kubectl: Kubectl, namespace: str, start_operator: StartOperator
) -> None:
    operators = [start_operator(plane, name, f"DGDR_NAMESPACES={namespace}", NO_ELECTION) for name in ("one", "two")]
    for operator in operators:
        operator.wait_until_ready()
    hands = Hands(kubectl, client(plane, "test"), operators[0])
    for number in range(REQUESTS):
        hands.submit(namespace, name=f"request-{number}")
    for number in range(REQUESTS):
        hands.job(namespace, name=f"request-{number}")
        hands.wait_completed(namespace, "Pending", name=f"request-{number}")

    operators[0].process.kill()
    hands.submit(namespace, name="one-more")
    hands.job(namespace, name="one-more")

    assert len(hands.names(RUN, namespace)) == len(hands.names(JOB, namespace)) == REQUESTS + 1
    made = [event for event in hands.kube.list(EVENT, namespace).items if event["reason"] == "RunCreated"]
    assert len(made) == REQUESTS + 1
    operators[1].process.stop()


def test_the_second_replica_takes_over_when_the_leader_dies(
    plane: ControlPlane, kubectl: Kubectl, namespace: str, start_operator: StartOperator
) -> None:
    settings = (f"DGDR_NAMESPACES={namespace}", f"DGDR_LEASE_NAMESPACE={namespace}", "DGDR_LEASE_S=3")
    first = start_operator(plane, "first", *settings)
    first.wait_until_ready()
    second = start_operator(plane, "second", *settings)
    eventually(lambda: second.page("/readyz")[0] == 200 or None)
    hands = Hands(kubectl, client(plane, "test"), first)
    hands.submit(namespace)
    hands.job(namespace)
    assert "second leads" not in second.process.log.read_text()

    first.process.kill()
    hands.submit(namespace, name="later")
    hands.job(namespace, name="later")

    lease = hands.kube.get(LEASE, namespace, "dgdr-operator")["spec"]
    assert (lease["holderIdentity"], lease["leaseTransitions"]) == ("second", 1)
    second.process.stop()
    assert hands.kube.get(LEASE, namespace, "dgdr-operator")["spec"].get("holderIdentity") in (None, "")


def test_a_leader_that_cannot_renew_ends(
    plane: ControlPlane, kubectl: Kubectl, namespace: str, start_operator: StartOperator
) -> None:
    settings = (f"DGDR_NAMESPACES={namespace}", f"DGDR_LEASE_NAMESPACE={namespace}", "DGDR_LEASE_S=3")
    leader = start_operator(plane, "leader", *settings)
    leader.wait_until_ready()

    os.kill(plane.apiserver.pid, signal.SIGSTOP)
    try:
        eventually(lambda: not leader.process.running or None)
    finally:
        os.kill(plane.apiserver.pid, signal.SIGCONT)

    assert "leader leads no more" in leader.process.log.read_text()


def test_what_went_while_the_api_server_was_down_is_forgotten(
    plane: ControlPlane, kubectl: Kubectl, namespace: str, start_operator: StartOperator
) -> None:
    operator = start_operator(plane, "watcher", f"DGDR_NAMESPACES={namespace}", NO_ELECTION, "DGDR_RELIST_S=3")
    operator.wait_until_ready()
    hands = Hands(kubectl, client(plane, "test"), operator)
    for name in ("stays", "goes"):
        hands.submit(namespace, name=name)
        hands.job(namespace, name=name)
        hands.wait_completed(namespace, "Pending", name=name)
    pending = 'dgdr_runs{phase="Pending",reason="Pending"}'
    eventually(lambda: operator.metric(pending) == 2 or None)
    gone = hands.run(namespace, name="goes")["metadata"]["name"]

    plane.apiserver.kill()
    os.kill(operator.process.pid, signal.SIGSTOP)  # so that it sees nothing of what happens now
    try:
        plane.apiserver.start()
        plane.wait_until_ready()
        for kind, name in ((REQUEST, "goes"), (RUN, gone)):
            where = f"{kind.plural}.sweeper.dgdr.dev"
            kubectl("delete", where, name, "-n", namespace, "--cascade=orphan", "--wait=false")
            kubectl("patch", where, name, "-n", namespace, "--type=merge", '--patch={"metadata":{"finalizers":null}}')
        written = {value["metadata"]["name"]: value for value in hands.kube.list(RUN, namespace).items}
    finally:
        os.kill(operator.process.pid, signal.SIGCONT)

    assert list(written) == [hands.run(namespace, name="stays")["metadata"]["name"]]
    eventually(lambda: operator.metric(pending) == 1 or None)
    hands.submit(namespace, name="afterwards")
    hands.job(namespace, name="afterwards")
    assert {value["metadata"]["name"]: value for value in hands.kube.list(RUN, namespace).items}.items() >= (
        written.items()
    ), "the run that stayed was written again"
    levels = [line for line in operator.log() if line["level"] == "error" and line["logger"].startswith("dgdr")]
    assert levels == [], json.dumps(levels)
    operator.process.stop()


def test_an_operator_killed_in_the_middle_leaves_nothing_half_done(
    plane: ControlPlane, kubectl: Kubectl, namespace: str, start_operator: StartOperator
) -> None:
    settings = (f"DGDR_NAMESPACES={namespace}", NO_ELECTION)
    operator = start_operator(plane, "killed", *settings)
    operator.wait_until_ready()
    hands = Hands(kubectl, client(plane, "test"), operator)
    for number in range(REQUESTS):
        hands.submit(namespace, name=f"request-{number}")
    eventually(lambda: len(hands.names(JOB, namespace)) >= 1 or None)
    operator.process.kill()

    again = start_operator(plane, "again", *settings)
    for number in range(REQUESTS):
        hands.job(namespace, name=f"request-{number}")
        hands.wait_accepted(namespace, "RunCreated", 1, name=f"request-{number}")
    assert len(hands.names(RUN, namespace)) == len(hands.names(JOB, namespace)) == REQUESTS
    again.process.stop()


def test_without_the_crds_it_says_what_is_missing(
    controlplane_binaries: dict[str, Path], start_operator: StartOperator
) -> None:
    with start_control_plane(controlplane_binaries) as bare:
        operator = start_operator(bare, "bare", NO_ELECTION)
        eventually(lambda: not operator.process.running or None)
        assert "are the CRDs installed" in operator.process.log.read_text()
