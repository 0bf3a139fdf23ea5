"""When requests come: at their time, when a slot is free, or when the turn before has ended."""

import heapq

from dgdr_job.replay.requests import Requests


class Arrivals:
    """The requests that have not come yet."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests
        self._first = [int(one) for one in requests.first_turns]
        self._next = 0
        self._turns: list[tuple[int, int]] = []
        """Later turns: when they come, and the request."""
        self._in_flight = 0

    @property
    def empty(self) -> bool:
        """Whether all have come."""
        return self._next == len(self._first) and not self._turns

    def next_ns(self, now: int) -> int | None:
        """When the next request comes, as far as that is known."""
        times = [self._turns[0][0]] if self._turns else []
        if self._next < len(self._first):
            if not self._requests.concurrency:
                times.append(int(self._requests.arrival_ns[self._first[self._next]]))
            elif self._in_flight < self._requests.concurrency:
                times.append(now)
        return max(now, min(times)) if times else None

    def take(self, now: int) -> int | None:
        """A request that comes now; later turns first."""
        if self._turns and self._turns[0][0] <= now:
            return heapq.heappop(self._turns)[1]
        if self._next == len(self._first):
            return None
        request = self._first[self._next]
        if self._requests.concurrency:
            if self._in_flight >= self._requests.concurrency:
                return None
        elif self._requests.arrival_ns[request] > now:
            return None
        self._next += 1
        self._in_flight += 1
        return request

    def ended(self, request: int, now: int) -> None:
        """A request has ended: its session goes on, or its slot is free."""
        follower = int(self._requests.next_turn[request])
        if follower >= 0:
            heapq.heappush(self._turns, (now + self._requests.think_ns, follower))
        else:
            self._in_flight -= 1
