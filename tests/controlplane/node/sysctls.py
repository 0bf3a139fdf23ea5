"""The kernel settings that kubelet and kube-proxy change, put back at the end.

They belong to the machine, not to the node: the values from before are kept in the node's directory, so that the next
run puts them back when this one was killed.
"""

import json
from pathlib import Path

from tests.controlplane.node import layout

CHANGED = (
    "kernel/keys/root_maxbytes",
    "kernel/keys/root_maxkeys",
    "kernel/panic",
    "kernel/panic_on_oops",
    "net/ipv4/ip_forward",
    "vm/overcommit_memory",
    "vm/panic_on_oom",
)
_SYS = Path("/proc/sys")


def save() -> None:
    """Keep the values, then turn on what pods need: forwarding between them and the service addresses."""
    values = {name: (_SYS / name).read_text("utf-8").strip() for name in CHANGED if (_SYS / name).exists()}
    layout.SYSCTLS.write_text(json.dumps(values), "utf-8")
    (_SYS / "net/ipv4/ip_forward").write_text("1", "utf-8")


def restore() -> None:
    """Put the kept values back; nothing happens when none are kept."""
    if not layout.SYSCTLS.exists():
        return
    for name, value in json.loads(layout.SYSCTLS.read_text("utf-8")).items():
        if (_SYS / name).read_text("utf-8").strip() != value:
            (_SYS / name).write_text(value, "utf-8")
