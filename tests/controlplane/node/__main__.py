"""``python -m tests.controlplane.node up|down|status``: a single-node Kubernetes on this machine, as root.

``up`` prints the path of its kubeconfig, also when the node runs already; its logs are beside it. ``down`` leaves
nothing behind, whatever state the node is in. ``status`` ends with 1 when there is no node.
"""

import argparse
import sys
import time

from tests.controlplane.build import ControlPlaneError
from tests.controlplane.node import machine


def main() -> int:
    """Do what the command line asks and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.controlplane.node", description=__doc__)
    parser.add_argument("order", choices=["up", "down", "status"])
    order = parser.parse_args().order
    started = time.monotonic()

    def report(line: str) -> None:
        sys.stderr.write(f"[node {time.monotonic() - started:5.1f} s] {line}\n")
        sys.stderr.flush()

    try:
        if order == "down":
            machine.down(report)
            report("down")
            return 0
        state = machine.up(report) if order == "up" else machine.status()
    except ControlPlaneError as error:
        report(str(error))
        return 1
    except KeyboardInterrupt:
        report("interrupted")
        return 130
    if state is None:
        report("there is no node")
        return 1
    for name, pid in state.pids.items():
        report(f"{name}: {'ended' if pid is None else f'pid {pid}'}")
    sys.stdout.write(f"{state.kubeconfig}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
