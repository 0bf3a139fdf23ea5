"""The network of the pods: one bridge with the node's address, and what Kubernetes adds to the packet filter.

The bridge stands before the API server starts, since the API server announces the bridge's address to the pods.
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path

from tests.controlplane.node import layout
from tests.controlplane.node.command import run
from tests.controlplane.node.errors import CommandError

CONFLIST = {
    "cniVersion": "0.4.0",
    "name": layout.NODE,
    "plugins": [
        {
            "type": "bridge",
            "bridge": layout.BRIDGE,
            "isGateway": True,
            "ipam": {
                "type": "host-local",
                "ranges": [[{"subnet": layout.POD_CIDR}]],
                "routes": [{"dst": "0.0.0.0/0"}],
                "dataDir": str(layout.CNI / "addresses"),
            },
        }
    ],
}
"""CNI configuration. No masquerading: pods reach each other and the API server, and have no way out."""

_TABLES = ("iptables", "ip6tables")
_CHAIN = re.compile(r"^:(KUBE-\S+)")
RESULTS = Path("/var/lib/cni/results")
"""Where containerd's CNI library keeps what it configured; the place cannot be chosen."""


def write_cni_configuration() -> None:
    """Write what containerd reads to connect a pod."""
    directory = layout.CNI / "net.d"
    directory.mkdir(parents=True)
    (directory / "10-bridge.conflist").write_text(json.dumps(CONFLIST), "utf-8")


def create_bridge() -> None:
    """Make the bridge and give it the node's address."""
    prefix = layout.POD_CIDR.partition("/")[2]
    run("ip", "link", "add", layout.BRIDGE, "type", "bridge")
    run("ip", "address", "add", f"{layout.ADDRESS}/{prefix}", "dev", layout.BRIDGE)
    run("ip", "link", "set", layout.BRIDGE, "up")


def remove_bridge() -> None:
    """Remove the bridge when it is there; the pods' ends go with their network namespaces."""
    if Path(f"/sys/class/net/{layout.BRIDGE}").exists():
        run("ip", "link", "delete", layout.BRIDGE)


def remove_rules() -> None:
    """Remove the chains of kube-proxy and kubelet, and the rules that lead to them; others' rules stay."""
    for program in _TABLES:
        try:
            saved = run(f"{program}-save")
        except CommandError:  # a kernel without IPv6 has no such tables
            if program == "iptables":
                raise
            continue
        if script := removal(saved):
            run(f"{program}-restore", "--noflush", "--wait", input=script)


def removal(saved: str) -> str:
    """Return the input of ``iptables-restore --noflush`` that removes Kubernetes' chains from an ``iptables-save``."""
    script: list[str] = []
    for table in re.split(r"^(?=\*)", saved, flags=re.MULTILINE):
        lines = table.splitlines()
        chains = [found.group(1) for line in lines if (found := _CHAIN.match(line))]
        if chains:
            script += [lines[0], *_removal(lines, chains), "COMMIT"]
    return "".join(f"{line}\n" for line in script)


def _removal(lines: Sequence[str], chains: Sequence[str]) -> list[str]:
    """Return the lines of one table: cut the ways in, empty every chain, then delete them."""
    jump = re.compile(rf"^-A (?!KUBE-).* -[jg] ({'|'.join(map(re.escape, chains))})( |$)")
    ways_in = [f"-D{line.removeprefix('-A')}" for line in lines if jump.match(line)]
    return [*ways_in, *(f":{chain} - [0:0]" for chain in chains), *(f"-X {chain}" for chain in chains)]


def remove_results(sandboxes: Sequence[str]) -> None:
    """Remove what the CNI library kept of pod sandboxes that were never disconnected."""
    for sandbox in sandboxes:
        for result in RESULTS.glob(f"*-{sandbox}-*"):
            result.unlink(missing_ok=True)
