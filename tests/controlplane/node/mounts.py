"""What is mounted below a directory, and its end: before a directory goes, nothing else may hang in it."""

from pathlib import Path

from tests.controlplane.node.command import run


def unmount_below(directory: Path) -> list[str]:
    """Unmount what is mounted at or below a directory and return what that was.

    Raises:
        CommandError: ``umount`` ended with an error.
    """
    found = mount_points(Path("/proc/self/mountinfo").read_text("utf-8"), directory)
    if found:
        run("umount", "--lazy", *found)
    return found


def mount_points(mountinfo: str, directory: Path) -> list[str]:
    """Return the mount points at or below a directory, the latest first, from the text of ``mountinfo``."""
    points = [line.split()[4].encode().decode("unicode_escape") for line in mountinfo.splitlines()]
    return [point for point in reversed(points) if Path(point).is_relative_to(directory)]
