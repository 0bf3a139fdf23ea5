from typing import Any

import pytest
from dgdr_api.completion import JobFacts, PodFacts, RunFacts, completion, phase
from dgdr_api.run import Progress, RunOutcome

NOW = "2026-01-01T00:00:00Z"
ACTIVE = JobFacts(state="active")
COMPLETE = JobFacts(state="complete")
DEADLINE = JobFacts(state="failed", reason="DeadlineExceeded", message="Job was active longer than specified deadline")
EXIT_4 = JobFacts(state="failed", reason="PodFailurePolicy", message="Container sweeper failed with exit code 4")
RUNNING = PodFacts(running=True)
REJECTED = PodFacts(rejected=True, message='violates PodSecurity "restricted:latest"')
BRANCHES = [{"name": "vllm/agg", "rounds": {"completed": 0, "total": 1}, "pool": 340}]


def outcome(reason: str) -> RunOutcome:
    return RunOutcome(reason=reason, message="said", time=NOW)


def progress(**evaluations: int) -> Progress:
    return Progress.model_validate({"summary": "120/340", "branches": BRANCHES, "evaluations": evaluations})


@pytest.mark.parametrize(
    ("facts", "reason", "word"),
    [
        ({}, "Pending", "Pending"),
        ({"waiting": "position 2 of 5"}, "Pending", "Pending"),
        ({"job": ACTIVE}, "Pending", "Pending"),
        ({"job": ACTIVE, "pod": PodFacts(message="0/3 nodes are available")}, "Pending", "Pending"),
        ({"job": ACTIVE, "pod": RUNNING}, "Preflight", "Running"),
        ({"progress": Progress()}, "Preflight", "Running"),
        ({"progress": progress(scheduled=340, remaining=220)}, "EvaluatingCandidates", "Running"),
        ({"progress": progress(scheduled=340, running=2)}, "EvaluatingCandidates", "Running"),
        ({"progress": progress(scheduled=340)}, "Publishing", "Running"),
        ({"progress": progress(), "job": ACTIVE, "pod": RUNNING}, "EvaluatingCandidates", "Running"),
        ({"outcome": outcome("SearchSucceeded")}, "SearchSucceeded", "Succeeded"),
        ({"outcome": outcome("BudgetExhausted")}, "BudgetExhausted", "Succeeded"),
        ({"outcome": outcome("NoFeasibleCandidate")}, "NoFeasibleCandidate", "Succeeded"),
        ({"outcome": outcome("Unsupported")}, "Unsupported", "Succeeded"),
        ({"outcome": outcome("NothingRenderable")}, "NothingRenderable", "Succeeded"),
        ({"outcome": outcome("SearchFailed")}, "SearchFailed", "Failed"),
        ({"outcome": outcome("Wonderful")}, "SearchFailed", "Failed"),
        ({"outcome": outcome("Pending")}, "SearchFailed", "Failed"),
        ({"job": COMPLETE}, "SearchFailed", "Failed"),
        ({"job": EXIT_4}, "SearchFailed", "Failed"),
        ({"job": DEADLINE}, "DeadlineExceeded", "Failed"),
        ({"job": ACTIVE, "pod": REJECTED}, "PodRejected", "Failed"),
        ({"cancelled": "too slow"}, "Cancelled", "Failed"),
        ({"superseded_by": "qwen-run-2-abcd"}, "Superseded", "Failed"),
        ({"cancelled": "x", "superseded_by": "y", "outcome": outcome("SearchSucceeded")}, "Cancelled", "Failed"),
        ({"superseded_by": "y", "outcome": outcome("SearchSucceeded")}, "Superseded", "Failed"),
        ({"outcome": outcome("SearchSucceeded"), "job": DEADLINE}, "SearchSucceeded", "Succeeded"),
        ({"job": DEADLINE, "pod": REJECTED}, "DeadlineExceeded", "Failed"),
        ({"job": EXIT_4, "pod": REJECTED}, "PodRejected", "Failed"),
        ({"job": COMPLETE, "outcome": outcome("Unsupported")}, "Unsupported", "Succeeded"),
    ],
)
def test_the_first_that_holds(facts: dict[str, Any], reason: str, word: str) -> None:
    found = completion(RunFacts(**facts))

    assert found.reason.name == reason
    assert phase(found) == word
    assert found.done == (word in ("Succeeded", "Failed"))


def test_finding_14429_the_clusters_own_words_are_shown() -> None:
    assert completion(RunFacts(job=ACTIVE, pod=REJECTED)).message == REJECTED.message
    assert "exit code 4" in completion(RunFacts(job=EXIT_4)).message
    assert completion(RunFacts(job=ACTIVE, pod=PodFacts(message="quota"))).message == "quota"
    lost = RunFacts(progress=progress(scheduled=340, remaining=220), job=ACTIVE, pod=PodFacts(message="0/3 nodes"))
    assert completion(lost).message == "120/340; 0/3 nodes"
    assert completion(RunFacts(waiting="position 2 of 5")).message == "position 2 of 5"
    assert completion(RunFacts(job=COMPLETE)).message == "the Job is complete, but the search reported no outcome"
