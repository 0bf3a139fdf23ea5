"""The report of a run as its ConfigMaps hold it: points put together again, and the last log lines."""

import base64
import json
import time
import zlib
from typing import TYPE_CHECKING, Any

from dgdr_publisher.errors import ReportError
from dgdr_publisher.report.reading import Report, read_report
from dgdr_publisher.report.shards import LABEL_REPORT

from dgdr_cli.cluster.objects import Object, at, controller

if TYPE_CHECKING:
    from dgdr_cli.cluster.options import Cluster

MOST_LOG_BYTES = 16 * 1024 * 1024
"""Far more than the lines that are stored; a ConfigMap that unpacks to more is none of ours."""
_ATTEMPTS, _PAUSE_S = 5, 1.0
_LOG_SUFFIX = ".log.gz"


def stored_points(cluster: "Cluster", run: Object) -> Report | None:
    """The points of a run; None: it has written none yet. One that is just being written is read again.

    Raises:
        ReportError: the shards do not make a whole.
    """
    for attempt in range(_ATTEMPTS):
        shards = _config_maps(cluster, run, "points")
        if not shards:
            return None
        try:
            return read_report(shards)
        except ReportError:
            if attempt == _ATTEMPTS - 1:
                raise
            time.sleep(_PAUSE_S)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ReportError(
                f"the shards are not as a publisher writes them: {type(error).__name__} {error}"
            ) from error
    raise AssertionError  # the last attempt raises


def stored_logs(cluster: "Cluster", run: Object) -> dict[str, list[str]]:
    """The stored log lines of each container, by its name; empty: there are none.

    Raises:
        ReportError: what is stored is no log.
    """
    found: dict[str, list[str]] = {}
    for shard in _config_maps(cluster, run, "logs"):
        for key, content in sorted(at(shard, "binaryData", default={}).items()):
            if key.endswith(_LOG_SUFFIX):
                found[key.removesuffix(_LOG_SUFFIX)] = _unpacked(key, content).splitlines()
    return found


def columns_of(report: Report) -> dict[str, list[Any]]:
    """The values of all points by column.

    Raises:
        ReportError: the shards hold no table.
    """
    try:
        return report.columns()
    except (ValueError, OSError) as error:  # what pyarrow's errors are
        raise ReportError(f"the shards hold no Parquet file: {error}") from error


def rows_of(report: Report) -> list[dict[str, Any]]:
    """The points, one mapping each; what a point does not have is left out.

    Raises:
        ReportError: the shards hold no table.
    """
    columns = columns_of(report)
    rows = zip(*columns.values(), strict=True)
    return [{name: value for name, value in zip(columns, row, strict=True) if value is not None} for row in rows]


def json_lines(rows: list[dict[str, Any]]) -> str:
    """A JSON list with one point a line."""
    return "[\n" + ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n]\n" if rows else "[]\n"


def _config_maps(cluster: "Cluster", run: Object, content: str) -> list[dict[str, Any]]:
    """Those that carry the labels and belong to the run: a label alone could be anybody's."""
    from dgdr_api.group import LABEL_RUN_UID

    from dgdr_cli.cluster.kinds import CONFIG_MAP

    uid = at(run, "metadata", "uid")
    selector = f"{LABEL_RUN_UID}={uid},{LABEL_REPORT}={content}"
    found = cluster.kube.list(CONFIG_MAP, cluster.namespace, label_selector=selector).items
    return [one for one in found if controller(one).get("uid") == uid]


def _unpacked(key: str, content: object) -> str:
    unpacker = zlib.decompressobj(wbits=31)  # with the head of gzip
    try:
        text = unpacker.decompress(base64.b64decode(str(content), validate=True), MOST_LOG_BYTES)
    except (ValueError, zlib.error) as error:
        raise ReportError(f"{key} is no packed log: {error}") from error
    return text.decode("utf-8", "replace")
