"""Where the node keeps its things, and the addresses it uses: everything by which it is told from others' is here.

One directory holds data, sockets, mounts and logs, so that what an aborted run left is found by its path alone:
processes whose arguments name it, mounts below it, containers whose root file system lies in it.
"""

from pathlib import Path

NODE = "dgdr-node"
"""Name of the node, of its CNI network and of its control socket."""

ROOT = Path("/var/lib/dgdr-node")
"""Everything of a running node. Not below the work tree, and short: paths of sockets have 107 characters at most."""

CONTROL_PLANE = ROOT / "plane"
CONTAINERD = ROOT / "containerd"
CONTAINERD_SOCKET = ROOT / "containerd.sock"
CONTAINERD_ROOT = CONTAINERD / "root"
CONTAINERD_STATE = CONTAINERD / "state"
CNI = ROOT / "cni"
KUBELET = ROOT / "kubelet"
LOGS = ROOT / "logs"
SYSCTLS = ROOT / "sysctls.json"
KUBECONFIG = ROOT / "kubeconfig"

BRIDGE = "dgdr0"
ADDRESS = "10.244.0.1"
"""The bridge's address: the node's, and the one by which pods reach the API server behind its service."""
POD_CIDR = "10.244.0.0/24"
DNS_ADDRESS = "10.96.0.10"
"""What pods get as name server. Nothing answers there: clients find services by their environment."""

PAUSE_IMAGE = "dgdr.test/pause:1"
