"""A real control plane on this machine: etcd and kube-apiserver, ready in about five seconds.

Nothing is mocked: server-side apply, CEL rules, the status subresource, RBAC and PodSecurity admission answer as in
production. There are no controllers and no node, so nothing reconciles: a deleted namespace stays ``Terminating``, a
Job gets no pod. The folder ``node`` adds both, from the same parts: ``Process``, ``Authority``, ``write_kubeconfig``
for each component's identity, and ``hosts`` and ``apiserver_arguments`` below.
"""

import base64
import http.client
import json
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.controlplane.certificates import Authority, Credential, signing_key
from tests.controlplane.directory import scratch_directory
from tests.controlplane.process import Process

BINARIES = ("etcd", "kube-apiserver")
"""What ``start_control_plane`` runs, by the names of ``build.MODULES``."""

DIRECTORY_PREFIX = "dgdr-controlplane-"
SERVICE_CIDR = "10.96.0.0/16"
SERVICE_HOST = "10.96.0.1"

_LOOPBACK = "127.0.0.1"
_NO_POD_DIALS = "192.0.2.1"
"""Address of the ``kubernetes`` endpoint without a node (RFC 5737): a machine without a default route has no other."""

_ETCD_DEADLINE_S = 30.0
_APISERVER_DEADLINE_S = 90.0
_REQUEST_TIMEOUT_S = 5.0


@dataclass(frozen=True)
class ControlPlane:
    """A running etcd and kube-apiserver. Tests of faults kill and start its processes; the ports stay the same.

    For instance ``plane.apiserver.kill()``, then ``plane.apiserver.start()`` and ``plane.wait_until_ready()``.
    """

    directory: Path
    url: str
    kubeconfig: Path
    authority: Authority
    etcd: Process
    apiserver: Process

    def write_kubeconfig(self, name: str, user: str, groups: Sequence[str] = ()) -> Path:
        """Write ``<name>.kubeconfig`` for a user with groups and return its path; without RBAC it may do nothing."""
        path = self.directory / f"{name}.kubeconfig"
        path.write_text(_kubeconfig(self.url, self.authority, self.authority.client(user, groups)), "utf-8")
        return path

    def wait_until_ready(self) -> None:
        """Wait until the API server serves requests.

        Raises:
            StartError: it ended, or the deadline passed; the message carries its last log lines.
        """
        self.apiserver.wait_until(self._missing, _APISERVER_DEADLINE_S)

    def get(self, path: str, url: str | None = None) -> tuple[int, bytes]:
        """GET a path as administrator and return status and body.

        Args:
            path: such as ``/readyz``.
            url: another address of the same API server, such as the one that pods use.

        Raises:
            OSError, http.client.HTTPException: there is no answer.
        """
        context = ssl.create_default_context(cadata=self.authority.certificate.decode())
        context.load_cert_chain(self.directory / "admin.crt", self.directory / "admin.key")
        return _get(url or self.url, path, context)

    def _missing(self) -> str | None:
        # The namespace "default" appears a moment after /readyz: a loop makes it, no start hook waits for it.
        for path in ("/readyz", "/api/v1/namespaces/default"):
            if (missing := not_ok(partial(self.get, path), f"{self.url}{path}")) is not None:
                return missing
        return None


@contextmanager
def start_control_plane(
    binaries: Mapping[str, Path],
    *,
    hosts: Sequence[str] = (),
    apiserver_arguments: Sequence[str] = (),
    directory: Path | None = None,
) -> Iterator[ControlPlane]:
    """Run etcd and kube-apiserver; at the end every process has gone, and so has a directory of our own.

    Args:
        binaries: path of each of ``BINARIES``.
        hosts: names and addresses that the server certificate covers beside the usual ones.
        apiserver_arguments: further flags of kube-apiserver; a flag given here wins over the one given below.
        directory: an existing empty directory for data, keys and logs, which the caller removes; else one is made.

    Raises:
        StartError: a process ended, or was not ready in time; the message carries its last log lines.
    """
    with ExitStack() as stack:
        home = scratch_directory(DIRECTORY_PREFIX) if directory is None else nullcontext(directory)
        directory = stack.enter_context(home)
        client, peer, secure = (stack.enter_context(_reserved_port()) for _ in range(3))
        plane = _describe(binaries, directory, (client, peer, secure), hosts, apiserver_arguments)
        for process in (plane.etcd, plane.apiserver):
            stack.callback(process.stop)
        plane.etcd.start()
        etcd = f"http://{_LOOPBACK}:{client}"
        plane.etcd.wait_until(lambda: not_ok(lambda: _get(etcd, "/readyz"), f"{etcd}/readyz"), _ETCD_DEADLINE_S)
        plane.apiserver.start()
        plane.wait_until_ready()
        yield plane


