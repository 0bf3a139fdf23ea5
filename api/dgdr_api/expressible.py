"""What each backend can express: shared by the enumerator, which skips the rest, and the renderer, which refuses it.

Source of the rules: the backends' own flags (vLLM has no flag for a tensor split of experts, TensorRT-LLM has no
number for attention data parallelism, SGLang alone has context parallelism for prefill). Legality of a shape for a
*model* (heads, layers, experts) is the enumerator's.
"""

from collections.abc import Callable
from dataclasses import dataclass

from dgdr_api.shape import Shape
from dgdr_api.skus import catalog
from dgdr_api.terms import Backend, EncoderPlacement, RoleKind
from dgdr_api.versions import NAMES, table

WORKER_GPUS = (1, 2, 4, 8, 16)
"""The ladder: GPUs of one worker that are searched unless shapes are given."""


@dataclass(frozen=True, kw_only=True)
class RoleForm:
    """A role as a backend would have to start it."""

    backend: Backend
    engine_version: str
    kind: RoleKind
    shape: Shape
    is_moe: bool
    gpus_per_node: int


def node_count(shape: Shape, gpus_per_node: int) -> int:
    """Return the nodes of one worker: 1 unless it is wider than a node.

    Raises:
        ValueError: it is wider than a node and fills no whole number of nodes.
    """
    if shape.gpus <= gpus_per_node:
        return 1
    nodes, rest = divmod(shape.gpus, gpus_per_node)
    if rest:
        raise ValueError(_not_whole(shape, gpus_per_node))
    return nodes


def gpus_per_pod(shape: Shape, gpus_per_node: int) -> int:
    """Return the GPUs that each pod of a worker asks for: the worker's GPUs over its nodes.

    Raises:
        ValueError: see `node_count`.
    """
    return shape.gpus // node_count(shape, gpus_per_node)


def shape_problems(form: RoleForm) -> list[str]:
    """Return every reason why the backend cannot run this shape in this role; empty: it can."""
    return [problem for rule in _SHAPE_RULES if (problem := rule(form)) is not None]


def knob_problems(
    backend: Backend, *, max_num_batched_tokens: int, block_size: int, max_num_seqs: int, shape: Shape
) -> list[str]:
    """Return every reason why the backend cannot be given these engine limits; empty: it can.

    Args:
        backend: the engine.
        max_num_batched_tokens: tokens of one pass, per data-parallel rank.
        block_size: tokens of one KV block.
        max_num_seqs: sequences per data-parallel rank.
        shape: the worker's shape.
    """
    problems = []
    if backend == "trtllm" and max_num_batched_tokens % block_size:
        problems.append(
            f"trtllm: max_num_tokens {max_num_batched_tokens} is no multiple of tokens_per_block {block_size}"
        )
    if backend == "sglang" and sglang_max_running_requests(max_num_seqs, shape) > 2**31 - 1:
        problems.append(f"sglang: {max_num_seqs} sequences on {shape.attention_dp} ranks exceed a 32-bit number")
    return problems


