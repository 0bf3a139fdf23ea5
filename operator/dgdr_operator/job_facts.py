"""What a Job says about its run."""

from dgdr_api.completion import JobFacts
from dgdr_kube.resource import Object

from dgdr_operator.snapshot import RunView


def job_facts(view: RunView) -> JobFacts | None:
    """Return what the run's Job says; None when it has none yet. One that is lost has failed."""
    if view.job is None:
        if not view.had_job:
            return None
        gone = f"Job {view.name} was deleted before the search reported an outcome"
        return JobFacts(state="failed", reason="JobDeleted", message=gone)
    end = _end(view.job)
    if end is None:
        return JobFacts(state="active")
    kind, reason, message = end
    if kind == "Complete":
        return JobFacts(state="complete")
    return JobFacts(state="failed", reason=reason, message=message)


def is_finished(job: Object) -> bool:
    """Whether a Job runs no pod any more."""
    return _end(job) is not None


def _end(job: Object) -> tuple[str, str, str] | None:
    for found in (job.get("status") or {}).get("conditions") or ():
        if found["type"] in ("Complete", "Failed") and found["status"] == "True":
            return found["type"], found.get("reason", ""), found.get("message", "")
    return None
