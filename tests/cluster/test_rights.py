"""What each service account may not do is refused by the API server: asked as that account."""

import json

from tests.cluster.conftest import LARGE
from tests.cluster.engine import hold
from tests.cluster.install import SYSTEM, Installation
from tests.cluster.team import Team, document

NAME = LARGE[0]
REQUESTS, RUNS = "dynamographdeploymentrequests.sweeper.dgdr.dev", "dynamographdeploymentruns.sweeper.dgdr.dev"
CANDIDATES = "dynamographdeploymentcandidates.sweeper.dgdr.dev"
DGDS = "dynamographdeployments.nvidia.com"

FORBIDDEN_TO_A_PUBLISHER = [
    ("get", "secrets"),
    ("list", "secrets"),
    ("create", "pods"),
    ("create", "pods/exec"),
    ("create", "jobs.batch"),
    ("delete", "jobs.batch"),
    ("create", "serviceaccounts"),
    ("create", "serviceaccounts/token"),
    ("create", "rolebindings.rbac.authorization.k8s.io"),
    ("patch", REQUESTS),
    ("delete", REQUESTS),
    ("create", RUNS),
    ("delete", RUNS),
    ("update", RUNS),
    ("update", CANDIDATES),
    ("create", DGDS),
    ("patch", DGDS),
]
FORBIDDEN_TO_THE_OPERATOR = [
    ("get", "secrets"),
    ("list", "secrets"),
    ("create", "pods"),
    ("create", "pods/exec"),
    ("get", "pods/log"),
    ("create", REQUESTS),
    ("update", REQUESTS),
    ("patch", REQUESTS),
    ("delete", REQUESTS),
    ("create", CANDIDATES),
    ("create", DGDS),
    ("patch", DGDS),
    ("delete", DGDS),
    ("create", "clusterrolebindings.rbac.authorization.k8s.io"),
    ("update", "clusterroles.rbac.authorization.k8s.io"),
    ("escalate", "clusterroles.rbac.authorization.k8s.io"),
    ("create", "serviceaccounts/token"),
    ("impersonate", "serviceaccounts"),
    ("get", "nodes"),
]


def may(installation: Installation, account: str, namespace: str, verb: str, resource: str) -> bool:
    """Whether an account may do something in a namespace, by the server's own word."""
    resource, _, subresource = resource.partition("/")
    arguments = ["auth", "can-i", verb, resource, "-n", namespace, f"--as=system:serviceaccount:{account}"]
    done = installation.kubectl(*arguments, *([f"--subresource={subresource}"] if subresource else []), check=False)
    assert done.stdout.strip() in {"yes", "no"}, done.stderr
    return done.stdout.strip() == "yes"


def test_the_operator_may_not(installation: Installation, team: Team) -> None:
    account = f"{SYSTEM}:dgdr-operator"

    assert may(installation, account, team.namespace, "list", REQUESTS)
    allowed = [pair for pair in FORBIDDEN_TO_THE_OPERATOR if may(installation, account, team.namespace, *pair)]
    assert allowed == []


def test_the_publisher_of_a_run_may_not(installation: Installation, team: Team) -> None:
    team.apply(document(*LARGE))
    held = hold(team, NAME)
    run = team.run(NAME)["metadata"]["name"]
    account = f"{team.namespace}:{run}"

    assert may(installation, account, team.namespace, "create", CANDIDATES)
    assert [pair for pair in FORBIDDEN_TO_A_PUBLISHER if may(installation, account, team.namespace, *pair)] == []
    assert not may(installation, account, SYSTEM, "list", "configmaps")
    assert not may(installation, account, "default", "create", CANDIDATES)
    denied = installation.kubectl(
        "get", "secrets", "-n", team.namespace, f"--as=system:serviceaccount:{account}", check=False
    )
    assert denied.returncode != 0
    assert "is forbidden" in denied.stderr
    held.release()


def test_the_sweeper_has_no_token_and_no_connection(team: Team) -> None:
    """It shares the pod's network with the publisher, so its own open files are compared with the kernel's tables."""
    look = """
import json, os
inodes = set()
for name in ("tcp", "tcp6", "udp", "udp6"):
    with open(f"/proc/net/{name}") as table:
        inodes |= {line.split()[9] for line in list(table)[1:]}
held = []
for pid in filter(str.isdecimal, os.listdir("/proc")):
    try:
        files = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
    except OSError:
        continue
    held += [file for file in files if file.startswith("socket:[") and file[8:-1] in inodes]
writable = [path for path in ("/", "/opt/venv", "/usr", "/etc") if os.access(path, os.W_OK)]
print(json.dumps({"token": os.path.exists("/var/run/secrets/kubernetes.io"), "sockets": held, "uid": os.getuid(),
                  "writable": writable}))
"""
    team.apply(document(*LARGE))
    held = hold(team, NAME)
    arguments = ("exec", held.pod, "-n", team.namespace, "-c", "sweeper", "--", "python", "-c", look)
    found = json.loads(team.kubectl(*arguments).stdout)

    assert found == {"token": False, "sockets": [], "uid": 65532, "writable": []}
    held.release()


def test_a_namespaced_operator_sees_its_own_namespaces_alone(installation: Installation, team: Team) -> None:
    installation.upgrade(f"--set=namespaces={{{team.namespace}}}")
    try:
        team.apply(document(NAME))
        assert team.end(NAME)["status"]["phase"] == "Succeeded"
        account = f"{SYSTEM}:dgdr-operator"
        assert may(installation, account, team.namespace, "list", REQUESTS)
        assert not may(installation, account, "kube-system", "list", REQUESTS)
        assert not may(installation, account, SYSTEM, "create", "jobs.batch")
    finally:
        installation.upgrade()