def least_token_budget(backend: Backend, tokens: int, block_size: int) -> int:
    """The least token budget of a pass that covers so many tokens and that the backend can be given.

    TensorRT-LLM takes whole blocks only; source: `knob_problems`.
    """
    return -(-tokens // block_size) * block_size if backend == "trtllm" else tokens


def sglang_max_running_requests(max_num_seqs: int, shape: Shape) -> int:
    """SGLang's ``--max-running-requests`` counts the whole worker: sequences per rank times ranks."""
    return max_num_seqs * shape.attention_dp


def decode_tokens_in_budget(backend: Backend, sequences: int) -> int:
    """Tokens of a pass's budget that decoding sequences take: one each; none of SGLang's, which bounds prompts alone.

    Args:
        backend: the engine.
        sequences: sequences that decode, per data-parallel rank.
    """
    return 0 if backend == "sglang" else sequences


def model_revision_problem(backend: Backend, *, revision: str | None, local_snapshot: bool) -> str | None:
    """TensorRT-LLM takes no revision: only a local snapshot of it can be served."""
    if backend == "trtllm" and revision is not None and not local_snapshot:
        return f"trtllm: revision {revision} needs a local snapshot (modelRef.cache.pvc with modelPath)"
    return None


def topology_problem(backend: Backend, kinds: frozenset[RoleKind]) -> str | None:
    """TensorRT-LLM has no known form of an encoder beside aggregated workers."""
    if backend == "trtllm" and {"agg", "encode"} <= kinds:
        return "trtllm: an encoder of its own needs topology disagg"
    return None


def unrendered_backend(backend: Backend) -> str | None:
    """Why no template of any version renders a backend yet, or None."""
    if table().templates.get(backend):
        return None
    return f"no template renders {NAMES[backend]} yet; there are templates of {', '.join(sorted(table().templates))}"


def unrendered_encoder(encoder: EncoderPlacement, *, images: bool) -> str | None:
    """Why no template renders workers that encode images yet, whatever the backend, or None.

    Args:
        encoder: where images are encoded.
        images: whether requests bring any.
    """
    if encoder != "Inline":
        return "encode workers are not rendered yet: Inline"
    return "options of multimodal workers are not rendered yet: none" if images else None


def unrendered_shape(shape: Shape, *, sku: str, gpus_per_node: int) -> str | None:
    """Why no template renders a worker of this shape yet, whatever the backend, or None.

    Args:
        shape: the worker's shape.
        sku: GPU type, canonical name.
        gpus_per_node: GPUs of one node.
    """
    if shape.cp > 1:
        return "context parallelism is not rendered yet: 1"
    if shape.gpus > gpus_per_node and catalog()[sku].gpus_per_rack is not None:
        nodes = node_count(shape, gpus_per_node)
        return f"a worker over {nodes} nodes of {sku} needs a ComputeDomain, an object beside the deployment"
    return None


def pair_problem(backend: Backend, engine_version: str, prefill: Shape, decode: Shape) -> str | None:
    """Whether workers of these shapes cannot hand KV caches over: a fact of the engine version, kept as data.

    Source: ``equalTp`` of ``data/versions.yaml``.
    """
    if prefill.tp != decode.tp and engine_version in table().equal_tp.get(backend, ()):
        return f"{backend} {engine_version}: prefill tp {prefill.tp} with decode tp {decode.tp}; they must be equal"
    return None


def encoder_problems(backend: Backend, *, tp: int, batch_size: int) -> list[str]:
    """Return why an encode worker cannot be started so: only TensorRT-LLM has a flag for the encoder's batch."""
    problems = []
    if batch_size > 1 and backend != "trtllm":
        problems.append(f"{backend}: no flag sets an encoder batch of {batch_size}; only 1")
    if tp < 1 or tp & (tp - 1):
        problems.append(f"{backend}: encoder tp {tp} is no power of two")
    return problems


def _moe_of_a_dense_model(form: RoleForm) -> str | None:
    shape = form.shape
    if not form.is_moe and (shape.attention_dp, shape.moe_tp, shape.moe_ep) != (1, 1, 1):
        return f"{shape.label}: a dense model has no attention data parallelism and no experts"
    return None


def _experts_fill_the_worker(form: RoleForm) -> str | None:
    shape = form.shape
    width = shape.tp * shape.attention_dp * shape.cp
    if form.is_moe and shape.moe_tp * shape.moe_ep != width:
        return f"{shape.label}: moeTp * moeEp = {shape.moe_tp * shape.moe_ep}, but tp * attentionDp * cp = {width}"
    return None


def _trtllm_attention_dp(form: RoleForm) -> str | None:
    if form.backend == "trtllm" and form.shape.tp > 1 and form.shape.attention_dp > 1:
        return (
            f"trtllm: tp {form.shape.tp} with attentionDp {form.shape.attention_dp}; it splits attention one way only"
        )
    return None


def _vllm_experts(form: RoleForm) -> str | None:
    if form.backend == "vllm" and form.shape.moe_tp > 1 and form.shape.moe_ep > 1:
        return f"vllm: moeTp {form.shape.moe_tp} with moeEp {form.shape.moe_ep}; experts are split one way only"
    return None


def _context_parallelism(form: RoleForm) -> str | None:
    shape = form.shape
    if shape.cp == 1:
        return None
    if form.backend != "sglang":
        return f"{form.backend}: cp {shape.cp} has no form; only sglang has one"
    if form.kind == "decode":
        return f"sglang: cp {shape.cp} on a decode worker; it is for prefill"
    if (shape.tp, shape.attention_dp) != (1, 1):
        return f"sglang: cp {shape.cp} needs tp 1 and attentionDp 1"
    return None


def _whole_nodes(form: RoleForm) -> str | None:
    gpus, per_node = form.shape.gpus, form.gpus_per_node
    if gpus <= per_node:
        return None
    if gpus % per_node:
        return _not_whole(form.shape, per_node)
    if gpus & (gpus - 1):
        return f"{form.shape.label}: {gpus} GPUs over {gpus // per_node} nodes is no power of two"
    return None


def _vllm_ranks_over_nodes(form: RoleForm) -> str | None:
    gpus, per_node, ranks = form.shape.gpus, form.gpus_per_node, form.shape.attention_dp
    if form.backend != "vllm" or gpus <= per_node or gpus % per_node or ranks == 1:
        return None
    nodes = gpus // per_node
    if ranks % nodes:
        return f"vllm: {ranks} data-parallel ranks cannot be shared by {nodes} nodes"
    return None


def _vllm_rank_in_a_pod(form: RoleForm) -> str | None:
    shape, gpus, per_node = form.shape, form.shape.gpus, form.gpus_per_node
    if form.backend != "vllm" or gpus <= per_node or gpus % per_node or shape.attention_dp == 1:
        return None
    if shape.tp * shape.pp > per_node:
        return (
            f"vllm: the operator starts one rank over several nodes, or several ranks a node: a rank takes "
            f"{shape.tp * shape.pp} GPUs, a pod has {per_node}"
        )
    return None


def _not_whole(shape: Shape, gpus_per_node: int) -> str:
    return (
        f"{shape.label}: {shape.gpus} GPUs are wider than a node of {gpus_per_node} and fill no whole number of nodes"
    )


_SHAPE_RULES: tuple[Callable[[RoleForm], str | None], ...] = (
    _moe_of_a_dense_model,
    _experts_fill_the_worker,
    _trtllm_attention_dp,
    _vllm_experts,
    _context_parallelism,
    _whole_nodes,
    _vllm_ranks_over_nodes,
    _vllm_rank_in_a_pod,
)
