"""Brings the cluster to what is known of a search. A step may be repeated: it sends only what changes something."""

from collections.abc import Callable, Mapping, Sequence

from dgdr_api import reasons
from dgdr_api.conditions import MAX_MESSAGE_BYTES, cut
from dgdr_api.run import CandidateRef, DynamoGraphDeploymentRun, RunOutcome, RunStatus

from dgdr_publisher import run_status
from dgdr_publisher.cluster.store import ClusterStore
from dgdr_publisher.publication import Publication, RememberedChoice, current_publication, final_publication
from dgdr_publisher.resources import run_identity
from dgdr_publisher.search_state import SearchState, all_batches
from dgdr_publisher.selection import Choose, choose
from dgdr_publisher.service.pace import Pace

CHECKPOINT_S = 60.0
"""Seconds between two checkpoints of the report: each writes all points again."""
Logs = Callable[[], Mapping[str, Sequence[str]]]
"""The last lines of each container, redacted, by its name."""


class Writer:
    """Writes in the order that never names what is not there.

    Missing candidates are created and described, then comes the report, then the run's status that names both, and
    last the candidates go that it no longer names.
    """

    def __init__(
        self,
        run: DynamoGraphDeploymentRun,
        store: ClusterStore,
        *,
        clock: Callable[[], str],
        checkpoints: Pace,
        logs: Logs,
        choose: Choose = choose,
    ) -> None:
        self._run, self._store, self._clock, self._logs = run, store, clock, logs
        self._identity = run_identity(run)
        self._choose = RememberedChoice(choose)
        self._checkpoints = checkpoints
        self._shown = run.status or RunStatus()
        self._attempts: list[str] = []

    def step(self, state: SearchState) -> None:
        """Bring the cluster to this state; after it, at the end of a search, the cluster holds the final one.

        Raises:
            BusyError: the cluster cannot take something now.
            RefusedError: it refuses something.
        """
        ended = state.outcome is not None
        if ended:
            self._store.candidates.load()  # what others did to them meanwhile
            found = final_publication(self._run, self._identity, state, self._choose)
        else:
            found = current_publication(self._run, self._identity, state, self._choose, self._clock())
        if found.candidates is not None:
            self._store.write_candidates(found.candidates)
        if ended or (state.batches and self._checkpoints.wait_s() == 0):
            self._write_report(state, found)
        status = found.status if found.candidates is not None else run_status.with_shown(found.status, self._shown)
        status = self._with_report(status)
        self._store.write_run(self._run.model_copy(update={"status": status}))
        self._shown = status
        if found.candidates is not None or ended:
            self.tidy()

    def give_up(self, state: SearchState, why: str) -> None:
        """Write the end of a search that the cluster refuses to publish: the status alone, naming what is there.

        Raises:
            BusyError: the cluster cannot take it now.
            RefusedError: it refuses this too.
        """
        message = cut(f"nothing more can be published: {why}", MAX_MESSAGE_BYTES)
        outcome = RunOutcome(reason=reasons.SEARCH_FAILED.name, message=message, time=self._clock())
        status = run_status.after_end(run_status.with_shown(state.status, self._shown), outcome)
        self._store.write_run(self._run.model_copy(update={"status": self._with_report(status)}))

    def tidy(self) -> None:
        """Delete what the run's status does not name.

        Raises:
            BusyError: the cluster cannot do it now.
            RefusedError: it refuses.
        """
        self._store.candidates.delete_others({ref.name for ref in self._shown.candidate_refs})

    def _with_report(self, status: RunStatus) -> RunStatus:
        first = self._store.report.first_shard
        return status.model_copy(update={"report_ref": None if first is None else CandidateRef(name=first)})

    def _write_report(self, state: SearchState, found: Publication) -> None:
        provenance = state.status.provenance
        seed = (provenance.seed if provenance is not None else None) or 0
        self._store.write_points(all_batches(state), found.points, keep=state.reserve, seed=seed)
        self._checkpoints.wrote()
        if state.attempt is not None and state.attempt not in self._attempts:
            self._attempts.append(state.attempt)
        if state.outcome is not None:
            facts = {"attempts": self._attempts, "ended": state.outcome.time, "remark": self._store.report.remark}
            self._store.report.write_logs(self._logs(), facts)
