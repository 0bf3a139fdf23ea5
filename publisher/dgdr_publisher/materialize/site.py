"""A rendered component as the rules see it: where its options stand, and pointers to them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dgdr_api.replay_spec import ReplayRole


class NotThereError(LookupError):
    """An option or field that should carry a value is absent, or carries another."""


@dataclass(frozen=True)
class Destination:
    """JSON pointer into the deployment (the same in a candidate, whose spec is flat)."""

    pointer: str


@dataclass(frozen=True)
class Reason:
    """Why a value needs no place."""

    text: str


Landing = Destination | Reason


@dataclass(frozen=True)
class Site:
    """One component of a rendered deployment."""

    dgd: Mapping[str, Any]
    index: int
    """Place of the component in spec.components."""
    role: ReplayRole

    @property
    def component(self) -> Mapping[str, Any]:
        """The component."""
        found: Mapping[str, Any] = self.dgd["spec"]["components"][self.index]
        return found

    @property
    def arguments(self) -> list[str]:
        """The arguments of its main container."""
        found: list[str] = self.component["podTemplate"]["spec"]["containers"][0]["args"]
        return found

    def option(self, flag: str, expected: str) -> Destination:
        """The place of an option's value, which must be the expected text.

        Raises:
            NotThereError: it is absent, twice, or another.
        """
        position = self._position(flag) + 1
        found = self.arguments[position] if position < len(self.arguments) else "nothing"
        if found != expected:
            raise NotThereError(f"{flag} is {found}, not {expected}")
        return self.at(f"podTemplate/spec/containers/0/args/{position}")

    def switch(self, flag: str) -> Destination:
        """The place of an option without value."""
        return self.at(f"podTemplate/spec/containers/0/args/{self._position(flag)}")

    def absent(self, flag: str, text: str) -> Reason:
        """The reason for an option that must not be there."""
        if flag in self.arguments:
            raise NotThereError(f"{flag} is there")
        return Reason(text)

    def field(self, path: str, expected: object) -> Destination:
        """The place of a field of the component, which must have the expected value."""
        found: Any = self.component
        for step in path.split("/"):
            step = step.replace("~1", "/")  # noqa: PLW2901 - the unescaped name of the same step
            found = found[int(step)] if isinstance(found, list) else found.get(step)
            if found is None:
                raise NotThereError(f"{path} is absent, not {expected}")
        if found != expected:
            raise NotThereError(f"{path} is {found}, not {expected}")
        return self.at(path)

    def at(self, path: str) -> Destination:
        """The pointer of a path below the component."""
        return Destination(f"/spec/components/{self.index}/{path}")

    def _position(self, flag: str) -> int:
        if self.arguments.count(flag) != 1:
            raise NotThereError(f"{flag} is there {self.arguments.count(flag)} times, not once")
        return self.arguments.index(flag)


def sites(dgd: Mapping[str, Any], roles: tuple[ReplayRole, ...]) -> Iterator[Site]:
    """The component of each role, by its type."""
    types = {"agg": "worker"}
    for role in roles:
        wanted = types.get(role.kind, role.kind)
        found = [index for index, one in enumerate(dgd["spec"]["components"]) if one.get("type") == wanted]
        if len(found) != 1:
            raise NotThereError(f"{len(found)} components have type {wanted}, not one")
        yield Site(dgd=dgd, index=found[0], role=role)
