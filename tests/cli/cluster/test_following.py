"""Following one object through every kind of interruption, with a server that does what the test says."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, cast

import pytest
from dgdr_cli.cluster.following import Outage, states
from dgdr_kube.client import KubeClient
from dgdr_kube.errors import Forbidden, KubeError, NotFound, Retryable
from dgdr_kube.kube import Listing
from dgdr_kube.resource import POD, Resource
from dgdr_kube.watch import Change

AWAY = Retryable("GET", "no answer")
GONE = NotFound("GET", "too old resource version", status=410, reason="Expired")
NO_KIND = NotFound("GET", "404 page not found", status=404)


def pod(version: int) -> dict[str, Any]:
    return {"metadata": {"name": "a", "resourceVersion": str(version)}}


@dataclass
class Script:
    """A server that answers lists and watches in the order given, and a clock that pauses move."""

    lists: list[dict[str, Any] | KubeError | None]
    watches: list[list[Change | KubeError]] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    now_s: float = 0.0
    watch_s: float = 60.0

    def list(self, resource: Resource, namespace: str, *, field_selector: str) -> Listing:
        assert (resource, namespace, field_selector) == (POD, "n", "metadata.name=a")
        found = self.lists.pop(0)
        self.asked.append("list")
        if isinstance(found, KubeError):
            raise found
        return Listing((found,) if found else (), found["metadata"]["resourceVersion"] if found else "1")

    def watch(
        self, resource: Resource, namespace: str, *, resource_version: str, field_selector: str
    ) -> Iterator[Change]:
        assert (resource, namespace, field_selector) == (POD, "n", "metadata.name=a")
        self.asked.append(f"watch {resource_version}")
        for found in self.watches.pop(0):
            if isinstance(found, KubeError):
                raise found
            yield found
        self.now_s += self.watch_s

    def pause(self, seconds: float) -> None:
        self.now_s += seconds


def seen_by(script: Script, count: int, patience_s: float = 100.0) -> list[str | None]:
    """Versions of the first states that are seen."""
    outage = Outage(script.told.append, patience_s=patience_s, clock=lambda: script.now_s, pause=script.pause)
    seen = states(cast("KubeClient", script), POD, "n", "a", outage)
    return [None if value is None else value["metadata"]["resourceVersion"] for value in islice(seen, count)]


def test_a_watch_goes_on_from_the_last_change_or_bookmark() -> None:
    script = Script(
        [pod(1)],
        [
            [Change("MODIFIED", pod(2)), Change("BOOKMARK", pod(5))],
            [Change("DELETED", pod(6)), Change("ADDED", pod(7))],
        ],
    )
    assert seen_by(script, 4) == ["1", "2", None, "7"]
    assert script.asked == ["list", "watch 1", "watch 5"]
    assert script.told == []


def test_what_is_not_there_yet_is_waited_for() -> None:
    script = Script([None], [[], [Change("ADDED", pod(3))]])
    assert seen_by(script, 2) == [None, "3"]


def test_a_version_that_the_server_has_forgotten_is_listed_again_without_a_pause() -> None:
    script = Script([pod(1), pod(9)], [[GONE]])
    assert seen_by(script, 2) == ["1", "9"]
    assert (script.told, script.now_s) == ([], 0.0)


def test_an_outage_is_told_once_and_its_pauses_grow() -> None:
    script = Script([pod(1), AWAY, AWAY, NO_KIND, Forbidden("GET", "no role yet"), pod(4)], [[AWAY]])
    assert seen_by(script, 2) == ["1", "4"]
    assert script.told == ["the API server does not answer; waiting for it", "the API server answers again"]
    assert script.now_s == pytest.approx(0.2 + 0.4 + 0.8 + 1.6 + 3.2)


def test_patience_ends() -> None:
    script = Script([pod(1), *[AWAY] * 50], [[AWAY]])
    with pytest.raises(Retryable):
        seen_by(script, 2, patience_s=20.0)
    assert 20.0 < script.now_s < 30.0


@pytest.mark.parametrize("error", [AWAY, NO_KIND, Forbidden("GET", "no")])
def test_a_server_that_never_answered_is_not_waited_for(error: KubeError) -> None:
    with pytest.raises(type(error)):
        seen_by(Script([error]), 1)


def test_a_refusal_is_not_an_outage() -> None:
    with pytest.raises(Forbidden):
        seen_by(Script([pod(1)], [[Forbidden("GET", "the role was taken away")]]), 2)


def test_a_watch_that_is_cut_off_at_once_is_not_asked_for_at_once() -> None:
    script = Script([pod(1)], [[], [], [Change("MODIFIED", pod(2))]], watch_s=0.0)
    assert seen_by(script, 2) == ["1", "2"]
    assert script.now_s == 2.0
