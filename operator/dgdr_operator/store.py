"""The latest known state of the cluster, by kind and name. Filled by lists and watches, read by the workers."""

import threading
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dgdr_kube.resource import Object, Resource

ObjectKey = tuple[str, str]
"""Namespace and name."""


@dataclass(frozen=True)
class Kept:
    """What is kept of one kind."""

    index: Callable[[Object], str]
    """Says what an object is looked up by, beside its name; empty: by nothing."""
    trim: Callable[[Object], Object] = lambda value: value
    """Leaves out what nobody reads."""


_REMEMBERED = 10_000
"""Deletions that are remembered, so that a list that was asked for before does not bring an object back."""


class Store:
    """Objects of some kinds. Safe to use from several threads; what it hands out must not be changed.

    Args:
        kinds: those that are kept.
    """

    def __init__(self, kinds: Mapping[Resource, Kept]) -> None:
        self._kinds = dict(kinds)
        self._objects: dict[Resource, dict[ObjectKey, dict[str, Any]]] = {resource: {} for resource in kinds}
        self._groups: dict[Resource, dict[str, set[ObjectKey]]] = {resource: defaultdict(set) for resource in kinds}
        self._gone: OrderedDict[str, None] = OrderedDict()
        self._lock = threading.RLock()

    def put(self, resource: Resource, value: Object) -> None:
        """Take an object, unless a later version of it is here already, or it is known to be gone."""
        made = _slim(self._kinds[resource].trim(value))
        key = key_of(made)
        with self._lock:
            known = self._objects[resource].get(key)
            if made["metadata"]["uid"] not in self._gone and (known is None or not _is_older(made, known)):
                self._set(resource, key, made)

    def drop(self, resource: Resource, namespace: str, name: str, uid: str) -> None:
        """Forget an object that was deleted, unless another one has its name by now."""
        with self._lock:
            self._gone[uid] = None
            if len(self._gone) > _REMEMBERED:
                self._gone.popitem(last=False)
            known = self._objects[resource].get((namespace, name))
            if known is not None and known["metadata"]["uid"] == uid:
                self._unset(resource, (namespace, name))

    def replace(
        self, resource: Resource, values: Iterable[Object], resource_version: str
    ) -> tuple[dict[str, Any], ...]:
        """Take a whole list. What is not in it and not newer than it is gone, and is returned: watches missed its end.

        Args:
            resource: the kind.
            values: all objects of the kind.
            resource_version: state of the collection that the list shows.
        """
        with self._lock:
            listed = set()
            for value in values:
                listed.add(key_of(value))
                self.put(resource, value)
            ghosts = [
                key
                for key, known in self._objects[resource].items()
                if key not in listed and _version(known["metadata"]["resourceVersion"]) <= _version(resource_version)
            ]
            return tuple(self._unset(resource, key) for key in ghosts)

    def get(self, resource: Resource, namespace: str, name: str) -> dict[str, Any] | None:
        """Return an object, if it is known."""
        with self._lock:
            return self._objects[resource].get((namespace, name))

    def all(self, resource: Resource) -> tuple[dict[str, Any], ...]:
        """Return all objects of a kind."""
        with self._lock:
            return tuple(self._objects[resource].values())

    def by(self, resource: Resource, index: str) -> tuple[dict[str, Any], ...]:
        """Return the objects of a kind that are looked up by ``index``, in the order of their names."""
        with self._lock:
            keys = self._groups[resource].get(index, ())
            return tuple(self._objects[resource][key] for key in sorted(keys))

    def _set(self, resource: Resource, key: ObjectKey, value: dict[str, Any]) -> None:
        if key in self._objects[resource]:
            self._unset(resource, key)
        self._objects[resource][key] = value
        if index := self._kinds[resource].index(value):
            self._groups[resource][index].add(key)

    def _unset(self, resource: Resource, key: ObjectKey) -> dict[str, Any]:
        known = self._objects[resource].pop(key)
        if index := self._kinds[resource].index(known):
            group = self._groups[resource][index]
            group.discard(key)
            if not group:
                del self._groups[resource][index]
        return known


def key_of(value: Object) -> ObjectKey:
    """Return namespace and name of an object."""
    return value["metadata"]["namespace"], value["metadata"]["name"]


def _slim(value: Object) -> dict[str, Any]:
    """Leave out who owns which field: nobody here reads it, and it is half of many objects."""
    metadata = {name: item for name, item in value["metadata"].items() if name != "managedFields"}
    return {**value, "metadata": metadata}


def _is_older(value: Object, known: Object) -> bool:
    return _version(value["metadata"]["resourceVersion"]) < _version(known["metadata"]["resourceVersion"])


def _version(resource_version: str) -> int:
    """Order of versions. An API server whose versions are no numbers loses only the protection against old news."""
    return int(resource_version) if resource_version.isdecimal() else 0
