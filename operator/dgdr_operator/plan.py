"""What shall be done, as values: the result of looking at a snapshot. Nothing here touches a cluster."""

from dataclasses import dataclass
from typing import Literal

from dgdr_kube.kube import Propagation
from dgdr_kube.resource import Object, Resource


@dataclass(frozen=True)
class Create:
    """Create an object once; it is never applied again."""

    resource: Resource
    value: Object
    owner_uid: str
    """Uid of the request or run that it is made for, which hears of a refusal."""


@dataclass(frozen=True)
class Apply:
    """Server-side apply of a whole object."""

    resource: Resource
    value: Object
    owner_uid: str
    """As for a creation."""


@dataclass(frozen=True)
class ApplyStatus:
    """Server-side apply of a status, made from one version of the object."""

    resource: Resource
    value: Object
    uid: str
    resource_version: str


@dataclass(frozen=True)
class Delete:
    """Delete exactly this object."""

    resource: Resource
    value: Object
    propagation: Propagation


@dataclass(frozen=True)
class Emit:
    """Write an Event about an object; a failure stops nothing."""

    about: Object
    type: Literal["Normal", "Warning"]
    reason: str
    message: str


Step = Create | Apply | ApplyStatus | Delete | Emit


@dataclass(frozen=True)
class Plan:
    """Steps in the order in which they are done; the first that fails ends the plan, and the next look makes a new."""

    steps: tuple[Step, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.steps)
