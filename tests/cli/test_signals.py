"""Signals in the moments in which Python does not see them by itself."""

import subprocess
import sys

WAITING = """
import signal, socket, threading
from dgdr_cli import signals

signals.listen()
ours, theirs = socket.socketpair()
ours.settimeout(30)

def interrupt():
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)  # does not end the wait of the main thread

with signals.ticking():
    threading.Timer(0.1, interrupt).start()
    try:
        ours.recv(1)
    except KeyboardInterrupt:
        print("noticed", signal.getitimer(signal.ITIMER_REAL))
    except TimeoutError:
        print("not noticed")
"""


def test_a_signal_that_does_not_end_a_wait_is_noticed_soon() -> None:
    done = subprocess.run([sys.executable, "-c", WAITING], capture_output=True, text=True, check=True, timeout=60)
    assert (done.stdout, done.stderr) == ("noticed (0.0, 0.0)\n", "")


def test_ticks_disturb_no_process_that_does_not_listen() -> None:
    program = "import time; from dgdr_cli import signals\nwith signals.ticking(): time.sleep(0.7)"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_ticks_end_with_the_wait() -> None:
    program = (
        "import signal, time; from dgdr_cli import signals; signals.listen()\n"
        "with signals.ticking(): time.sleep(0.7)\n"
        "print(signal.getitimer(signal.ITIMER_REAL))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "(0.0, 0.0)\n"
