"""The directory of a search's results: nothing in it is replaced unless asked, nothing foreign ever."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from dgdr_cli.documents import read_mapping
from dgdr_cli.exits import WRONG_INPUT, fail

if TYPE_CHECKING:
    from dgdr_cli.requests import Admitted

RESULTS = ("run.yaml", "dgd.yaml", "dgd.mapping.yaml", "points.parquet", "events.ndjson")
CANDIDATES = "candidates"


def prepare(out: Path, asked: "Admitted", *, resume: bool, force: bool) -> None:
    """Make room for the results, or end with exit 2.

    Args:
        out: the directory; it may be absent.
        asked: the request that is about to be searched.
        resume: go on where the directory holds results of the same request.
        force: replace results of an earlier search.
    """
    if not out.exists():
        return
    if not out.is_dir():
        fail(WRONG_INPUT, f"--out {out}: is a file; name a directory")
    content = sorted(entry.name for entry in out.iterdir())
    if not content:
        return
    if resume:
        _check_same_request(out, asked)
    elif not force:
        shown = ", ".join(content[:4]) + (", …" if len(content) > 4 else "")  # noqa: PLR2004 - as many as fit a line
        fail(
            WRONG_INPUT,
            f"--out {out}: is not empty ({shown}); name another directory, or add --force to replace the results of an "
            "earlier search, or --resume to go on with the same request",
        )
    _remove_results(out)


def _check_same_request(out: Path, asked: "Admitted") -> None:
    from dgdr_api.group import ANNOTATION_INPUT_HASH
    from dgdr_api.identity import input_hash

    path = out / "run.yaml"
    if not path.is_file():
        fail(WRONG_INPUT, f"--resume: {path} is missing; {out} holds no search to go on with")
    run: Any = read_mapping(path)
    metadata = run.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    found = annotations.get(ANNOTATION_INPUT_HASH) if isinstance(annotations, dict) else None
    wanted = input_hash(asked.spec)
    if found != wanted:
        fail(
            WRONG_INPUT,
            f"--resume: {path} is of another request (input hash {found}, this one has {wanted}); "
            "name another directory, or --force to replace it",
        )


def _remove_results(out: Path) -> None:
    """Remove what a search writes. What it evaluated before is in the disk cache and is not computed again."""
    for name in RESULTS:
        (out / name).unlink(missing_ok=True)
    candidates = out / CANDIDATES
    if candidates.is_dir() and not candidates.is_symlink():
        for path in candidates.glob("*.yaml"):
            path.unlink()
        if not any(candidates.iterdir()):
            candidates.rmdir()
