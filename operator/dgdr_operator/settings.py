"""What an installation decides: read once from the environment, in the form that the chart writes."""

import json
import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

T = TypeVar("T")
PREFIX = "DGDR_"
DAY_S = 24 * 60 * 60


class SettingsError(Exception):
    """A variable is missing or has a value that cannot be used; the message names it."""


def _default_resources(cpu: str, memory: str, limit: str) -> dict[str, Any]:
    return {"requests": {"cpu": cpu, "memory": memory}, "limits": {"memory": limit}}


@dataclass(frozen=True, kw_only=True)
class JobSettings:
    """What every search Job has in common."""

    sweeper_image: str
    """Image of the search, unless the request names one."""
    publisher_image: str
    publisher_cluster_role: str = "dgdr-publisher"
    """ClusterRole that a run's service account is bound to, in the run's namespace."""
    image_pull_policy: str = "IfNotPresent"
    image_pull_secrets: tuple[str, ...] = ()
    sweeper_resources: Mapping[str, Any] = field(default_factory=lambda: _default_resources("1", "2Gi", "4Gi"))
    publisher_resources: Mapping[str, Any] = field(default_factory=lambda: _default_resources("100m", "256Mi", "512Mi"))
    workspace_medium: str = ""
    """``Memory``, or empty for the node's disk."""
    workspace_size: str = "2Gi"
    active_deadline_s: int = DAY_S
    ttl_s: int = DAY_S
    """How long a finished Job is kept."""
    grace_period_s: int = 60
    """Time for the publisher to drain."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What an installation decides."""

    job: JobSettings
    namespaces: tuple[str, ...] = ()
    """Namespaces that are served; empty: all."""
    searches_per_namespace: int = 0
    """Searches at the same time in one namespace; 0: any number."""
    searches_in_cluster: int = 0
    """Searches at the same time; 0: any number."""
    workers: int = 4
    relist_s: float = 300.0
    http_port: int = 8080
    """Liveness, readiness and metrics; 0: any free port."""
    leader_election: bool = True
    lease_namespace: str = "default"
    lease_name: str = "dgdr-operator"
    lease_s: int = 15
    """How long a lease holds that is not renewed."""
    identity: str = "dgdr-operator"
    """Who holds the lease."""
    log_level: str = "INFO"


def settings_from(environ: Mapping[str, str] = os.environ) -> Settings:
    """Read the settings from ``DGDR_*`` variables.

    Raises:
        SettingsError: an image is not named, or a value has not the form that it must have.
    """
    read = _Reader(environ)
    job = JobSettings(
        sweeper_image=read.required("SWEEPER_IMAGE"),
        publisher_image=read.required("PUBLISHER_IMAGE"),
        **read.given(
            publisher_cluster_role=str,
            image_pull_policy=str,
            image_pull_secrets=_names,
            sweeper_resources=_json,
            publisher_resources=_json,
            workspace_medium=_medium,
            workspace_size=str,
            active_deadline_s=_positive,
            ttl_s=_count,
            grace_period_s=_positive,
        ),
    )
    return Settings(
        job=job,
        **{"identity": socket.gethostname()}
        | read.given(
            namespaces=_names,
            searches_per_namespace=_count,
            searches_in_cluster=_count,
            workers=_positive,
            relist_s=_seconds,
            http_port=_count,
            leader_election=_switch,
            lease_namespace=str,
            lease_name=str,
            lease_s=_positive,
            identity=str,
            log_level=_level,
        ),
    )


class _Reader:
    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ

    def required(self, name: str) -> str:
        value = self._environ.get(PREFIX + name, "")
        if not value:
            raise SettingsError(f"{PREFIX}{name} is not set")
        return value

    def optional(self, name: str, form: Callable[[str], T], default: T) -> T:
        text = self._environ.get(PREFIX + name, "")
        if not text:
            return default
        try:
            return form(text)
        except ValueError as error:
            raise SettingsError(f"{PREFIX}{name}={text}: {error}") from error

    def given(self, **forms: Callable[[str], Any]) -> dict[str, Any]:
        """Return the fields whose variable is set."""
        found = {name: self.optional(name.upper(), form, None) for name, form in forms.items()}
        return {name: value for name, value in found.items() if value is not None}


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for name in text.replace(",", " ").split() if name)


def _json(text: str) -> dict[str, Any]:
    value = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError('must be a JSON object, such as {"requests": {"cpu": "2"}}')  # noqa: TRY004
    return value


def _count(text: str) -> int:
    value = int(text)
    if value < 0:
        raise ValueError("must be at least 0")
    return value


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise ValueError("must be at least 1")
    return value


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 < value < DAY_S:
        raise ValueError("must be above 0 and below a day")
    return value


def _switch(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError("must be true or false")
    return text == "true"


def _medium(text: str) -> str:
    if text not in ("Memory", "Disk"):
        raise ValueError("must be Memory or Disk")
    return "Memory" if text == "Memory" else ""


def _level(text: str) -> str:
    if text not in ("DEBUG", "INFO", "WARNING", "ERROR"):
        raise ValueError("must be DEBUG, INFO, WARNING or ERROR")
    return text
