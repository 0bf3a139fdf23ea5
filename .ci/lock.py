"""The lock: one file with hashes and without addresses, made from pyproject.toml.

--check fails when it is not current, --write makes it anew, --only NAME prints the entry of one package.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
LOCK = ROOT / "requirements.lock"
UV = Path(sys.executable).parent / "uv"


def main() -> int:
    """Run the command line of this file."""
    parser = argparse.ArgumentParser(description=__doc__)
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--check", action="store_true")
    action.add_argument("--write", action="store_true")
    action.add_argument("--only", metavar="NAME")
    arguments = parser.parse_args()
    if arguments.only:
        sys.stdout.write(entry(LOCK.read_text(), arguments.only))
        return 0
    if arguments.write:
        resolve(LOCK)
        return 0
    return check()


def entry(lock: str, name: str) -> str:
    """The lines of one package: its version and its hashes."""
    found = re.search(rf"^{re.escape(name)}==.*(?:\n    --hash.*)*\n", lock, re.MULTILINE)
    if not found:
        raise SystemExit(f"{name} is not in {LOCK.name}: make lock")
    return found[0]


def resolve(target: Path) -> None:
    """Write the lock; versions already in it stay where pyproject.toml allows them."""
    command = [str(UV), "pip", "compile", "--quiet", "pyproject.toml", "--all-extras", "--universal"]
    options = ["--python-version", "3.11", "--generate-hashes", "--no-annotate", "--no-header", "-o", str(target)]
    subprocess.run([*command, *options], cwd=ROOT, check=True)  # noqa: S603 - fixed words, no input


def check() -> int:
    """Whether resolving anew, with what is locked preferred, gives the same file."""
    with tempfile.TemporaryDirectory() as folder:
        again = Path(folder, LOCK.name)
        again.write_text(LOCK.read_text())
        resolve(again)
        if again.read_text() == LOCK.read_text():
            return 0
    sys.stderr.write("requirements.lock does not belong to pyproject.toml: make lock\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
