"""The pause image is what ``docker save`` would write."""

import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import IO

from tests.controlplane.node import layout
from tests.controlplane.node.pause import archive


def _content(tar: tarfile.TarFile, name: str) -> bytes:
    file: IO[bytes] | None = tar.extractfile(name)
    assert file is not None
    return file.read()


def test_the_image_holds_the_program_and_starts_it(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(b"\x7fELF")
    with tarfile.open(archive(program, tmp_path / "image.tar")) as tar:
        (image,) = json.loads(_content(tar, "manifest.json"))
        configuration = json.loads(_content(tar, image["Config"]))
        layer = _content(tar, image["Layers"][0])
    assert image["RepoTags"] == [layout.PAUSE_IMAGE]
    assert configuration["config"]["Entrypoint"] == ["/pause"]
    assert configuration["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(layer).hexdigest()}"]
    with tarfile.open(fileobj=io.BytesIO(layer)) as files:
        assert files.getmember("pause").mode == 0o755
        assert _content(files, "pause") == b"\x7fELF"
