"""Where a publisher puts what it publishes: a folder or a cluster. The publisher knows only this Protocol."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from dgdr_api.candidate_resource import DynamoGraphDeploymentCandidate, MaterializedValue
from dgdr_api.events import Evaluations, Event
from dgdr_api.run import DynamoGraphDeploymentRun


class Store(Protocol):
    """Takes whole objects; each call leaves the old object or the new one, never a part. Raises StoreError."""

    def append_event(self, event: Event) -> None:
        """Journal an event; after the call it survives a crash."""

    def write_run(self, run: DynamoGraphDeploymentRun) -> None:
        """Write the run with its status."""

    def write_candidates(self, candidates: Sequence[DynamoGraphDeploymentCandidate]) -> None:
        """Write candidates with their status; after the call they may be named."""

    def remove_candidate(self, name: str) -> None:
        """Remove a candidate that is no longer published."""

    def write_best(self, dgd: Mapping[str, Any], materialization: Sequence[MaterializedValue]) -> None:
        """Write the deployment of the best candidate, ready to be applied, and where its values come from."""

    def write_points(self, batches: Sequence[Evaluations], publication: Mapping[str, str]) -> None:
        """Write every evaluated point.

        Args:
            batches: what the events carried, in their order.
            publication: by id, the name of the published candidate or why there is none.
        """
