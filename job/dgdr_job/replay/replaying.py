"""From a ReplaySpec document to its outcome: the kernel where it can, the reference elsewhere."""

from collections.abc import Callable
from pathlib import Path

from dgdr_api.replay_spec import ReplaySpec

from dgdr_job.catalog.catalog import Catalog
from dgdr_job.replay.outcome import Outcome
from dgdr_job.replay.plan import Plan
from dgdr_job.replay.requests import Requests
from dgdr_job.replay.spec_plan import plan_of
from dgdr_job.replay.trace import Progress
from dgdr_job.replay.workload import requests_of

Told = Callable[[str], None]
"""Takes a line for who waits."""


def replay_spec(
    spec: ReplaySpec,
    folder: Path,
    progress: Progress | None = None,
    catalog: Catalog | None = None,
    told: Told | None = None,
) -> tuple[Plan, Requests, Outcome]:
    """Replay a document.

    Args:
        spec: the document.
        folder: where relative paths of a trace or a table begin.
        progress: told the lines of a trace read so far.
        catalog: where performance data comes from.
        told: what takes long, in words.

    Raises:
        ReplayError: the document, its trace or its times are wrong; see `errors`.
        Unsupported: a role's performance data is not there.
    """
    plan = plan_of(spec, folder, catalog)
    requests = requests_of(spec, folder, progress)
    return plan, requests, replay(plan, requests, told)


def replay(plan: Plan, requests: Requests, told: Told | None = None) -> Outcome:
    """Replay requests on a deployment, compiled where that is supported. The results are the same.

    Raises:
        InvalidTiming: a pass has no time.
        StalledReplay: requests are left and nothing can move them.
    """
    from dgdr_job.replay.kernel import run as kernel  # noqa: PLC0415 - numba is the slow import of a replay

    if kernel.supports(plan):
        from dgdr_job.replay.kernel import compiling  # noqa: PLC0415 - as above

        if told is not None and not compiling.is_compiled():
            told("compiling the simulator, once on this machine: most of a minute")
        return kernel.replay(plan, requests)
    from dgdr_job.replay.reference import cluster as reference  # noqa: PLC0415 - only what the kernel lacks

    return reference.replay(plan, requests)
