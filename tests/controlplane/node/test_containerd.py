"""containerd's configuration is TOML that keeps it in the node's directory."""

import tomllib

from tests.controlplane.node import layout
from tests.controlplane.node.containerd import configuration


def test_everything_lies_in_the_directory_of_the_node() -> None:
    settings = tomllib.loads(configuration())
    paths = [settings["root"], settings["state"], settings["grpc"]["address"]]
    assert all(path.startswith(f"{layout.ROOT}/") for path in paths)
    cri = settings["plugins"]["io.containerd.grpc.v1.cri"]
    assert cri["sandbox_image"] == layout.PAUSE_IMAGE
    assert cri["containerd"]["runtimes"]["runc"]["options"]["Root"].startswith(f"{layout.ROOT}/")


def test_a_socket_path_fits_into_the_kernels_structure() -> None:
    assert len(f"{layout.CONTAINERD_SOCKET}.ttrpc") < 108
