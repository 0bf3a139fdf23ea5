"""Kubernetes object metadata, as far as the contract reads or writes it."""

from typing import Annotated, Any

from pydantic import Field

from dgdr_api.base import ApiModel
from dgdr_api.bounds import Label, Name

DNS_LABEL = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"


class OwnerReference(ApiModel):
    """The object that this one belongs to and is deleted with."""

    api_version: Name
    """Group and version of the owner."""
    kind: Name
    """Kind of the owner."""
    name: Name
    """Name of the owner."""
    uid: Name
    """Uid of the owner."""
    controller: bool = False
    """Whether the owner manages this object."""
    block_owner_deletion: bool = False
    """Whether a foreground deletion of the owner waits for this object."""


class ObjectMeta(ApiModel):
    """Name and identity of an object. What only the API server writes is accepted and not read."""

    name: Annotated[str, Field(min_length=1, max_length=63, pattern=DNS_LABEL)]
    """DNS label: lower-case letters, digits and hyphens, at most 63."""
    namespace: Annotated[str, Field(min_length=1, max_length=63, pattern=DNS_LABEL)] = "default"
    """Namespace of the object."""
    uid: Label | None = None
    """Unique identity that the API server gave."""
    generation: Annotated[int, Field(ge=0)] | None = None
    """Counts the changes of the spec."""
    labels: dict[str, str] = Field(default_factory=dict)
    """Labels, for selection."""
    annotations: dict[str, str] = Field(default_factory=dict)
    """Annotations, for reading."""
    owner_references: tuple[OwnerReference, ...] | None = None
    """Owners; an object goes with its owner."""
    resource_version: str | None = None
    """Version of the stored object, for optimistic locking."""
    creation_timestamp: str | None = None
    """When the object was created."""
    deletion_timestamp: str | None = None
    """When its deletion was asked for."""
    deletion_grace_period_seconds: int | None = None
    """Seconds granted to the deletion."""
    finalizers: tuple[str, ...] | None = None
    """What must happen before it goes."""
    managed_fields: tuple[dict[str, Any], ...] | None = None
    """Which writer owns which field."""
    self_link: str | None = None
    """Address, in old API servers."""
