"""How many tokens the images of a request become, from the geometry of the model's vision encoder alone.

Source: engine.md section 6 and the processor of the Qwen-VL family (``smart_resize``). Its rescaling of images beyond
the pixel bounds of a checkpoint's preprocessor configuration is not modelled: that file is no part of the data.
"""

from dataclasses import dataclass

MAX_ASPECT_RATIO = 200
"""The processor refuses an image that is longer than this multiple of its width, or wider than that of its height."""


@dataclass(frozen=True)
class VisionFacts:
    """Geometry of a vision encoder.

    Attributes:
        patch_size: Pixels of a patch's side.
        merge_size: Patches of a side that become one token.
        heads: Attention heads, over which tensor parallelism splits.
        intermediate_size: Width of the feed-forward layers, which it splits too.
        layers: Transformer layers.
    """

    patch_size: int
    merge_size: int
    heads: int
    intermediate_size: int
    layers: int

    @property
    def stride(self) -> int:
        """Pixels of a token's side."""
        return self.patch_size * self.merge_size


@dataclass(frozen=True)
class Images:
    """The images of one request, all of one size.

    Attributes:
        height: Height in pixels, at least 1.
        width: Width in pixels, at least 1.
        count: Images of a request, at least 1.
    """

    height: int
    width: int
    count: int = 1

    @property
    def label(self) -> str:
        """What a person reads, e.g. ``2 images of 1024 x 768``."""
        return f"{self.count} image{'' if self.count == 1 else 's'} of {self.height} x {self.width}"


def image_tokens(images: Images, vision: VisionFacts) -> int:
    """Tokens that the images of one request add to its prompt.

    Each side is rounded to a multiple of the stride, halves to the even multiple, and is one stride at least; an image
    has one token for each square of a stride.
    """
    return images.count * _strides(images.height, vision.stride) * _strides(images.width, vision.stride)


def image_problem(images: Images) -> str | None:
    """Why the processor refuses such an image, or None."""
    longest, shortest = max(images.height, images.width), min(images.height, images.width)
    if longest > MAX_ASPECT_RATIO * shortest:
        return (
            f"an image of {images.height:,} x {images.width:,} pixels has an aspect ratio of "
            f"{longest / shortest:.4g}; the processor takes at most {MAX_ASPECT_RATIO}"
        )
    return None


def _strides(pixels: int, stride: int) -> int:
    return max(round(pixels / stride), 1)
