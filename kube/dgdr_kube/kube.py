"""What the other rooms ask of a cluster: one small Protocol. Objects are mappings, and nobody here knows their meaning.

Watching is not part of it: the operator's framework watches, and a person's command has `KubeClient.watch`.
"""

from dataclasses import dataclass
from typing import Any, Literal, Protocol

from dgdr_kube.resource import Object, Resource

Propagation = Literal["Foreground", "Background", "Orphan"]


@dataclass(frozen=True)
class Listing:
    """The answer to a list."""

    items: tuple[dict[str, Any], ...]
    """The objects, each with its apiVersion and kind."""
    resource_version: str
    """State of the collection that the list shows; a watch can go on from here."""


class Kube(Protocol):
    """A cluster. Every method raises `dgdr_kube.errors.KubeError`, and returns objects as the server holds them."""

    def get(self, resource: Resource, namespace: str, name: str) -> dict[str, Any]:
        """Read one object.

        Raises:
            NotFound: there is none.
        """

    def list(
        self, resource: Resource, namespace: str | None, *, label_selector: str = "", field_selector: str = ""
    ) -> Listing:
        """Read all objects of a namespace, or of all namespaces (None), page by page."""

    def create(self, resource: Resource, value: Object, *, dry_run: bool = False) -> dict[str, Any]:
        """Create an object under strict field validation; with ``dry_run`` the server only says what it would do.

        Raises:
            AlreadyExists: there is an object of that name.
        """

    def replace(self, resource: Resource, value: Object) -> dict[str, Any]:
        """Write a whole object over the one whose resourceVersion it carries.

        Raises:
            Stale: the stored object is another one.
        """

    def apply(self, resource: Resource, value: Object) -> dict[str, Any]:
        """Server-side apply, never forced; what this writer applied before and leaves out now is deleted.

        Raises:
            FieldConflict: another writer owns a field.
        """

    def apply_status(self, resource: Resource, value: Object, *, uid: str, resource_version: str) -> dict[str, Any]:
        """Server-side apply of the status subresource.

        Args:
            resource: kind of the object.
            value: apiVersion, kind, metadata with namespace and name, and status.
            uid: which object is meant. The status subresource ignores a wrong uid, but no two objects share a
                resourceVersion, and the answer is compared.
            resource_version: version of the stored object that ``value`` was made from.

        Raises:
            Stale: the stored object is another one, or has changed.
            FieldConflict: another writer owns a field.
        """

    def delete(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        *,
        uid: str,
        resource_version: str | None = None,
        propagation: Propagation = "Foreground",
    ) -> None:
        """Delete exactly the object with this uid (and resourceVersion); what belongs to it goes first by default.

        Raises:
            NotFound: it is gone.
            Stale: there is another object of that name, or it has changed.
        """
