"""Texts that reach a pod: names of objects, keys, labels, images, arguments. One rule each, for both sides.

What a pod, the kubelet or an argument cannot carry is refused here, before anything is searched for. The patterns mean
the same in CEL (RE2) and in Python: character classes only, no look-around.
"""

import re
from typing import Annotated

from pydantic import Field

from dgdr_api.rules import Rule

_SUBDOMAIN = "[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_LABEL = "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_DOMAIN_PART = "[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?"
_PATH_PART = "[a-z0-9]+(([.]|__?|-+)[a-z0-9]+)*"
_IMAGE = (
    f"({_DOMAIN_PART}([.]{_DOMAIN_PART})*(:[0-9]+)?/)?{_PATH_PART}(/{_PATH_PART})*"
    "(:[A-Za-z0-9_][-A-Za-z0-9_.]{0,127})?(@sha256:[0-9a-f]{64}|@sha512:[0-9a-f]{128})?"
)
_IMAGE_NAME = re.compile("[^:@]*(:[0-9]+/[^:@]*)?")
"""An image without tag and digest; the only other colon is that of the registry's port."""
MAX_IMAGE_NAME = 255
MAX_IMAGE = 520
"""Name, tag (128) and the longest digest (135), with their separators."""


def matching(id: str, pattern: str, message: str) -> Rule:  # noqa: A002
    """Return the rule that a text as a whole matches a pattern."""
    compiled = re.compile(pattern)
    return Rule(
        id=id,
        cel=f"self.matches('^({pattern})$')",
        message=message,
        holds=lambda text: compiled.fullmatch(text) is not None,
    )


OBJECT_NAME = matching(
    "object-name", _SUBDOMAIN, "must be the name of an object: lower-case letters, digits, hyphens and dots"
)
LABEL_VALUE = matching(
    "label-value",
    f"({_LABEL})?",
    "must be a label's value: letters, digits and - _ . between, at most 63 characters",
)
_LABEL_NAME = re.compile(f"({_SUBDOMAIN}/)?{_LABEL}")
_SHORT_PREFIX = re.compile("([^/]{0,253}/)?[^/]*")
LABEL_NAMES = Rule(
    id="label-names",
    cel=f"self.all(name, name.matches('^({_LABEL_NAME.pattern})$') && name.matches('^({_SHORT_PREFIX.pattern})$'))",
    message="names must be those of labels: [prefix/]name, the prefix a DNS subdomain",
    holds=lambda labels: all(is_label_name(name) for name in labels),
)

_DATA_KEY = re.compile("[-._a-zA-Z0-9]+")
DATA_KEY = Rule(
    id="data-key",
    cel="self.matches('^[-._a-zA-Z0-9]+$') && self != '.' && !self.startsWith('..')",
    message="must be a key of a Secret or ConfigMap: letters, digits and - _ . (neither . nor a leading ..)",
    holds=lambda key: _DATA_KEY.fullmatch(key) is not None and key != "." and not key.startswith(".."),
)

_IMAGE_TEXT = re.compile(_IMAGE)
IMAGE_REFERENCE = Rule(
    id="image-reference",
    cel=f"self.matches('^({_IMAGE})$') && size(self.find('^{_IMAGE_NAME.pattern}')) <= {MAX_IMAGE_NAME}",
    message="must be an image reference [registry/]path[:tag][@digest]: the path in lower case, at most "
    f"{MAX_IMAGE_NAME} characters before the tag, a digest of sha256 or sha512",
    holds=lambda image: _IMAGE_TEXT.fullmatch(image) is not None and _image_name_fits(image),
)

ObjectName = Annotated[str, Field(min_length=1, max_length=253), OBJECT_NAME]
"""Name of an object beside the pod: a DNS subdomain."""
DataKey = Annotated[str, Field(min_length=1, max_length=253), DATA_KEY]
"""Key in a Secret or ConfigMap."""
LabelValue = Annotated[str, Field(max_length=63), LABEL_VALUE]
ImageReference = Annotated[str, Field(min_length=1, max_length=MAX_IMAGE), IMAGE_REFERENCE]

MODEL_NAME_TEXT = Rule(
    id="model-name-text",
    cel="self.matches('^[A-Za-z0-9_./][A-Za-z0-9_./:@+-]*$') && self != 'None'",
    message="must be letters, digits and . _ / : @ + - (none of : @ + - first), and not None: it becomes an argument",
    holds=lambda name: re.fullmatch("[A-Za-z0-9_./][A-Za-z0-9_./:@+-]*", name) is not None and name != "None",
)
REVISION = Rule(
    id="revision",
    cel="self.matches('^[A-Za-z0-9_.][A-Za-z0-9_./+-]*$') && !self.contains('..') && self != 'None'",
    message="must be a commit, branch or tag: letters, digits and . _ / + - (none of / + - first), no .., and not None",
    holds=lambda ref: (
        re.fullmatch("[A-Za-z0-9_.][A-Za-z0-9_./+-]*", ref) is not None and ".." not in ref and ref != "None"
    ),
)
MODEL_PATH_TEXT = matching(
    "model-path-text",
    "[A-Za-z0-9_./:@+=~ -]*",
    "must be letters, digits, spaces and . _ / : @ + = ~ -: it becomes an argument",
)
MOUNT_PATH = Rule(
    id="mount-path",
    cel="self.matches('^(/[A-Za-z0-9_.@+=~ -]+)+/?$') && !self.matches('/[.][.]?(/|$)') && "
    "!self.matches('^/dev/shm(/|$)')",
    message="must be an absolute path of letters, digits, spaces and . _ @ + = ~ -, without empty, . and .. segments, "
    "neither / nor below /dev/shm",
    holds=lambda path: (
        re.fullmatch("(/[A-Za-z0-9_.@+=~ -]+)+/?", path) is not None
        and re.search(r"/[.][.]?(/|\Z)", path) is None
        and not f"{path}/".startswith("/dev/shm/")  # noqa: S108 - the operator mounts shared memory there
    ),
)


def is_label_name(name: str) -> bool:
    """Whether a text is a label's name: ``[prefix/]name``, the prefix a DNS subdomain."""
    return _LABEL_NAME.fullmatch(name) is not None and _SHORT_PREFIX.fullmatch(name) is not None


def is_label_value(value: str) -> bool:
    """Whether a text is a label's value; the empty one is."""
    return bool(LABEL_VALUE.holds(value))


def _image_name_fits(image: str) -> bool:
    found = _IMAGE_NAME.match(image)
    return found is not None and len(found[0]) <= MAX_IMAGE_NAME
