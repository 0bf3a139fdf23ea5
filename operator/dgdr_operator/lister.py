"""Lists of everything that is watched: they fill the store before the workers start, and remove ghosts later.

After an API server restart the watches go on without the deletions that they missed; only a list tells of them.
"""

import logging

from dgdr_api.group import LABEL_RUN_UID
from dgdr_kube.kube import Kube
from dgdr_kube.resource import Resource

from dgdr_operator.gather import concerns_us, request_key
from dgdr_operator.kinds import EVENT, JOB, POD, REQUEST, RUN
from dgdr_operator.queue import Key, WorkQueue
from dgdr_operator.store import Store

logger = logging.getLogger(__name__)

LABEL_SELECTORS = {JOB: LABEL_RUN_UID, POD: LABEL_RUN_UID}
FIELD_SELECTORS = {EVENT: "type=Warning"}
"""What of a kind is asked for at all."""
_ORDER = (EVENT, POD, JOB, RUN, REQUEST)
"""What belongs to an object comes before it, so that no object is seen without."""
KEYS_PER_S = 100.0
"""Rate at which a list has its requests looked at."""


class Lister:
    """Compares the store with the cluster.

    Args:
        kube: the cluster.
        store: what is compared and corrected.
        queue: gets every request.
        namespaces: those that are served; empty: all.
    """

    def __init__(self, kube: Kube, store: Store, queue: WorkQueue, namespaces: tuple[str, ...]) -> None:
        self._kube, self._store, self._queue = kube, store, queue
        self._scopes: tuple[str | None, ...] = namespaces or (None,)

    def list(self, *, keys_per_s: float = KEYS_PER_S) -> int:
        """List every kind, take what is new, forget what is gone, and have every request looked at.

        Returns:
            The number of ghosts.

        Raises:
            KubeError: a kind cannot be listed; what was listed before it counts.
        """
        ghosts = sum(self._list(resource) for resource in _ORDER)
        requests = [self._key(value["metadata"]) for value in self._store.all(REQUEST)]
        for number, key in enumerate(requests):
            self._queue.add_after(key, number / keys_per_s)
        logger.info("listed %d requests, %d objects were gone unseen", len(requests), ghosts)
        return ghosts

    def _list(self, resource: Resource) -> int:
        listings = [
            self._kube.list(
                resource,
                namespace,
                label_selector=LABEL_SELECTORS.get(resource, ""),
                field_selector=FIELD_SELECTORS.get(resource, ""),
            )
            for namespace in self._scopes
        ]
        values = [value for listing in listings for value in listing.items if concerns_us(resource, value)]
        oldest = min((listing.resource_version for listing in listings), key=lambda version: (len(version), version))
        ghosts = self._store.replace(resource, values, oldest)
        for ghost in ghosts:
            key = request_key(resource, ghost, self._store)
            if key is not None:
                self._queue.add(key)
        return len(ghosts)

    @staticmethod
    def _key(metadata: dict[str, str]) -> Key:
        return metadata["namespace"], metadata["name"]
