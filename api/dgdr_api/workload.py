"""The load that a deployment must carry: generated, or recorded."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from dgdr_api.base import ApiModel
from dgdr_api.bounds import Count, Digits32, NotNegative, Positive
from dgdr_api.model_ref import relative_path
from dgdr_api.pod_texts import ObjectName
from dgdr_api.rules import Rule, RuledModel, exactly_one, given, values


class RatioRange(RuledModel):
    """A range of KV load ratios."""

    rules: ClassVar = (
        Rule(
            id="ratio-range",
            cel="self.min < self.max",
            message="min must be below max",
            holds=lambda ratios: ratios.min < ratios.max,
            field=".min",
            found=values("min", "max"),
        ),
    )

    min: Positive
    """Least ratio."""
    max: Positive
    """Greatest ratio."""


class Images(ApiModel):
    """Images that come with each request, for a vision-language model."""

    height: Annotated[int, Field(ge=1, le=65_536)]
    """Height of an image in pixels."""
    width: Annotated[int, Field(ge=1, le=65_536)]
    """Width of an image in pixels."""
    count: Annotated[int, Field(ge=1, le=1_024)] = 1
    """Images per request; 1 by default."""


class StaticWorkload(RuledModel):
    """A generated workload."""

    rules: ClassVar = (
        exactly_one("one-load", "concurrency", "requestRate", "kvLoadRatio", "kvLoadRatioRange", "saturated"),
        Rule(
            id="arrival-rate",
            cel="!has(self.arrival) || self.arrival != 'constant' || has(self.requestRate)",
            message="arrival constant needs requestRate",
            holds=lambda load: load.arrival != "constant" or load.request_rate is not None,
            field=".arrival",
            found=given("concurrency", "kvLoadRatio", "kvLoadRatioRange", "saturated"),
        ),
        Rule(
            id="warm-up",
            cel="!has(self.requests) || !has(self.warmupRequests) || self.warmupRequests < self.requests",
            message="warmupRequests must be below requests",
            holds=lambda load: (
                load.requests is None or load.warmup_requests is None or load.warmup_requests < load.requests
            ),
            field=".warmupRequests",
            found=values("warmupRequests", "requests"),
        ),
        Rule(
            id="prefix-groups",
            cel="!has(self.sharedPrefixRatio) || self.sharedPrefixRatio == 0.0 || "
            "(has(self.prefixGroups) && self.prefixGroups > 0)",
            message="sharedPrefixRatio above 0 needs prefixGroups of at least 1",
            holds=lambda load: load.shared_prefix_ratio == 0 or load.prefix_groups > 0,
            field=".prefixGroups",
            found=values("sharedPrefixRatio", "prefixGroups"),
        ),
    )

    isl: Digits32
    """Input tokens of a request."""
    osl: Digits32
    """Output tokens of a request."""
    concurrency: Digits32 | None = None
    """Requests in flight, held constant."""
    request_rate: Positive | None = None
    """Requests per second."""
    kv_load_ratio: Positive | None = None
    """Concurrency as a share of what the candidate's KV cache can hold."""
    kv_load_ratio_range: RatioRange | None = None
    """Five KV load ratios, geometrically spaced, both ends included, each a search dimension. Only with
    objective.mode pareto."""
    saturated: Literal[True] | None = None
    """Asks for capacity itself: as many requests as are served. Only with search.fidelity static."""
    arrival: Literal["constant", "poisson"] = "poisson"
    """Arrival process of requestRate; poisson by default."""
    requests: Digits32 | None = None
    """Requests (turns) in all, warm-up included. By default 10 times the concurrency, or 10 minutes at a rate, at
    least 100."""
    warmup_requests: Count | None = None
    """Requests left out of the metrics. By default the lesser of concurrency and a tenth of requests; 0 for a rate."""
    length_spread: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Lengths are drawn from [spread * n, n] with the seed; 1.0 by default: exactly n."""
    shared_prefix_ratio: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Share of the prompt that the requests of a group have in common; 0 by default."""
    prefix_groups: Count = 0
    """Groups of requests with a common prefix; 0 by default."""
    turns_per_session: Digits32 = 1
    """Turns of a session; 1 by default."""
    inter_turn_delay_ms: NotNegative = 0.0
    """Think time between turns in milliseconds; 0 by default."""
    turn_history: Literal["fresh", "accumulate"] = "fresh"
    """Whether a turn's prompt stands alone (fresh, the default) or follows all that was said (accumulate)."""
    images: Images | None = None
    """Images that come with each request."""


class TracePvc(ApiModel):
    """A trace in a claim."""

    claim_name: ObjectName
    """Name of the claim."""
    path: Annotated[str, Field(min_length=1, max_length=1024), relative_path("trace-path")]
    """File, relative to the root of the claim."""


class TraceUri(ApiModel):
    """A trace that is fetched. Only this gives the search Job a network."""

    url: Annotated[
        str,
        Field(max_length=2048, pattern=r"^[a-z][a-z0-9+.-]*://[^ ]+$"),
        Rule(
            id="trace-url",
            cel="!self.startsWith('file:')",
            message="must name a remote file; a local one comes from source.pvc",
            holds=lambda url: not url.startswith("file:"),
        ),
    ]
    """Address, e.g. https://... or s3://..."""
    secret: ObjectName | None = None
    """Name of a Secret whose keys become environment variables of the download."""


class TraceSource(RuledModel):
    """Where a trace lies. Its content is taken as immutable."""

    rules: ClassVar = (exactly_one("one-source", "pvc", "uri"),)

    pvc: TracePvc | None = None
    """A file in a claim."""
    uri: TraceUri | None = None
    """A file that is fetched."""


class TraceReplay(RuledModel):
    """How a trace is played."""

    rules: ClassVar = (
        Rule(
            id="replay-mode",
            cel="!has(self.concurrency) || !has(self.arrivalSpeedupRatio) || self.arrivalSpeedupRatio == 1.0",
            message="give at most one of arrivalSpeedupRatio and concurrency",
            holds=lambda replay: replay.concurrency is None or replay.arrival_speedup_ratio == 1,
            field=".concurrency",
            found=values("arrivalSpeedupRatio", "concurrency"),
        ),
    )

    arrival_speedup_ratio: Positive = 1.0
    """Arrivals come this many times as fast; 1.0 by default."""
    concurrency: Digits32 | None = None
    """Cap on the requests in flight."""


class TraceWorkload(ApiModel):
    """A recorded workload."""

    format: Literal["mooncake"] = "mooncake"
    """Format of the trace; mooncake by default and, so far, only."""
    source: TraceSource
    """Where the trace lies."""
    replay: TraceReplay = TraceReplay()
    """How it is played."""


class Workload(RuledModel):
    """The load: generated or recorded."""

    rules: ClassVar = (exactly_one("one-workload", "static", "trace"),)

    static: StaticWorkload | None = None
    """A generated workload."""
    trace: TraceWorkload | None = None
    """A recorded workload."""
    max_sequence_length: Digits32 | None = None
    """Prompt plus output tokens that a deployment must be able to hold: the bound of the KV gate, rendered as the
    engine's maximum length. By default what the workload needs."""
