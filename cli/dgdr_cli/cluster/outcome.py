"""How a run ended, as an exit code."""

from dgdr_api import reasons

from dgdr_cli.cluster.objects import Object, completed, refs, text_at
from dgdr_cli.exit_codes import FAILED, HONEST_NO, INTERRUPTED, OK

_CODES = {
    reasons.SEARCH_SUCCEEDED: OK,
    reasons.NO_FEASIBLE_CANDIDATE: HONEST_NO,
    reasons.UNSUPPORTED: HONEST_NO,
    reasons.NOTHING_RENDERABLE: HONEST_NO,
    reasons.SEARCH_FAILED: FAILED,
    reasons.POD_REJECTED: FAILED,
    reasons.DEADLINE_EXCEEDED: FAILED,
    reasons.SUPERSEDED: INTERRUPTED,
    reasons.CANCELLED: INTERRUPTED,
}
CODES: dict[str, int] = {reason.name: code for reason, code in _CODES.items()}
"""Exit code by reason of Completed=True; BudgetExhausted depends on what was found."""


def exit_code(run: Object) -> int:
    """The exit code of a run that has ended.

    A reason that this version does not know is judged by the phase: an answer is an answer.

    Raises:
        ValueError: it has not ended.
    """
    found = completed(run)
    if found is None:
        raise ValueError("the run has not ended")
    reason = str(found.get("reason"))
    if reason in CODES:
        return CODES[reason]
    if reason == reasons.BUDGET_EXHAUSTED.name or text_at(run, "status", "phase") == "Succeeded":
        return OK if refs(run, "candidateRefs") else HONEST_NO
    return FAILED


def outcome_text(run: Object) -> str:
    """Reason and message of Completed, or where the run stands."""
    from dgdr_cli.cluster.objects import condition

    found = condition(run, "Completed")
    words = [text_at(found, "reason"), text_at(found, "message")]
    return ": ".join(word for word in words if word) or "it has not started"
