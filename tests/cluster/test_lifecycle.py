"""Rerun, supersede, cancel, suspend: what a user does to a search that runs or has run."""

import json

from dgdr_kube.resource import JOB
from dgdr_operator.kinds import REQUEST, RUN
from dgdr_publisher.cluster.kinds import CANDIDATE

from tests.cluster.conftest import LARGE
from tests.cluster.engine import hold
from tests.cluster.promotion import Dynamo
from tests.cluster.team import Team, completed, document, eventually

NAME = "qwen3-32b"


def test_a_new_generation_takes_the_place_of_a_running_search(team: Team) -> None:
    team.apply(document(*LARGE))
    team.until(NAME, lambda status: status.get("candidateRefs"), "the first candidates")
    hold(team, NAME)
    kept = set(team.candidates(team.run(NAME)))
    old_pod = team.pods(NAME)[0]["metadata"]["name"]

    team.apply(document(NAME))
    first = team.end(NAME)
    second = team.end(NAME, 2)

    assert completed(first["status"])[:2] == ("True", "Superseded")
    assert second["metadata"]["name"] in completed(first["status"])[2]
    assert completed(second["status"])[:2] == ("True", "SearchSucceeded")
    assert kept == set(team.candidates(first))
    assert team.names(JOB) == [second["metadata"]["name"]]
    assert old_pod not in {pod["metadata"]["name"] for pod in team.pods(NAME, 2)}
    request = team.request(NAME)
    assert [ref["name"] for ref in request["status"]["recentRunRefs"]] == [
        second["metadata"]["name"],
        first["metadata"]["name"],
    ]


def test_a_rerun_finds_the_same_and_the_same_reason_starts_nothing(team: Team, dynamo: Dynamo) -> None:
    team.apply(document(NAME))
    first = team.end(NAME)
    done = dynamo.dgdr("rerun", NAME, "--reason", "new drivers", "-n", team.namespace)
    assert done.returncode == 0, done.stderr
    second = team.end(NAME, 2)

    assert second["spec"] == first["spec"]
    assert second["metadata"]["annotations"]["sweeper.dgdr.dev/rerun-reason"] == "new drivers"
    hashes = [[item["metadata"]["labels"]["sweeper.dgdr.dev/point-hash"] for item in team.candidates(run).values()]
              for run in (first, second)]  # fmt: skip
    assert sorted(hashes[0]) == sorted(hashes[1])
    assert not set(team.candidates(first)) & set(team.candidates(second))
    again = dynamo.dgdr("rerun", NAME, "--reason", "new drivers", "-n", team.namespace)
    assert again.returncode == 2
    team.kubectl("annotate", "dgdreq", NAME, "-n", team.namespace, "team=a")
    patch = json.dumps({"spec": {"search": {"budget": {"parallelEvaluations": 3}}}})
    team.kubectl("patch", "dgdreq", NAME, "-n", team.namespace, "--type=merge", f"--patch={patch}")
    eventually(lambda: team.request(NAME)["status"]["observedGeneration"] == 3 or None, "generation 3 is seen")
    assert len(team.names(RUN)) == 2


def test_a_cancelled_search_keeps_what_was_found(team: Team, dynamo: Dynamo) -> None:
    team.apply(document(*LARGE))
    team.until(NAME, lambda status: status.get("candidateRefs"), "the first candidates")
    hold(team, NAME)
    run = team.run(NAME)
    kept = set(team.candidates(run))

    done = dynamo.dgdr("cancel", run["metadata"]["name"], "--reason", "too slow", "-n", team.namespace)
    assert done.returncode == 0, done.stderr
    run = team.end(NAME)

    assert completed(run["status"]) == ("True", "Cancelled", "too slow")
    assert run["status"]["phase"] == "Failed"
    assert set(team.candidates(run)) == kept == {ref["name"] for ref in run["status"]["candidateRefs"]}
    eventually(lambda: not team.names(JOB) or None, "the Job goes")
    assert not team.pods(NAME)


def test_suspending_cancels_and_going_on_starts_anew(team: Team) -> None:
    team.apply(document(*LARGE))
    hold(team, NAME)
    team.kubectl("patch", "dgdreq", NAME, "-n", team.namespace, "--type=merge", '--patch={"spec":{"suspend":true}}')
    run = team.end(NAME)
    assert completed(run["status"])[:2] == ("True", "Cancelled")
    assert team.names(RUN) == [run["metadata"]["name"]]

    team.apply(document(NAME, ("suspend", False)))
    second = team.end(NAME, 3)
    assert completed(second["status"])[:2] == ("True", "SearchSucceeded")


def test_a_recreated_request_starts_from_nothing(team: Team) -> None:
    team.apply(document(NAME))
    first = team.end(NAME)
    before = {item["metadata"]["uid"] for item in team.candidates(first).values()}
    team.kubectl("delete", "dgdreq", NAME, "-n", team.namespace)
    team.apply(document(NAME))
    run = eventually(
        lambda: next(
            (
                run
                for run in team.kube.list(RUN, team.namespace).items
                if run["metadata"]["uid"] != first["metadata"]["uid"]
            ),
            None,
        ),
        "another run",
    )
    assert run["metadata"]["name"] != first["metadata"]["name"]
    eventually(lambda: len(team.names(RUN)) == 1 or None, "the first run goes")
    second = team.end(NAME)
    assert second["metadata"]["ownerReferences"][0]["uid"] == team.request(NAME)["metadata"]["uid"]
    assert not before & {item["metadata"]["uid"] for item in team.kube.list(CANDIDATE, team.namespace).items}
    assert team.names(REQUEST) == [NAME]
