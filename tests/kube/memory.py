"""A cluster in memory, for tests: names, uids, versions, preconditions and the ownership of applied fields.

It runs no controller: a foreground deletion leaves the object with a deletion time until ``collect`` is called.
"""

import copy
import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from dgdr_kube.errors import AlreadyExists, FieldConflict, NotFound, Stale
from dgdr_kube.kube import Listing, Propagation
from dgdr_kube.resource import Object, Resource

Place = tuple[Resource, str, str]
Path = tuple[str, ...]
CREATED = "2026-01-01T00:00:00Z"


class MemoryKube:
    """`dgdr_kube.kube.Kube` without a server; ``writes`` names every change."""

    def __init__(self, manager: str = "test", shared: "MemoryKube | None" = None) -> None:
        self.manager = manager
        self.writes: list[str] = []
        self.objects: dict[Place, dict[str, Any]] = {} if shared is None else shared.objects
        self._owners: dict[Place, dict[str, dict[Path, Any]]] = {} if shared is None else shared._owners
        self._numbers: Iterator[int] = itertools.count(1) if shared is None else shared._numbers

    def get(self, resource: Resource, namespace: str, name: str) -> dict[str, Any]:
        place = (resource, namespace, name)
        if place not in self.objects:
            raise NotFound(f"GET {resource.path(namespace, name)}", "not found", status=404)
        return copy.deepcopy(self.objects[place])

    def list(  # selectors only spare a real server work
        self,
        resource: Resource,
        namespace: str | None,
        *,
        label_selector: str = "",  # noqa: ARG002
        field_selector: str = "",  # noqa: ARG002
    ) -> Listing:
        found = [
            copy.deepcopy(value)
            for (kind, where, _), value in self.objects.items()
            if kind == resource and namespace in (None, where)
        ]
        return Listing(tuple(found), str(next(self._numbers)))

    def create(self, resource: Resource, value: Object, *, dry_run: bool = False) -> dict[str, Any]:
        made = copy.deepcopy(dict(value))
        place = (resource, made["metadata"]["namespace"], made["metadata"]["name"])
        if place in self.objects:
            raise AlreadyExists("POST", f"{place} exists", status=409, reason="AlreadyExists")
        number = next(self._numbers)
        made.pop("status", None)
        made["metadata"] |= {
            "uid": made["metadata"].get("uid") or f"{number * 2654435761 % 2**32:08x}-0000-4000-8000-000000000000",
            "creationTimestamp": CREATED,
            "generation": 1,
        }
        if dry_run:
            return made
        return self._store(place, made, "create")

    def replace(self, resource: Resource, value: Object) -> dict[str, Any]:
        place = (resource, value["metadata"]["namespace"], value["metadata"]["name"])
        self._check(place, value["metadata"].get("uid"), value["metadata"]["resourceVersion"])
        return self._store(place, copy.deepcopy(dict(value)), "replace")

    def apply(self, resource: Resource, value: Object) -> dict[str, Any]:
        place = (resource, value["metadata"]["namespace"], value["metadata"]["name"])
        if place not in self.objects:
            return self.create(resource, value)
        return self._apply(place, {name: item for name, item in value.items() if name != "metadata"})

    def apply_status(self, resource: Resource, value: Object, *, uid: str, resource_version: str) -> dict[str, Any]:
        place = (resource, value["metadata"]["namespace"], value["metadata"]["name"])
        self._check(place, uid, resource_version)
        return self._apply(place, {"status": value["status"]})

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
        place = (resource, namespace, name)
        found = self._check(place, uid, resource_version)
        if propagation == "Foreground":
            self._store(place, found | {"metadata": found["metadata"] | {"deletionTimestamp": CREATED}}, "delete")
        else:
            self.writes.append(f"delete {resource.kind} {name}")
            self.remove(resource, namespace, name)

    def remove(self, resource: Resource, namespace: str, name: str) -> None:
        """Take an object away, with everything that it manages, as the garbage collector does."""
        uid = self.objects.pop((resource, namespace, name))["metadata"]["uid"]
        self._owners.pop((resource, namespace, name), None)
        for kind, where, other in [
            place
            for place, value in self.objects.items()
            if any(owner["uid"] == uid for owner in value["metadata"].get("ownerReferences") or ())
        ]:
            self.remove(kind, where, other)

    def collect(self) -> None:
        """Finish the deletions that were asked for."""
        for resource, namespace, name in [
            place for place, value in self.objects.items() if value["metadata"].get("deletionTimestamp")
        ]:
            self.remove(resource, namespace, name)

    def change(self, resource: Resource, namespace: str, name: str, **parts: Any) -> dict[str, Any]:
        """Write parts of an object as somebody else: another program, or a person."""
        place = (resource, namespace, name)
        found = copy.deepcopy(self.objects[place])
        for part, value in parts.items():
            found[part] = value if part == "spec" else {**found.get(part, {}), **value}
        if "spec" in parts:
            found["metadata"]["generation"] += 1
        return self._store(place, found, "change")

    def _check(self, place: Place, uid: str | None, resource_version: str | None) -> dict[str, Any]:
        found = self.get(*place)
        meta = found["metadata"]
        if uid not in (None, meta["uid"]) or resource_version not in (None, meta["resourceVersion"]):
            raise Stale("PATCH", f"{place} is another one", status=409, reason="Conflict")
        return found

    def _apply(self, place: Place, value: Mapping[str, Any]) -> dict[str, Any]:
        found = self.get(*place)
        owners = self._owners.setdefault(place, {})
        mine = dict(_leaves(value, ()))
        for manager, fields in owners.items():
            taken = [path for path, item in mine.items() if path in fields and fields[path] != item]
            if manager != self.manager and taken:
                raise FieldConflict("PATCH", f"{manager} owns {taken}", status=409, reason="Conflict")
        kept = {path for manager, fields in owners.items() if manager != self.manager for path in fields}
        for path in owners.get(self.manager, {}):
            if path not in mine and path not in kept:
                _remove(found, path)
        for path, item in mine.items():
            _set(found, path, item)
        owners[self.manager] = mine
        return self._store(place, found, "apply") if found != self.objects[place] else found

    def _store(self, place: Place, value: dict[str, Any], verb: str) -> dict[str, Any]:
        value["metadata"]["resourceVersion"] = str(next(self._numbers))
        self.objects[place] = value
        self.writes.append(f"{verb} {place[0].kind} {place[2]}")
        return copy.deepcopy(value)


