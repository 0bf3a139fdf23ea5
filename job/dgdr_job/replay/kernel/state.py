"""Where everything is in the one array of a replay.

The kernel's functions take ``m``, the array, and ``o``, where each row begins in it: ``m[o[ISL] + request]``. Numbers
stand at the start of ``m``: ``m[NOW]``. One array and not eighty: each call would carry all of them, and compiling took
a minute. N requests, R roles, W ranks, V workers; a sequence is role * N + request.
"""

AGG, PREFILL, DECODE = 0, 1, 2
# Steps of a handoff.
STEP_PREFILL, STEP_RESERVE, STEP_TRANSFER, STEP_ACTIVATE, STEP_RELEASE = range(5)
# What ended a run.
DONE, NEEDS_BLOCKS, BAD_PASS_TIME, STALLED = range(4)
NEVER = 2**62
LONGEST_SPAN = 4096
# Numbers.
(
    NOW,
    LEFT,
    IN_FLIGHT,
    NEXT_FIRST,
    TURNS,
    TRANSFERS,
    TRANSFERS_STARTED,
    ACTION_HEAD,
    ACTION_COUNT,
    PASSES,
    FAILURE,
    GAP_COUNT,
    GAP_SUM,
    GAP_MIN,
    GAP_MAX,
    PASS_ID,
    EXACT,
    OUT_OF_ORDER,
    REQUESTS,
    WORKER_COUNT,
    FIRST_TURN_COUNT,
    SPAN_WIDTH,
    CONCURRENCY,
    THINK_NS,
    WARMUP,
    CONTENTION,
    ONLY_MISSING,
    LATENCY_NS,
    STARTED,
    PHASE_WIDTH,
) = range(0, 30)
NUMBERS = 30
# Rows of length R: limits of the roles.
(
    KIND,
    NO_EVICTION,
    MAX_SEQS,
    MAX_TOKENS,
    BLOCK,
    BLOCKS,
    CACHING,
    CHUNKED,
    OLDEST,
    CAPACITY,
    RANKS,
    WORKERS,
    FIRST_WORKER,
    FIRST_RANK,
    PER_UNIT,
    FIRST_OWN,
    STRIDE,
) = range(0, 17)
# Rows of length N.
(
    ISL,
    OSL,
    ARRIVAL,
    NEXT_TURN,
    STREAM,
    OUT_ARRIVAL,
    OUT_ADMITTED,
    OUT_DECODE_ADMITTED,
    OUT_FIRST,
    OUT_LAST,
    OUT_REUSED,
    OUT_WORKER,
    OUT_DECODE_WORKER,
    OUT_PREEMPTIONS,
    OUT_STATUS,
    REJECTED,
    SOURCE_RANK,
    TARGET_RANK,
    HELD,
    RESERVED,
    FRESH,
    DEFERRED_NEXT,
    DEFERRED_STEP,
    TURN_TIME,
    TURN_REQUEST,
    TRANSFER_TIME,
    TRANSFER_SEQ,
) = range(17, 44)
# Rows of length R * N.
(
    GENERATED,
    COMPUTED,
    HELD_BLOCKS,
    ORDER,
    ATTEMPT,
    FOLLOWING,
    PRECEDING,
    PART_PASS,
    PART_TOKENS,
    PART_START,
    PART_END,
    BASE,
    TABLE_START,
) = range(44, 57)
# Rows of length W.
(
    RANK_ROLE,
    RANK_WORKER,
    WAIT_HEAD,
    WAIT_TAIL,
    PENDING_HEAD,
    PENDING_TAIL,
    RUNNING_START,
    RUNNING_COUNT,
    EMITTED_COUNT,
    STEADY,
    DECODED,
    TICK,
    CONTEXT,
    LAST_END,
    WARM,
    YIELDED_WARM,
    NEXT_END,
    USED,
    FREE,
    GENERATION,
    JOINED,
    GROWTH,
    SLOT_BASE,
    IDLE_HEAD,
    IDLE_TAIL,
    MAP_BASE,
    MAP_BITS,
) = range(57, 84)
# Rows of length V.
(
    WORKER_ROLE,
    BUSY,
    SPAN,
    SPAN_START,
    LINK_FREE,
    DEFERRED_HEAD,
    DEFERRED_TAIL,
    END_NS,
    HEAP,
    HEAP_PLACE,
    RANK_TURN,
) = range(84, 95)
# Rows with one entry a block of all ranks.
(
    FREE_SLOTS,
    SLOT_USERS,
    SLOT_BEFORE,
    SLOT_AFTER,
    SLOT_TWIN,
) = range(95, 100)
# Rows of lengths of their own.
(
    FIRST_TURNS,
    UNIT_START,
    UNITS,
    GAP_BINS,
    PEAK,
    TABLE,
    RUNNING,
    EMITTED,
    PASS_PARTS,
    SLOT_KEY,
    MAP_KEY,
    MAP_SLOT,
    HITS,
    SPAN_NS,
    POOL_TURN,
    ACTIONS,
    PROMPTS,
    BY_PHASE,
    AFTER_IN_PHASE,
    ENDS,
    PHASES,
) = range(100, 121)
ROWS = 121
