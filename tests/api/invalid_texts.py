"""Invalid texts: names, images, paths, keys and labels that no pod or argument accepts."""

from collections.abc import Iterator
from typing import Any

from tests.api.invalid import Invalid, rule

MODEL_NAME = "must be letters, digits and . _ / : @ + - (none of : @ + - first), and not None"
REVISION = "must be a commit, branch or tag: letters, digits and . _ / + - (none of / + - first), no .., and not None"
MODEL_PATH = "must be letters, digits, spaces and . _ / : @ + = ~ -: it becomes an argument"
MOUNT_PATH = "must be an absolute path of letters, digits, spaces and . _ @ + = ~ -, without empty, . and .. segments"
IMAGE = "must be an image reference [registry/]path[:tag][@digest]"
OBJECT = "must be the name of an object: lower-case letters, digits, hyphens and dots"
KEY = "must be a key of a Secret or ConfigMap: letters, digits and - _ ."
LABEL_NAME = "names must be those of labels: [prefix/]name"
LABEL_VALUE = "must be a label's value: letters, digits and - _ ."
MODEL = "modelRef"
PVC = f"spec.{MODEL}.cache.pvc"
SELECTOR = "hardware.gpu.nodeSelector"


def text_rules(id: str, message: str, field: str, values: tuple[str, ...], *path: str) -> Iterator[Invalid]:  # noqa: A002
    """One text in many wrong forms; ``path`` leads to it, each part a mapping, the first below spec."""
    for number, value in enumerate(values):
        made: Any = value
        for part in reversed(path[1:]):
            made = {part: made} if part != "pvc" else {part: {"name": "models"} | made}
        yield rule(f"{id}-{number}", field, message, (path[0], made))


def labels(id: str, key: str, message: str, given: dict[str, str]) -> Invalid:  # noqa: A002
    """Node labels of one GPU type that are wrong: all of them, or the one of ``key``."""
    below, on_cluster = (f".h200.{key}", f"[h200][{key}]") if key else (".h200", "[h200]")
    return Invalid(
        id=id,
        changes=((SELECTOR, {"h200": given}),),
        field=f"spec.{SELECTOR}{below}",
        laptop=message,
        cluster=message,
        cluster_field=f"spec.{SELECTOR}{on_cluster}",
    )


TEXTS: tuple[Invalid, ...] = (
    *text_rules(
        "model-name-text",
        MODEL_NAME,
        f"spec.{MODEL}.name",
        (
            "a b",
            "a,b",
            "a\nb",
            "a\n",
            "$(X)",
            "-x",
            "--trust-remote-code",
            "a\x7f",
            "\u00e4",
            "'a'",
            "{{a}}",
            "None",
            "@a",
        ),
        f"{MODEL}.name",
    ),
    *text_rules(
        "revision",
        REVISION,
        f"spec.{MODEL}.revision",
        ("$(reboot)", "-x", "a\nb", "a\n", "a b", "/a", "a..b", "None", "a~1", "a:b"),
        f"{MODEL}.revision",
    ),
    *text_rules(
        "model-path-text",
        MODEL_PATH,
        f"{PVC}.modelPath",
        ("$(X)", "a\nb", "a\n", "a'b", "{{x}}", "a\tb"),
        f"{MODEL}.cache",
        "pvc",
        "modelPath",
    ),
    *text_rules(
        "mount-path",
        MOUNT_PATH,
        f"{PVC}.mountPath",
        (
            "/a/../b",
            "/..",
            "/a:b",
            "/a\n",
            "/a\x00",
            "/",
            "//",
            "/a//b",
            "/./a",
            "/$(X)",
            "/dev/shm",  # noqa: S108
            "/dev/shm/",  # noqa: S108
            "/dev/shm/a",  # noqa: S108
        ),
        f"{MODEL}.cache",
        "pvc",
        "mountPath",
    ),
    *text_rules(
        "image-reference",
        IMAGE,
        "spec.runtime.image",
        (
            "x/sglang runtime:1.4.2",
            "x/SGLang-runtime:1.4.2",
            "x/{sglang}:1.4.2",
            "$(IMAGE):1.4.2",
            "x/sglang-runtime:",
            "x/sglang-runtime:1.4.2\n",
            " x/sglang-runtime:1.4.2",
            "/sglang-runtime:1.4.2",
            "x//sglang-runtime:1.4.2",
            "x/sglang-runtime:1.4.2:3",
            "https://x/sglang-runtime:1.4.2",
            "x/sglang-runtime:1.4.2@sha256:ab",
            f"x/sglang-runtime@sha256:{'A' * 64}",
            f"x/sglang-runtime@md5:{'a' * 32}",
            f"x/sglang-runtime:{'1' * 129}",
            f"{'x' * 254}/y:1.4.2",
        ),
        "runtime.image",
    ),
    *text_rules("image-reference-search", IMAGE, "spec.image", ("Sweeper:1", "a b"), "image"),
    *text_rules(
        "claim",
        OBJECT,
        f"{PVC}.name",
        ("Models", "a_b", "-a", "a-", "a..b", "a/b", "a\n"),
        f"{MODEL}.cache",
        "pvc",
        "name",
    ),
    *text_rules("secret", OBJECT, f"spec.{MODEL}.tokenSecret.name", ("HF_TOKEN", "a."), f"{MODEL}.tokenSecret", "name"),
    *text_rules(
        "config", OBJECT, f"spec.{MODEL}.config.configMap.name", ("a b",), f"{MODEL}.config", "configMap", "name"
    ),
    rule(
        "secret-key", f"spec.{MODEL}.tokenSecret.key", KEY, (f"{MODEL}.tokenSecret", {"name": "hf", "key": "HF TOKEN"})
    ),
    rule("secret-key-up", f"spec.{MODEL}.tokenSecret.key", KEY, (f"{MODEL}.tokenSecret", {"name": "hf", "key": ".."})),
    rule("secret-key-dot", f"spec.{MODEL}.tokenSecret.key", KEY, (f"{MODEL}.tokenSecret", {"name": "hf", "key": "."})),
    rule(
        "config-key",
        f"spec.{MODEL}.config.configMap.key",
        KEY,
        (f"{MODEL}.config", {"configMap": {"name": "m", "key": "a/config.json"}}),
    ),
    rule(
        "config-quant-key",
        f"spec.{MODEL}.config.configMap.quantKey",
        KEY,
        (f"{MODEL}.config", {"configMap": {"name": "m", "quantKey": "a\n"}}),
    ),
    rule(
        "trace-claim",
        "spec.workload.trace.source.pvc.claimName",
        OBJECT,
        ("workload", {"trace": {"source": {"pvc": {"claimName": "My_Traces", "path": "a"}}}}),
    ),
    rule(
        "trace-secret",
        "spec.workload.trace.source.uri.secret",
        OBJECT,
        ("workload", {"trace": {"source": {"uri": {"url": "s3://b/a", "secret": "S3"}}}}),
    ),
    *(
        labels(f"label-name-{number}", "", LABEL_NAME, {name: "x"})
        for number, name in enumerate(
            ("a b", "", "/a", "a/", "A.b/c", "a/b/c", "-a", "a" * 64, f"{'a' * 254}/b", f"{'a' * 250}.com/b", "a\n")
        )
    ),
    *(
        labels(f"label-value-{number}", "a", LABEL_VALUE, {"a": value})
        for number, value in enumerate(("NVIDIA H200", "-a", "a.", "a/b", "a\n", "$(X)"))
    ),
)