def _describe(
    binaries: Mapping[str, Path],
    directory: Path,
    ports: tuple[int, int, int],
    hosts: Sequence[str],
    apiserver_arguments: Sequence[str],
) -> ControlPlane:
    """Write certificates and kubeconfig, and describe both processes; nothing runs yet."""
    client, peer, secure = ports
    authority = Authority()
    admin = authority.client("dgdr-test-admin", ["system:masters"])
    _write_keys(directory, authority, admin, hosts)
    url = f"https://{_LOOPBACK}:{secure}"
    kubeconfig = directory / "kubeconfig"
    kubeconfig.write_text(_kubeconfig(url, authority, admin), "utf-8")
    etcd = _etcd_arguments(directory, client, peer)
    apiserver = [*_apiserver_arguments(directory, client, secure), *apiserver_arguments]
    return ControlPlane(
        directory=directory,
        url=url,
        kubeconfig=kubeconfig,
        authority=authority,
        etcd=Process("etcd", [str(binaries["etcd"]), *etcd], directory / "etcd.log"),
        apiserver=Process(
            "kube-apiserver", [str(binaries["kube-apiserver"]), *apiserver], directory / "kube-apiserver.log"
        ),
    )


def _write_keys(directory: Path, authority: Authority, admin: Credential, hosts: Sequence[str]) -> None:
    names = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", _LOOPBACK, SERVICE_HOST)
    server = authority.server("kube-apiserver", [*names, *hosts])
    tokens = signing_key()
    contents = {
        "ca.crt": authority.certificate,
        "apiserver.crt": server.certificate,
        "apiserver.key": server.key,
        "admin.crt": admin.certificate,
        "admin.key": admin.key,
        "service-account.key": tokens.private,
        "service-account.pub": tokens.public,
    }
    for name, content in contents.items():
        (directory / name).write_bytes(content)


def _etcd_arguments(directory: Path, client: int, peer: int) -> list[str]:
    client_url, peer_url = f"http://{_LOOPBACK}:{client}", f"http://{_LOOPBACK}:{peer}"
    return [
        "--name=test",
        f"--data-dir={directory / 'etcd'}",
        "--unsafe-no-fsync",  # the data need not outlive the machine
        f"--listen-client-urls={client_url}",
        f"--advertise-client-urls={client_url}",
        f"--listen-peer-urls={peer_url}",
        f"--initial-advertise-peer-urls={peer_url}",
        f"--initial-cluster=test={peer_url}",
        "--socket-reuse-port",  # see _reserved_port
    ]


def _apiserver_arguments(directory: Path, etcd: int, secure: int) -> list[str]:
    return [
        f"--etcd-servers=http://{_LOOPBACK}:{etcd}",
        f"--bind-address={_LOOPBACK}",
        f"--advertise-address={_NO_POD_DIALS}",
        f"--secure-port={secure}",
        "--permit-port-sharing",  # see _reserved_port
        f"--tls-cert-file={directory / 'apiserver.crt'}",
        f"--tls-private-key-file={directory / 'apiserver.key'}",
        f"--client-ca-file={directory / 'ca.crt'}",
        f"--service-account-key-file={directory / 'service-account.pub'}",
        f"--service-account-signing-key-file={directory / 'service-account.key'}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-cluster-ip-range={SERVICE_CIDR}",
        "--authorization-mode=Node,RBAC",
        "--allow-privileged=true",
    ]


def _kubeconfig(url: str, authority: Authority, credential: Credential) -> str:
    """Return a kubeconfig with everything inside, as JSON (which is YAML): the file can be copied anywhere."""

    def encoded(pem: bytes) -> str:
        return base64.b64encode(pem).decode()

    cluster = {"server": url, "certificate-authority-data": encoded(authority.certificate)}
    user = {
        "client-certificate-data": encoded(credential.certificate),
        "client-key-data": encoded(credential.key),
    }
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": cluster}],
        "users": [{"name": "test", "user": user}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "current-context": "test",
    }
    return json.dumps(content, indent=2)


@contextmanager
def _reserved_port() -> Iterator[int]:
    """Hold a free TCP port, so that nobody else gets it before or between our server's starts.

    The socket is bound, not listening, with SO_REUSEPORT: only a server of the same user that asks for port sharing
    can listen there, and the kernel gives the port to nobody who asks for any free one.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        holder.bind((_LOOPBACK, 0))
        yield holder.getsockname()[1]


def not_ok(get: Callable[[], tuple[int, bytes]], asked: str) -> str | None:
    """Return None when a GET answers 200, else what came instead."""
    try:
        status, body = get()
    except (OSError, http.client.HTTPException) as error:
        return f"GET {asked}: {error}"
    return None if status == http.client.OK else f"GET {asked}: {status} {body.decode('utf-8', 'replace').strip()}"


def _get(url: str, path: str, context: ssl.SSLContext | None = None) -> tuple[int, bytes]:
    scheme, host = url.split("://")
    connection = (
        http.client.HTTPConnection(host, timeout=_REQUEST_TIMEOUT_S)
        if scheme == "http"
        else http.client.HTTPSConnection(host, timeout=_REQUEST_TIMEOUT_S, context=context)
    )
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()