def _leaves(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    """Yield every field below a value; conditions are a map by type, every other list is one field."""
    if path and path[-1] == "conditions":
        value = {item["type"]: item for item in value}
    if isinstance(value, Mapping) and value:
        for name, item in value.items():
            yield from _leaves(item, (*path, name))
    else:
        yield path, value


def _set(found: dict[str, Any], path: Path, value: Any) -> None:
    node: Any = found
    for index, name in enumerate(path[:-1]):
        if index and path[index - 1] == "conditions":
            node = _entry(node, name)
        else:
            node = node.setdefault(name, [] if name == "conditions" else {})
    node[path[-1]] = copy.deepcopy(value)


def _entry(conditions: list[dict[str, Any]], type_: str) -> dict[str, Any]:
    for item in conditions:
        if item["type"] == type_:
            return item
    conditions.append({"type": type_})
    return conditions[-1]


def _remove(found: dict[str, Any], path: Path) -> None:
    """Remove a field, and what is empty without it."""
    node: Any = found
    trail = []
    for name in path[:-1]:
        trail.append((node, name))
        node = next((item for item in node if item["type"] == name), {}) if isinstance(node, list) else node.get(name)
        if node is None:
            return
    node.pop(path[-1], None)
    for parent, name in reversed(trail):
        if isinstance(parent, dict) and not parent[name]:
            del parent[name]
