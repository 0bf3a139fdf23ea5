"""How the two programs of a search Job are called, and where they find things: the one place that knows.

The programs take these arguments, and nothing else is agreed between the operator and them.
"""

from dgdr_api.group import GROUP

SWEEPER, PUBLISHER = "sweeper", "publisher"
"""Names of the containers."""

WORKSPACE = "/workspace"
"""Shared by both: journal, caches, socket."""
SOCKET = f"{WORKSPACE}/publisher.sock"
"""The publisher listens here; the startup probe waits for it."""
RUN_FILE = "/etc/dgdr/run.json"
"""The run without its status, canonical JSON."""
RUN_ANNOTATION = f"{GROUP}/run-object"
"""On the pod: the content of the run file."""
CLAIMS = "/mnt/claims"
"""Each claim that the request names is mounted read-only at ``<CLAIMS>/<name of the claim>``."""
CONFIG_MAPS = "/mnt/config-maps"
"""Each ConfigMap that the request names, at ``<CONFIG_MAPS>/<name>``."""
ATTEMPT = "$(POD_UID)"
"""The kubelet puts the pod's uid in its place."""

NEVER_RETRY_EXIT_CODE = 4
"""The sweeper's own failure: the Job fails at once, with exactly one pod."""


def sweeper_command() -> list[str]:
    """Program and arguments of the search."""
    return [
        "dgdr-sweeper", "--run", RUN_FILE, "--workspace", WORKSPACE, "--attempt", ATTEMPT,
        "--claims", CLAIMS, "--config-maps", CONFIG_MAPS,
    ]  # fmt: skip


def publisher_command(namespace: str, run_name: str) -> list[str]:
    """Program and arguments of the sidecar."""
    return [
        "dgdr-publisher", "--run-name", run_name, "--namespace", namespace, "--workspace", WORKSPACE,
        "--attempt", ATTEMPT,
    ]  # fmt: skip


def socket_is_there() -> list[str]:
    """Command of the startup probe: no Python start every second."""
    return ["test", "-S", SOCKET]
