"""kopf, reduced to what it does best: it watches, and tells the controller. It writes nothing anywhere.

``on.event`` handlers need no finalizer and no annotation; Events, progress and diff-base of kopf are off, and so is
scanning, which would need cluster-wide rights.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import kopf
from dgdr_kube.client import CONNECT_TIMEOUT_S, PAGE_SIZE
from dgdr_kube.resource import Resource

from dgdr_operator.controller import Controller
from dgdr_operator.gather import KINDS
from dgdr_operator.kinds import FIELD_MANAGER
from dgdr_operator.lister import FIELD_SELECTORS, LABEL_SELECTORS

_IDENTITY: Any = FIELD_MANAGER
"""Given, because kopf would ask for the user's name, and a numeric user of a container has none."""


class Watches:
    """kopf in a thread of its own: in the main one it would take the signals and wait five seconds at the end.

    Args:
        controller: hears of every change.
        namespaces: those that are served; empty: all.
    """

    def __init__(self, controller: Controller, namespaces: tuple[str, ...]) -> None:
        self._controller, self._namespaces = controller, namespaces
        self._loop = asyncio.new_event_loop()
        self._task: asyncio.Task[None] | None = None

    def run(self) -> None:
        """Watch until told to stop: what the thread does."""
        with contextlib.suppress(asyncio.CancelledError), asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._watch())

    def stop(self) -> None:
        """Have the thread end."""
        if self._task is not None:
            self._loop.call_soon_threadsafe(self._task.cancel)

    async def _watch(self) -> None:
        self._task = asyncio.current_task()
        await kopf.operator(
            registry=handlers(self._controller),
            settings=kopf_settings(),
            standalone=True,
            identity=_IDENTITY,
            clusterwide=not self._namespaces,
            namespaces=self._namespaces,
        )


def kopf_settings() -> kopf.OperatorSettings:
    """Return kopf's settings under which it only reads."""
    made = kopf.OperatorSettings()
    made.persistence.diffbase_storage = kopf.MultiDiffBaseStorage([])
    made.persistence.progress_storage = kopf.MultiProgressStorage([])
    made.posting.enabled = False
    made.scanning.disabled = True
    made.watching.chunk_size = PAGE_SIZE
    made.watching.connect_timeout = CONNECT_TIMEOUT_S
    for resource, selector in LABEL_SELECTORS.items():
        made.watching.label_selectors[_parts(resource)] = selector
    for resource, selector in FIELD_SELECTORS.items():
        made.watching.field_selectors[_parts(resource)] = selector
    return made


def handlers(controller: Controller) -> kopf.OperatorRegistry:
    """Return handlers that pass on every change of every kind that the operator keeps."""
    made = kopf.OperatorRegistry()
    kopf.on.login(registry=made)(kopf.login_via_client)
    for resource in KINDS:
        kopf.on.event(*_parts(resource), id=resource.plural, registry=made)(_handler(controller, resource))
    return made


def _parts(resource: Resource) -> tuple[str, str, str]:
    group, _, version = resource.api_version.rpartition("/")
    return group, version, resource.plural


def _handler(controller: Controller, resource: Resource) -> Callable[..., Awaitable[None]]:
    async def pass_on(event: Mapping[str, Any], **_: Any) -> None:  # noqa: ANN401 - called by kopf, in its loop
        value = {"apiVersion": resource.api_version, "kind": resource.kind, **event["object"]}
        if event["type"] == "DELETED":
            controller.deleted(resource, value)
        else:
            controller.changed(resource, value)

    return pass_on
