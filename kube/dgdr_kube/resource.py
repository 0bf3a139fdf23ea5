"""Where objects of a kind lie in the API, and what the API server is asked with."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

Object = Mapping[str, Any]
"""A Kubernetes object as JSON."""


@dataclass(frozen=True)
class Resource:
    """One kind, as the API server serves it. Given, not discovered: no request is spent to learn what is known."""

    api_version: str
    """Group and version, e.g. ``batch/v1``; ``v1`` for the core group."""
    kind: str
    plural: str
    """Name in paths."""

    def path(self, namespace: str | None, name: str | None = None, subresource: str | None = None) -> str:
        """Return the path of a collection, an object or a subresource; ``namespace`` None: of all namespaces."""
        root = f"/apis/{self.api_version}" if "/" in self.api_version else f"/api/{self.api_version}"
        scope = "" if namespace is None else f"/namespaces/{quote(namespace, safe='')}"
        tail = "".join(f"/{quote(part, safe='')}" for part in (name, subresource) if part is not None)
        return f"{root}{scope}/{self.plural}{tail}"


CONFIG_MAP = Resource("v1", "ConfigMap", "configmaps")
EVENT = Resource("v1", "Event", "events")
POD = Resource("v1", "Pod", "pods")
SERVICE_ACCOUNT = Resource("v1", "ServiceAccount", "serviceaccounts")
JOB = Resource("batch/v1", "Job", "jobs")
LEASE = Resource("coordination.k8s.io/v1", "Lease", "leases")
ROLE_BINDING = Resource("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings")
