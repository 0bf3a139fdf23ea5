"""The image that holds a pod's namespaces: one static program, packed without any builder."""

import hashlib
import io
import json
import platform
import tarfile
from pathlib import Path
from typing import Any

from tests.controlplane.node import layout

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def archive(program: Path, path: Path) -> Path:
    """Write the image as ``docker save`` would and return its path.

    Args:
        program: a static executable; it becomes ``/pause``.
        path: the file to write.
    """
    layer = _tar({"pause": program.read_bytes()})
    machine = platform.machine()
    configuration = {
        "architecture": _ARCHITECTURES.get(machine, machine),
        "os": "linux",
        "config": {"Entrypoint": ["/pause"], "User": "65535:65535"},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
    }
    manifest = [{"Config": "config.json", "RepoTags": [layout.PAUSE_IMAGE], "Layers": ["layer.tar"]}]
    files = {"layer.tar": layer, "config.json": _json(configuration), "manifest.json": _json(manifest)}
    path.write_bytes(_tar(files))
    return path


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


def _tar(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            member.mode = 0o755
            tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()
