"""Leader election by a Lease: of several replicas one works. Correctness never depends on it: names and owners do that.

The client library has a lock of its own, but without a request timeout: a server that hangs would keep a lost leader at
work. A holder is taken for dead when its Lease has not changed for its duration, by our own clock.
"""

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from dgdr_kube.errors import Conflict, KubeError, NotFound
from dgdr_kube.kube import Kube
from dgdr_kube.resource import LEASE

from dgdr_operator.clock import utc_now_micro

logger = logging.getLogger(__name__)


class Leader:
    """One replica's claim to lead.

    Args:
        kube: the cluster; its requests must time out well before the lease.
        namespace: where the Lease lies.
        name: name of the Lease.
        identity: name of this replica.
        lease_s: how long the lease holds that is not renewed; tried every third of it.
        clock: seconds; for tests.
    """

    def __init__(
        self,
        kube: Kube,
        *,
        namespace: str,
        name: str,
        identity: str,
        lease_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._kube, self._clock = kube, clock
        self._namespace, self._name, self._identity, self._lease_s = namespace, name, identity, lease_s
        self._seen: tuple[str, float] = ("", 0.0)
        self._held_at = 0.0

    @property
    def retry_s(self) -> float:
        """Seconds between two attempts."""
        return self._lease_s / 3

    def wait(self, stop: threading.Event) -> bool:
        """Wait until this replica leads; False when it was told to stop before."""
        while not stop.is_set():
            if self.attempt():
                logger.info("%s leads", self._identity)
                return True
            stop.wait(self.retry_s)
        return False

    def hold(self, stop: threading.Event, lost: Callable[[], None]) -> None:
        """Renew the lease until told to stop; call ``lost`` when that failed for two thirds of its duration."""
        while not stop.wait(self.retry_s):
            if not self.attempt() and self._clock() - self._held_at >= self._lease_s * 2 / 3:
                logger.error("%s leads no more", self._identity)
                lost()
                return

    def attempt(self) -> bool:
        """Take or renew the lease; return whether this replica holds it now."""
        started = self._clock()
        try:
            held = self._attempt(started)
        except Conflict:
            return False  # somebody was faster
        except KubeError as error:
            logger.warning("lease: %s", error)
            return False
        if held:
            self._held_at = started
        return held

    def release(self) -> None:
        """Give the lease back, so that another replica need not wait for its end."""
        try:
            lease = self._kube.get(LEASE, self._namespace, self._name)
            if lease["spec"].get("holderIdentity") == self._identity:
                self._kube.replace(LEASE, lease | {"spec": lease["spec"] | {"holderIdentity": ""}})
        except KubeError as error:
            logger.warning("lease not released: %s", error)

    def _attempt(self, started: float) -> bool:
        now = utc_now_micro()
        try:
            lease = self._kube.get(LEASE, self._namespace, self._name)
        except NotFound:
            self._kube.create(LEASE, self._lease({}, now))
            return True
        spec = lease.get("spec") or {}
        holder, version = spec.get("holderIdentity") or "", lease["metadata"]["resourceVersion"]
        if version != self._seen[0]:
            self._seen = (version, started)
        if holder not in ("", self._identity) and started - self._seen[1] < spec.get("leaseDurationSeconds", 0):
            return False
        self._kube.replace(LEASE, self._lease(lease, now))
        return True

    def _lease(self, old: dict[str, Any], now: str) -> dict[str, Any]:
        spec = old.get("spec") or {}
        ours = spec.get("holderIdentity") == self._identity
        return {
            "apiVersion": LEASE.api_version,
            "kind": LEASE.kind,
            "metadata": old.get("metadata") or {"name": self._name, "namespace": self._namespace},
            "spec": {
                "holderIdentity": self._identity,
                "leaseDurationSeconds": max(1, round(self._lease_s)),
                "acquireTime": spec.get("acquireTime", now) if ours else now,
                "renewTime": now,
                "leaseTransitions": spec.get("leaseTransitions", 0) + (0 if ours or not old else 1),
            },
        }
