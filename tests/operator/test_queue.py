import threading

from dgdr_operator.queue import FIRST_DELAY_S, LONGEST_DELAY_S, WorkQueue

A, B = ("n", "a"), ("n", "b")


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_each_key_stands_once_and_the_first_comes_first() -> None:
    queue = WorkQueue()
    for key in (A, B, A):
        queue.add(key)

    assert [queue.take(0), queue.take(0), queue.take(0)] == [A, B, None]


def test_a_key_is_worked_on_by_one_worker_and_comes_back_when_it_changed_meanwhile() -> None:
    queue = WorkQueue()
    queue.add(A)
    assert queue.take(0) == A
    queue.add(A)
    assert queue.take(0) is None
    queue.done(A)
    assert queue.take(0) == A
    queue.done(A)
    assert queue.take(0) is None


def test_back_off_doubles_up_to_a_bound_and_is_forgotten() -> None:
    clock = Clock()
    queue = WorkQueue(clock)
    delays = [queue.retry(A) for _ in range(20)]

    assert delays[:3] == [FIRST_DELAY_S, FIRST_DELAY_S * 2, FIRST_DELAY_S * 4]
    assert delays[-1] == LONGEST_DELAY_S
    assert queue.retry(B) == FIRST_DELAY_S
    assert queue.retry(B, at_least_s=7) == 7
    queue.forget(A)
    assert queue.retry(A) == FIRST_DELAY_S


def test_a_key_for_later_comes_when_its_time_has_come() -> None:
    clock = Clock()
    queue = WorkQueue(clock)
    queue.add_after(A, 5)
    assert queue.take(0) is None
    clock.now = 5
    assert queue.take(0) == A


def test_closing_lets_waiting_workers_go() -> None:
    queue = WorkQueue()
    found: list[object] = []
    worker = threading.Thread(target=lambda: found.append(queue.take()))
    worker.start()
    queue.close()
    worker.join(10)

    assert found == [None]


def test_the_length_counts_what_waits_and_what_is_worked_on() -> None:
    queue = WorkQueue()
    queue.add(A)
    queue.add(B)
    queue.take(0)

    assert len(queue) == 2
