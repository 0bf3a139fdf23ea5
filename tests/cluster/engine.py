"""Holds a search where it is: its engine is stopped like any process, until a test lets it go on."""

from dataclasses import dataclass

from tests.cluster.team import Team, eventually

_FIND = """
import os, signal, sys
for pid in filter(str.isdecimal, os.listdir("/proc")):
    try:
        words = open(f"/proc/{pid}/cmdline", "rb").read().split(b"\\0")
        state = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0]
    except OSError:
        continue
    if b"dgdr_job.main.child" in words:
        os.kill(int(pid), getattr(signal, sys.argv[1]))
        print(pid, state)
"""


@dataclass(frozen=True)
class Held:
    """A search whose engine does not move."""

    team: Team
    pod: str

    def signal(self, name: str) -> str:
        """Send a signal to the engine; return its process id and state before, empty when there is no engine."""
        command = ("exec", self.pod, "-n", self.team.namespace, "-c", "sweeper", "--", "python", "-c", _FIND, name)
        return self.team.kubectl(*command, check=False).stdout.strip()

    def release(self) -> None:
        """Let the engine go on."""
        assert self.signal("SIGCONT"), "the engine has gone"

    def kill(self) -> None:
        """Kill the engine as the kernel does when memory is short."""
        assert self.signal("SIGKILL"), "the engine has gone"


def hold(team: Team, name: str, generation: int = 1) -> Held:
    """Stop the engine of a search that has just begun.

    Raises:
        AssertionError: there is no engine to stop, or the search ended before it could be stopped.
    """

    def running() -> str | None:
        for pod in reversed(team.pods(name, generation)):
            for container in pod.get("status", {}).get("containerStatuses", ()):
                if "running" in container["state"] and "deletionTimestamp" not in pod["metadata"]:
                    return str(pod["metadata"]["name"])
        return None

    held = Held(team, eventually(running, f"a pod that searches for {name}"))
    eventually(lambda: held.signal("SIGSTOP") or None, "an engine to hold")
    eventually(lambda: held.signal("SIGSTOP").endswith(("T", "t")) or None, "the engine stands still")
    assert "outcome" not in team.status(name, generation), "the search ended before it could be held"
    return held
