import threading

from dgdr_kube.errors import Retryable
from dgdr_kube.resource import LEASE
from dgdr_operator.leader import Leader

from tests.kube.memory import MemoryKube

LEASE_S = 15.0


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def leader(kube: MemoryKube, identity: str, clock: Clock) -> Leader:
    return Leader(kube, namespace="n", name="lease", identity=identity, lease_s=LEASE_S, clock=clock)


def holder(kube: MemoryKube) -> object:
    return kube.get(LEASE, "n", "lease")["spec"]["holderIdentity"]


def test_the_first_leads_while_it_renews() -> None:
    kube, clock = MemoryKube(), Clock()
    first, second = leader(kube, "first", clock), leader(kube, "second", clock)
    for _ in range(10):
        assert first.attempt()
        assert not second.attempt()
        clock.now += LEASE_S / 3

    assert holder(kube) == "first"
    assert kube.get(LEASE, "n", "lease")["spec"]["leaseTransitions"] == 0


def test_the_second_waits_for_the_whole_lease_by_its_own_clock() -> None:
    kube, clock = MemoryKube(), Clock()
    first, second = leader(kube, "first", clock), leader(kube, "second", clock)
    first.attempt()
    assert not second.attempt()
    clock.now += LEASE_S - 0.1
    assert not second.attempt()
    clock.now += 0.1
    assert second.attempt()
    assert not first.attempt()
    assert holder(kube) == "second"


def test_a_lease_that_is_given_back_is_taken_at_once() -> None:
    kube, clock = MemoryKube(), Clock()
    first, second = leader(kube, "first", clock), leader(kube, "second", clock)
    first.attempt()
    second.attempt()
    second.release()
    assert holder(kube) == "first"
    first.release()
    assert second.attempt()


class Silent(MemoryKube):
    """A server that answers nothing any more."""

    def get(self, *_: object) -> dict[str, object]:
        raise Retryable("GET", "no answer")


def test_who_cannot_renew_is_told_before_the_lease_ends() -> None:
    clock, told = Clock(), []

    class Passing(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            clock.now += timeout or 0
            return False

    held = leader(MemoryKube(), "me", clock)
    held.attempt()
    held._kube = Silent()
    held.hold(Passing(), lambda: told.append(clock.now))

    assert told == [100.0 + LEASE_S * 2 / 3]


def test_waiting_ends_when_it_is_told_to_stop() -> None:
    stop = threading.Event()
    stop.set()
    assert leader(Silent(), "me", Clock()).wait(stop) is False
