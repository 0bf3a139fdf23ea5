"""Invalid requests, one per rule."""

from tests.api.invalid import Invalid, rule, schema
from tests.api.invalid_texts import TEXTS
from tests.api.objects import changed, request

STATIC = "workload.static"
GPU = "hardware.gpu"
AGG = ("search", {"topologies": ["agg"]})
PARETO = ("objective", {"mode": "pareto"})
TRACE = {"source": {"pvc": {"claimName": "traces", "path": "a.jsonl"}}}
TTFT_ITL = {"ttftMs": 1000, "itlMs": 40}
CACHE = {"pvc": {"name": "models"}}
LOADS = "give exactly one of concurrency, requestRate, kvLoadRatio, kvLoadRatioRange and saturated"
SLA = "give either e2eMs alone, or ttftMs and itlMs together"
PATH = "must be a relative path without a .. segment"

RULES: tuple[Invalid, ...] = (
    rule("model-name", "spec.modelRef.name", "no leading / and no .. segment", ("modelRef.name", "/models/qwen")),
    rule("model-name", "spec.modelRef.name", "no leading / and no .. segment", ("modelRef.name", "a/../b")),
    rule(
        "remote-code-revision",
        "spec.modelRef.revision",
        "remoteCode TrustCacheAndRevision needs a revision",
        ("modelRef.remoteCode", "TrustCacheAndRevision"),
        ("modelRef.cache", CACHE),
    ),
    rule(
        "remote-code-cache",
        "spec.modelRef.cache",
        "remoteCode TrustCacheAndRevision needs cache.pvc",
        ("modelRef.remoteCode", "TrustCacheAndRevision"),
        ("modelRef.revision", "abc"),
    ),
    rule(
        "model-path",
        "spec.modelRef.cache.pvc.modelPath",
        PATH,
        ("modelRef.cache", {"pvc": {"name": "m", "modelPath": "/x"}}),
    ),
    rule(
        "model-path",
        "spec.modelRef.cache.pvc.modelPath",
        PATH,
        ("modelRef.cache", {"pvc": {"name": "m", "modelPath": "a/.."}}),
    ),
    rule(
        "data-version-backend",
        "spec.runtime.performanceDataVersion",
        "keys are backends: vllm, sglang and trtllm",
        ("runtime.performanceDataVersion", {"vlm": "0.24.0"}),
    ),
    rule("min-budget", "spec.hardware.gpu.minBudget", "minBudget must not exceed budget", (f"{GPU}.minBudget", 17)),
    rule("one-workload", "spec.workload", "give exactly one of static and trace", ("workload.trace", TRACE)),
    rule("one-workload", "spec.workload", "give exactly one of static and trace", ("workload", {})),
    rule("one-load", "spec.workload.static", LOADS, (f"{STATIC}.requestRate", 2.5)),
    rule("one-load", "spec.workload.static", LOADS, (f"{STATIC}.concurrency", ...)),
    rule(
        "ratio-range",
        "spec.workload.static.kvLoadRatioRange.min",
        "min must be below max",
        (STATIC, {"isl": 1, "osl": 1, "kvLoadRatioRange": {"min": 0.9, "max": 0.1}}),
        PARETO,
    ),
    rule(
        "arrival-rate",
        "spec.workload.static.arrival",
        "arrival constant needs requestRate",
        (f"{STATIC}.arrival", "constant"),
    ),
    rule(
        "warm-up",
        "spec.workload.static.warmupRequests",
        "warmupRequests must be below requests",
        (f"{STATIC}.requests", 100),
        (f"{STATIC}.warmupRequests", 100),
    ),
    rule(
        "prefix-groups",
        "spec.workload.static.prefixGroups",
        "sharedPrefixRatio above 0 needs prefixGroups of at least 1",
        (f"{STATIC}.sharedPrefixRatio", 0.5),
    ),
    rule(
        "one-source",
        "spec.workload.trace.source",
        "give exactly one of pvc and uri",
        ("workload", {"trace": {"source": {}}}),
    ),
    rule(
        "trace-path",
        "spec.workload.trace.source.pvc.path",
        PATH,
        ("workload", {"trace": {"source": {"pvc": {"claimName": "traces", "path": "../secret"}}}}),
    ),
    rule(
        "trace-url",
        "spec.workload.trace.source.uri.url",
        "must name a remote file",
        ("workload", {"trace": {"source": {"uri": {"url": "file:///etc/passwd"}}}}),
    ),
    rule(
        "replay-mode",
        "spec.workload.trace.replay.concurrency",
        "give at most one of arrivalSpeedupRatio and concurrency",
        ("workload", {"trace": TRACE | {"replay": {"arrivalSpeedupRatio": 2.0, "concurrency": 8}}}),
    ),
    rule("optimize-metric", "spec.objective.metric", "mode optimize needs metric", ("objective", {"mode": "optimize"})),
    rule(
        "pareto-no-metric",
        "spec.objective.metric",
        "mode pareto takes metrics, not metric",
        ("objective", {"mode": "pareto", "metric": "ttft"}),
    ),
    rule(
        "metrics-pareto",
        "spec.objective.metrics",
        "metrics needs mode pareto; mode optimize takes metric",
        ("objective.metrics", ["ttft", "throughput"]),
    ),
    rule(
        "metric-sla",
        "spec.objective.sla",
        "goodput, goodputPerGpu and minGpus need sla",
        ("objective.metric", "goodput"),
    ),
    rule(
        "metric-sla",
        "spec.objective.sla",
        "goodput, goodputPerGpu and minGpus need sla",
        ("objective", {"mode": "pareto", "metrics": ["ttft", "minGpus"]}),
    ),
    rule(
        "metric-cost",
        "spec.objective.gpuHourCost",
        "throughputPerCost needs gpuHourCost",
        ("objective.metric", "throughputPerCost"),
    ),
    rule("sla-bounds", "spec.objective.sla", SLA, ("objective.sla", {"ttftMs": 1000})),
    rule("sla-bounds", "spec.objective.sla", SLA, ("objective.sla", TTFT_ITL | {"e2eMs": 9000})),
    rule("sla-bounds", "spec.objective.sla", SLA, ("objective.sla", {})),
    rule(
        "ratio-range-pareto",
        "spec.workload.static.kvLoadRatioRange",
        "kvLoadRatioRange needs objective.mode pareto",
        (STATIC, {"isl": 1, "osl": 1, "kvLoadRatioRange": {"min": 0.1, "max": 0.9}}),
    ),
    rule(
        "saturated-static",
        "spec.workload.static.saturated",
        "saturated needs search.fidelity static",
        (STATIC, {"isl": 1, "osl": 1, "saturated": True}),
    ),
    rule(
        "saturated-min-gpus",
        "spec.workload.static.saturated",
        "minGpus needs a load; saturated asks for capacity",
        (STATIC, {"isl": 1, "osl": 1, "saturated": True}),
        ("search", {"fidelity": "static"}),
        ("objective", {"mode": "optimize", "metric": "minGpus", "sla": TTFT_ITL}),
    ),
    rule(
        "trace-replay",
        "spec.workload.trace",
        "a trace needs search.fidelity replay",
        ("workload", {"trace": TRACE}),
        ("search", {"fidelity": "static"}),
    ),
    rule(
        "prefill-sku-disagg",
        "spec.hardware.gpu.prefillSku",
        "prefillSku needs disagg in search.topologies",
        (f"{GPU}.prefillSku", "h100_sxm"),
        AGG,
    ),
    rule(
        "decode-sku-disagg",
        "spec.hardware.gpu.decodeSku",
        "decodeSku needs disagg in search.topologies",
        (f"{GPU}.decodeSku", "h100_sxm"),
        AGG,
    ),
    rule(
        "encoder-sku",
        "spec.hardware.gpu.encoderSku",
        "encoderSku needs search.encoder Disaggregated or Both",
        (f"{GPU}.encoderSku", "l40s"),
    ),
    rule(
        "encoder-images",
        "spec.search.encoder",
        "search.encoder Disaggregated or Both needs workload.static.images",
        ("search", {"encoder": "Both"}),
    ),
    rule(
        "planner-encoder",
        "spec.search.planner",
        "planner needs encoder Inline",
        ("search", {"encoder": "Disaggregated", "planner": {"mode": "load"}}),
        (f"{STATIC}.images", {"height": 448, "width": 448}),
    ),
    rule(
        "duration",
        "spec.search.budget.maxDuration",
        "must be a duration above 0, e.g. 90s or 1h30m",
        ("search", {"budget": {"maxDuration": "0s"}}),
    ),
    rule(
        "duration",
        "spec.search.budget.maxDuration",
        "must be a duration above 0, e.g. 90s or 1h30m",
        ("search", {"budget": {"maxDuration": "0.0000001ms"}}),
    ),
)

