"""The programs that make a control plane into a cluster: kubelet, kube-proxy, controllers and scheduler.

Their ports are off where they may be. The kubelet needs one, which the API server dials for logs and exec.
"""

import json
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.controlplane.node import layout
from tests.controlplane.node.packages import search_path
from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import Process

BINARIES = ("kube-controller-manager", "kube-scheduler", "kube-proxy", "kubelet")
"""What runs beside the control plane, by the names of ``build.MODULES``."""

_KUBELET_PORTS = range(10250, 10350)
"""Where the kubelet's port is looked for: below the ports that the kernel gives away on its own."""


def kubelet_client_arguments(authority: Path) -> list[str]:
    """Return the flags by which the API server reaches the kubelet, given the directory of the certificates."""
    return [
        f"--kubelet-client-certificate={authority / 'admin.crt'}",
        f"--kubelet-client-key={authority / 'admin.key'}",
        "--kubelet-preferred-address-types=InternalIP",
    ]


def describe(binaries: Mapping[str, Path], plane: ControlPlane) -> list[Process]:
    """Write their configuration and describe the processes, in the order in which they start."""
    arguments = {
        "kube-controller-manager": _controller_manager(plane),
        "kube-scheduler": _scheduler(plane),
        "kube-proxy": _proxy(plane),
        "kubelet": _kubelet(plane),
    }
    # With the search path of an administrator: kubelet and kube-proxy look for mount, iptables and conntrack.
    env = ["/usr/bin/env", f"PATH={search_path()}"]
    return [
        Process(name, [*env, str(binaries[name]), *arguments[name]], layout.LOGS / f"{name}.log") for name in BINARIES
    ]


def _controller_manager(plane: ControlPlane) -> list[str]:
    return [
        f"--kubeconfig={plane.write_kubeconfig('controller-manager', 'system:kube-controller-manager')}",
        f"--service-account-private-key-file={plane.directory / 'service-account.key'}",
        f"--root-ca-file={plane.directory / 'ca.crt'}",
        "--use-service-account-credentials",
        "--leader-elect=false",
        "--secure-port=0",
        f"--flex-volume-plugin-dir={layout.KUBELET / 'plugins-exec'}",
    ]


def _scheduler(plane: ControlPlane) -> list[str]:
    kubeconfig = plane.write_kubeconfig("scheduler", "system:kube-scheduler")
    return [f"--kubeconfig={kubeconfig}", "--leader-elect=false", "--secure-port=0"]


def _proxy(plane: ControlPlane) -> list[str]:
    return [
        f"--kubeconfig={plane.write_kubeconfig('proxy', 'system:kube-proxy')}",
        f"--hostname-override={layout.NODE}",
        "--proxy-mode=iptables",
        f"--cluster-cidr={layout.POD_CIDR}",
        "--masquerade-all",  # answers of a pod on the same bridge come back through the node on every kernel
        "--iptables-localhost-nodeports=false",
        "--conntrack-max-per-core=0",  # these settings are the machine's
        "--conntrack-tcp-timeout-established=0s",
        "--conntrack-tcp-timeout-close-wait=0s",
        "--oom-score-adj=0",
        "--healthz-bind-address=",
        "--metrics-bind-address=",
    ]


def _kubelet(plane: ControlPlane) -> list[str]:
    layout.KUBELET.mkdir()
    configuration = layout.KUBELET / "config.json"
    configuration.write_text(json.dumps(kubelet_configuration(plane.directory / "ca.crt", _free_port())), "utf-8")
    user = f"system:node:{layout.NODE}"
    return [
        f"--config={configuration}",
        f"--kubeconfig={plane.write_kubeconfig('kubelet', user, ['system:nodes'])}",
        f"--hostname-override={layout.NODE}",
        f"--root-dir={layout.KUBELET}",
        f"--cert-dir={layout.KUBELET / 'pki'}",
        f"--node-ip={layout.ADDRESS}",
    ]


def kubelet_configuration(authority: Path, port: int) -> dict[str, Any]:
    """Return the kubelet's configuration, given the certificate that signs its clients' ones and its port."""
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "containerRuntimeEndpoint": f"unix://{layout.CONTAINERD_SOCKET}",
        "cgroupDriver": "cgroupfs",
        "failCgroupV1": False,
        "failSwapOn": False,
        "address": "0.0.0.0",  # noqa: S104 - the API server dials the bridge's address
        "port": port,
        "readOnlyPort": 0,
        "healthzPort": 0,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": False},
            "x509": {"clientCAFile": str(authority)},
        },
        "authorization": {"mode": "AlwaysAllow"},  # whoever has a client certificate of this authority: the API server
        "clusterDNS": [layout.DNS_ADDRESS],
        "clusterDomain": "cluster.local",
        "podLogsDir": str(layout.LOGS / "pods"),
        "volumePluginDir": str(layout.KUBELET / "plugins-exec"),
        # A node of a machine whose disk is in use by others: it evicts nothing and removes no image.
        "evictionHard": {"memory.available": "0%", "nodefs.available": "0%", "imagefs.available": "0%"},
        "imageGCHighThresholdPercent": 100,
        "localStorageCapacityIsolation": False,
        "enforceNodeAllocatable": [],
        "makeIPTablesUtilChains": False,
        "oomScoreAdj": 0,
    }


def _free_port() -> int:
    for port in _KUBELET_PORTS:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as candidate:
            candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                candidate.bind(("", port))
            except OSError:
                continue
            return port
    raise OSError(f"no free port among {_KUBELET_PORTS}")
