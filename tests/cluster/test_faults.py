"""SIGKILL to every part in the middle of a run: the same final objects as without it, and nothing twice."""

from collections.abc import Callable
from typing import Any

import pytest
from dgdr_kube.resource import JOB
from dgdr_operator.kinds import RUN
from dgdr_publisher.cluster.kinds import CANDIDATE

from tests.cluster.conftest import LARGE
from tests.cluster.engine import Held, hold
from tests.cluster.install import SYSTEM, Installation
from tests.cluster.laptop import Laptop, assert_the_same
from tests.cluster.team import Team, completed, document, eventually

NAME = LARGE[0]


@pytest.fixture
def begun(team: Team) -> Held:
    """A search that has published candidates and stands still."""
    team.apply(document(*LARGE))
    team.until(NAME, lambda status: status.get("candidateRefs"), "the first candidates")
    return hold(team, NAME)


@pytest.fixture
def own_node(installation: Installation) -> Installation:
    """A cluster whose processes a test may kill."""
    if not installation.cluster.own:
        pytest.skip("kills processes of the node itself: needs a node of the tests' own")
    return installation


def assert_nothing_twice(team: Team, laptop: Laptop, before: dict[str, str]) -> None:
    """One run, one Job, the candidates of a laptop; what was published before is still the same object."""
    run = team.end(NAME)
    assert completed(run["status"])[:2] == ("True", "SearchSucceeded"), team.told(NAME)
    assert_the_same(team, run, laptop)
    assert team.names(RUN) == team.names(JOB) == [run["metadata"]["name"]]
    after = uids(team)
    assert set(team.names(CANDIDATE)) == {ref["name"] for ref in run["status"]["candidateRefs"]}
    assert {name: uid for name, uid in before.items() if name in after}.items() <= after.items()


def uids(team: Team) -> dict[str, str]:
    return {item["metadata"]["name"]: item["metadata"]["uid"] for item in team.candidates(team.run(NAME)).values()}


def restarts(team: Team, container: str) -> int:
    """How often a container of the newest pod was started again."""
    status: dict[str, Any] = team.pods(NAME)[-1]["status"]
    every = [*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())]
    return next(int(one["restartCount"]) for one in every if one["name"] == container)


def test_the_engine_is_killed(team: Team, begun: Held, laptop: Callable[..., Laptop]) -> None:
    before = uids(team)
    begun.kill()

    assert_nothing_twice(team, laptop(*LARGE), before)
    assert len(team.pods(NAME)) == 1
    assert restarts(team, "sweeper") == 0
    log = team.kubectl("logs", begun.pod, "-c", "sweeper", "-n", team.namespace).stdout
    assert "ended with -9" in log


def test_the_sweeper_is_killed(team: Team, begun: Held, own_node: Installation, laptop: Callable[..., Laptop]) -> None:
    before = uids(team)
    own_node.cluster.kill_container(team.namespace, begun.pod, "sweeper")

    assert_nothing_twice(team, laptop(*LARGE), before)
    assert begun.pod not in {pod["metadata"]["name"] for pod in team.pods(NAME)[-1:]}


def test_the_publisher_is_killed(
    team: Team, begun: Held, own_node: Installation, laptop: Callable[..., Laptop]
) -> None:
    before = uids(team)
    own_node.cluster.kill_container(team.namespace, begun.pod, "publisher")
    eventually(lambda: restarts(team, "publisher") > 0 or None, "the publisher starts again")
    begun.release()

    assert_nothing_twice(team, laptop(*LARGE), before)
    assert [pod["metadata"]["name"] for pod in team.pods(NAME)] == [begun.pod]


def test_the_pod_is_deleted(team: Team, begun: Held, laptop: Callable[..., Laptop]) -> None:
    before = uids(team)
    team.kubectl("delete", "pod", begun.pod, "-n", team.namespace, "--grace-period=0", "--force")

    assert_nothing_twice(team, laptop(*LARGE), before)
    assert begun.pod not in {pod["metadata"]["name"] for pod in team.pods(NAME)}


def test_every_operator_is_killed(
    installation: Installation, team: Team, begun: Held, laptop: Callable[..., Laptop]
) -> None:
    before = uids(team)
    installation.kubectl("delete", "pods", "-n", SYSTEM, "--all", "--grace-period=0", "--force")
    begun.release()

    assert_nothing_twice(team, laptop(*LARGE), before)
    team.apply(document(NAME))
    assert completed(team.end(NAME, 2)["status"])[1] == "SearchSucceeded"


def test_the_api_server_is_killed(
    own_node: Installation, team: Team, begun: Held, laptop: Callable[..., Laptop]
) -> None:
    before = uids(team)
    begun.release()
    own_node.cluster.kill_api_server()
    own_node.cluster.start_api_server()

    assert_nothing_twice(team, laptop(*LARGE), before)


def test_the_leader_is_killed_and_the_other_replica_goes_on(
    installation: Installation, team: Team, laptop: Callable[..., Laptop]
) -> None:
    leader = holder(installation)
    team.apply(document(*LARGE))
    begun = hold(team, NAME)
    installation.kubectl("delete", "pod", leader, "-n", SYSTEM, "--grace-period=0", "--force")
    eventually(lambda: holder(installation) != leader or None, "another leader")
    begun.release()

    assert_nothing_twice(team, laptop(*LARGE), {})


def holder(installation: Installation) -> str:
    """Name of the pod that holds the Lease."""
    found = installation.kubectl(
        "get", "lease", "dgdr-operator", "-n", SYSTEM, "-o", "jsonpath={.spec.holderIdentity}", check=False
    )
    return found.stdout.strip()