SCHEMA: tuple[Invalid, ...] = (
    schema("missing-model", "spec.modelRef", "is required", "Required value", ("modelRef", ...)),
    schema("missing-image", "spec.runtime.image", "is required", "Required value", ("runtime", {})),
    schema("empty-name", "spec.modelRef.name", "must not be empty", "at least 1 chars long", ("modelRef.name", "")),
    schema(
        "long-name", "spec.modelRef.name", "at most 253 fit", "may not be more than 253", ("modelRef.name", "a" * 254)
    ),
    schema(
        "empty-revision", "spec.modelRef.revision", "must not be empty", "at least 1 chars", ("modelRef.revision", "")
    ),
    schema(
        "relative-mount",
        "spec.modelRef.cache.pvc.mountPath",
        "must match ^/",
        "should match '^/'",
        ("modelRef.cache", {"pvc": {"name": "m", "mountPath": "x"}}),
    ),
    schema(
        "remote-code", "spec.modelRef.remoteCode", "must be Never", "Unsupported value", ("modelRef.remoteCode", "Yes")
    ),
    schema("no-backend", "spec.backends", "needs at least 1", "should have at least 1 items", ("backends", [])),
    schema(
        "four-backends",
        "spec.backends",
        "takes at most 3",
        "must have at most 3 items",
        ("backends", ["vllm", "sglang", "trtllm", "vllm"]),
    ),
    schema("twice", "spec.backends", "stands twice", "Duplicate value", ("backends", ["vllm", "vllm"])),
    schema("backend", "spec.backends[0]", "must be vllm, sglang or trtllm", "Unsupported value", ("backends", ["tgi"])),
    schema(
        "override", "spec.runtime.versionOverride", "must match", "should match", ("runtime.versionOverride", "1.4")
    ),
    schema(
        "budget-0", "spec.hardware.gpu.budget", "must be at least 1", "greater than or equal to 1", (f"{GPU}.budget", 0)
    ),
    schema(
        "budget-most",
        "spec.hardware.gpu.budget",
        "must be at most 65536",
        "less than or equal to 65536",
        (f"{GPU}.budget", 65_537),
    ),
    schema(
        "budget-text",
        "spec.hardware.gpu.budget",
        "must be a whole number",
        "must be of type integer",
        (f"{GPU}.budget", "8"),
    ),
    schema(
        "budget-fraction",
        "spec.hardware.gpu.budget",
        "must be a whole number",
        "must be of type integer",
        (f"{GPU}.budget", 8.5),
    ),
    schema(
        "cap-0",
        "spec.hardware.gpu.budgetBySku.h200_sxm",
        "must be at least 1",
        "greater than or equal to 1",
        (f"{GPU}.budgetBySku", {"h200_sxm": 0}),
    ),
    schema(
        "isl-0", "spec.workload.static.isl", "must be at least 1", "greater than or equal to 1", (f"{STATIC}.isl", 0)
    ),
    schema(
        "isl-most",
        "spec.workload.static.isl",
        "must be at most 2147483647",
        "less than or equal to 2147483647",
        (f"{STATIC}.isl", 2**31),
    ),
    schema(
        "rate-0",
        "spec.workload.static.requestRate",
        "must be greater than 0",
        "should be greater than 0",
        (f"{STATIC}.concurrency", ...),
        (f"{STATIC}.requestRate", 0),
    ),
    schema(
        "saturated-false",
        "spec.workload.static.saturated",
        "must be true",
        "Unsupported value",
        (STATIC, {"isl": 1, "osl": 1, "saturated": False}),
        ("search", {"fidelity": "static"}),
    ),
    schema(
        "spread",
        "spec.workload.static.lengthSpread",
        "must be greater than 0",
        "should be greater than 0",
        (f"{STATIC}.lengthSpread", 0),
    ),
    schema(
        "shared",
        "spec.workload.static.sharedPrefixRatio",
        "must be at most 1",
        "less than or equal to 1",
        (f"{STATIC}.sharedPrefixRatio", 1.5),
        (f"{STATIC}.prefixGroups", 1),
    ),
    schema(
        "history",
        "spec.workload.static.turnHistory",
        "must be fresh or accumulate",
        "Unsupported value",
        (f"{STATIC}.turnHistory", "all"),
    ),
    schema(
        "image-size",
        "spec.workload.static.images.width",
        "is required",
        "Required value",
        (f"{STATIC}.images", {"height": 1}),
    ),
    schema(
        "trace-format",
        "spec.workload.trace.format",
        "must be mooncake",
        "Unsupported value",
        ("workload", {"trace": TRACE | {"format": "azure"}}),
    ),
    schema(
        "mode", "spec.objective.mode", "must be optimize or pareto", "Unsupported value", ("objective.mode", "best")
    ),
    schema(
        "metric", "spec.objective.metric", "must be throughput, ", "Unsupported value", ("objective.metric", "speed")
    ),
    schema(
        "one-metric",
        "spec.objective.metrics",
        "needs at least 2",
        "should have at least 2 items",
        ("objective", {"mode": "pareto", "metrics": ["ttft"]}),
    ),
    schema(
        "five-metrics",
        "spec.objective.metrics",
        "takes at most 4",
        "must have at most 4 items",
        (
            "objective",
            {
                "mode": "pareto",
                "metrics": ["ttft", "throughput", "throughputPerGpu", "throughputPerUser", "e2eLatency"],
            },
        ),
    ),
    schema(
        "price-0",
        "spec.objective.gpuHourCost.h200_sxm",
        "must be greater than 1e-09",
        "should be greater than 0",  # of a whole number the API server takes the whole part of the bound
        ("objective.gpuHourCost", {"h200_sxm": 0}),
    ),
    schema(
        "sla-0",
        "spec.objective.sla.ttftMs",
        "must be greater than 0",
        "should be greater than 0",
        ("objective.sla", {"ttftMs": 0, "itlMs": 1}),
    ),
    schema(
        "fidelity",
        "spec.search.fidelity",
        "must be replay or static",
        "Unsupported value",
        ("search", {"fidelity": "x"}),
    ),
    schema(
        "no-topology",
        "spec.search.topologies",
        "needs at least 1",
        "should have at least 1",
        ("search", {"topologies": []}),
    ),
    schema("no-router", "spec.search.router", "needs at least 1", "should have at least 1", ("search", {"router": []})),
    schema(
        "many-routers",
        "spec.search.router",
        "takes at most 16",
        "must have at most 16",
        ("search", {"router": [{"mode": "kv"}] * 17}),
    ),
    schema(
        "temperature",
        "spec.search.router[0].temperature",
        "must be at most 0",
        "less than or equal to 0",
        ("search", {"router": [{"mode": "kv", "temperature": 0.5}]}),
    ),
    schema(
        "rounds",
        "spec.search.budget.maxRounds",
        "must be at least 1",
        "greater than or equal to 1",
        ("search", {"budget": {"maxRounds": 0}}),
    ),
    schema(
        "day",
        "spec.search.budget.maxDuration",
        "must match",
        "should match",
        ("search", {"budget": {"maxDuration": "1d"}}),
    ),
    schema(
        "candidates",
        "spec.recommendation.maxCandidates",
        "must be at most 50",
        "less than or equal to 50",
        ("recommendation", {"maxCandidates": 51}),
    ),
    schema("reason", "spec.rerun.reason", "must not be empty", "at least 1 chars", ("rerun", {"reason": ""})),
    schema("suspend", "spec.suspend", "must be true or false", "must be of type boolean", ("suspend", "yes")),
    schema("null", "spec.workload.static.osl", "is required", "Required value", (f"{STATIC}.osl", None)),
    schema("null-item", "spec.backends[0]", "is null", "must be of type string", ("backends", [None])),
)

UNKNOWN: tuple[Invalid, ...] = (
    schema("typo", "spec.hardware.gpu.perNod", "did you mean perNode", "unknown field", (f"{GPU}.perNod", 8)),
    schema(
        "upstream",
        "spec.workload.static.numRequestRatio",
        "unknown field",
        "unknown field",
        (f"{STATIC}.numRequestRatio", 10),
    ),
)

NAMES: tuple[Invalid, ...] = tuple(
    Invalid(
        id=name_id,
        changes=(),
        field="metadata.name",
        laptop=laptop,
        cluster=cluster,
        base=changed(request(), ("metadata.name", name)),
    )
    for name_id, name, laptop, cluster in (
        ("dotted", "a.b", "must match", "metadata.name must be a DNS label"),
        ("name-64", "a" * 64, "at most 63 fit", "metadata.name must have at most 63 characters"),
    )
)

INVALID: tuple[Invalid, ...] = RULES + TEXTS + SCHEMA + UNKNOWN + NAMES
