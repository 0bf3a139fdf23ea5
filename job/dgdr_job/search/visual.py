"""The images of a request: how many tokens they are to the model, or why the model does not take them.

Asked before anything is estimated. Source: engine.md section 6.
"""

from dgdr_api.request import SearchSpec

from dgdr_job.catalog.catalog import Catalog
from dgdr_job.catalog.errors import Reason, Unsupported
from dgdr_job.catalog.images import Images, image_problem, image_tokens


def images_of(run: SearchSpec) -> Images | None:
    """The images of one request, None for text and for a trace."""
    load = run.workload.static
    if load is None or load.images is None:
        return None
    return Images(load.images.height, load.images.width, load.images.count)


def visual_tokens(catalog: Catalog, model: str, images: Images | None) -> int:
    """Tokens that the images of a request add to its prompt; 0 without images.

    Raises:
        Unsupported: UnknownModel; UnsupportedFeature: the model takes no images, or its processor not such images.
    """
    if images is None:
        return 0
    facts = catalog.model(model)
    vision = facts.vision
    if vision is None:
        raise Unsupported(
            Reason.UNSUPPORTED_FEATURE,
            f"workload.static.images: {images.label}, but {model} has no vision encoder that is modelled (the Qwen3-VL "
            "family has); leave them out for a text workload",
        )
    problem = image_problem(images)
    if problem:
        raise Unsupported(Reason.UNSUPPORTED_FEATURE, f"workload.static.images: {problem}")
    tokens = image_tokens(images, vision)
    if facts.context_length and tokens > facts.context_length:
        raise Unsupported(
            Reason.UNSUPPORTED_FEATURE,
            f"workload.static.images: {images.label} are {tokens:,} tokens, but {model} takes sequences of at most "
            f"{facts.context_length:,} tokens",
        )
    return tokens
