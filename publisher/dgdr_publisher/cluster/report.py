"""The report of one run in the cluster: shards that replace each other from checkpoint to checkpoint."""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from dgdr_api.events import Evaluations
from dgdr_api.group import LABEL_RUN_UID
from dgdr_kube.kube import Kube
from dgdr_kube.resource import CONFIG_MAP

from dgdr_publisher.cluster.translation import translated
from dgdr_publisher.errors import ReportError
from dgdr_publisher.report.reading import read_report
from dgdr_publisher.report.shards import ANNOTATION_SHARD, LABEL_REPORT, encoded, logs_shard, points_shards, shard_name
from dgdr_publisher.resources import RunIdentity


class ClusterReport:
    """Writes the points and the logs of a run."""

    def __init__(self, kube: Kube, run: RunIdentity) -> None:
        self._kube, self._run = kube, run
        self._held: dict[str, tuple[str, str]] = {}
        self.remark = ""
        """How the report was thinned; empty when every point is there."""

    @property
    def first_shard(self) -> str | None:
        """Name of the first shard, once it is there."""
        name = shard_name(self._run.name, 0)
        return name if name in self._held else None

    def load(self) -> tuple[Evaluations, ...]:
        """Read what is there: the points of the last checkpoint; none, where it is not whole.

        Raises:
            BusyError: the cluster cannot answer now.
            RefusedError: it refuses.
        """
        selector = f"{LABEL_RUN_UID}={self._run.uid},{LABEL_REPORT}=points"
        with translated():
            found = self._kube.list(CONFIG_MAP, self._run.namespace, label_selector=selector).items
        self._held = {item["metadata"]["name"]: (item["metadata"]["uid"], _digest(item)) for item in found}
        try:
            return read_report(found).batches()
        except ReportError:
            return ()

    def write(
        self, batches: Sequence[Evaluations], publication: Mapping[str, str], keep: Collection[str], seed: int
    ) -> None:
        """Write all points; shards of an earlier, longer checkpoint go last.

        Raises:
            BusyError: the cluster cannot take it now.
            RefusedError: it refuses.
        """
        found = encoded(batches, publication, keep, seed=seed)
        self.remark = found.remark
        shards = points_shards(found, self._run)
        for shard in shards:
            self._apply(shard)
        for name in sorted(self._held.keys() - {shard["metadata"]["name"] for shard in shards}):
            with translated():
                self._kube.delete(
                    CONFIG_MAP, self._run.namespace, name, uid=self._held[name][0], propagation="Background"
                )
            del self._held[name]

    def write_logs(self, logs: Mapping[str, Sequence[str]], facts: Mapping[str, object]) -> None:
        """Write the logs of both containers, and what differs between equal searches.

        Raises:
            BusyError: the cluster cannot take it now.
            RefusedError: it refuses.
        """
        with translated():
            self._kube.apply(CONFIG_MAP, logs_shard(logs, facts, self._run))

    def _apply(self, shard: dict[str, Any]) -> None:
        name, digest = shard["metadata"]["name"], _digest(shard)
        if self._held.get(name, ("", ""))[1] == digest:
            return
        with translated():
            found = self._kube.apply(CONFIG_MAP, shard)
        self._held[name] = (found["metadata"]["uid"], digest)


def _digest(shard: Mapping[str, Any]) -> str:
    """What tells one checkpoint's shard from another's."""
    text = (shard["metadata"].get("annotations") or {}).get(ANNOTATION_SHARD, "{}")
    about = json.loads(text)
    return f"{about.get('digest')}/{about.get('index')}/{about.get('shards')}"
