"""Images: reading by Pillow, and random changes for training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ....errors import ArgumentError, FeedError, UnavailableError
from ...neon.checks import share
from ..checks import checked
from ..tensors import lengths_of

Image = np.ndarray[Any, Any]
LUMA = np.array([0.299, 0.587, 0.114], "float32")  # of ITU-R BT.601
# Principal components of the colours of natural images, from A. Krizhevsky, I. Sutskever and
# G. Hinton, "ImageNet classification with deep convolutional neural networks", NIPS 2012.
COLOURS = np.array(
    [[-0.5675, 0.7192, 0.4009], [-0.5808, -0.0045, -0.8140], [-0.5836, -0.6948, 0.4203]], "float32"
)
SPREADS = np.array([0.2175, 0.0188, 0.0045], "float32") * 255


def read_image(path: Any) -> Image:
    """Return the image in a file: (height, width, channels) of uint8, also with one channel.

    Raises ``UnavailableError`` without Pillow, and ``FeedError`` for a file that it cannot read.
    """
    try:
        import PIL.Image
    except ImportError:
        raise UnavailableError("read_image needs the package Pillow; pip install Pillow") from None
    try:
        with PIL.Image.open(path) as image:
            plain = image if image.mode in ("L", "RGB", "RGBA") else image.convert("RGB")
            pixels = np.array(plain, np.uint8)
    except (OSError, SyntaxError, ValueError, AttributeError) as error:
        # SyntaxError: a damaged PNG; AttributeError: no path
        raise FeedError(
            f"{path} cannot be read as an image ({error}); check the path, and write the file "
            "again if it is damaged"
        ) from None
    return pixels if pixels.ndim == 3 else pixels[..., None]


@checked
@dataclass(frozen=True)
class Jitter:
    """Random changes of an image (height, width, channels), in this order.

    ``resize`` is the range of the shorter side, ``aspect_ratio`` the largest relative change of
    width to height. ``size``, (height, width), is cut out, at a random place within ``offset``
    (rows, columns) of the centre, and 0 lies outside. ``symmetric`` mirrors half of the images.
    ``brightness``, ``contrast`` and ``saturation`` are the largest relative changes, ``lighting``
    the standard deviation of a shift along the principal components of colours. ``mean`` and
    ``std``, one for each channel, normalise. The result is float32.
    """

    size: tuple[int, int]
    resize: tuple[int, int] | None = None
    aspect_ratio: float = 0.0
    offset: tuple[int, int] = (0, 0)
    symmetric: bool = False
    brightness: float = 0.0
    contrast: float = 0.0
    saturation: float = 0.0
    lighting: float = 0.0
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)

    def __post_init__(self) -> None:
        for name in ("aspect_ratio", "brightness", "contrast", "saturation"):
            share("Jitter", name, getattr(self, name))
        pairs = [lengths_of(p, "size") for p in (self.size, self.resize or (1, 1), self.offset)]
        if (
            any(len(p) != 2 for p in pairs)
            or min(*pairs[0], pairs[1][0]) < 1
            or (pairs[1][0] > pairs[1][1])
        ):
            raise ArgumentError(
                f"size={self.size!r}, resize={self.resize!r} and offset={self.offset!r}; give "
                "pairs: two lengths of at least 1, a range from the smaller to the larger one, and "
                "rows and columns"
            )
        if not len(self.mean) == len(self.std) or not all(n > 0 for n in self.std):
            raise ArgumentError(
                f"mean={self.mean!r} and std={self.std!r}; give as many of both, for each channel "
                "or one for all, and deviations above 0"
            )

    def __call__(self, random: np.random.Generator, image: Image) -> Image:
        """Return the changed image."""
        x = np.asarray(image, "float32")
        if x.ndim != 3 or len(self.mean) not in (1, x.shape[2]):
            raise FeedError(
                f"an image of shape {x.shape} for mean={self.mean!r}; give (height, width, "
                "channels), and a mean for each channel or one for all"
            )
        shape = np.array(x.shape[:2])
        if self.resize is not None:
            side = random.integers(self.resize[0], self.resize[1], endpoint=True)
            x = resized(x, *np.maximum(1, np.rint(shape * side / shape.min())).astype(int))
        if self.aspect_ratio:
            wide = np.sqrt(self._factor(random, self.aspect_ratio))
            x = resized(x, round(x.shape[0] / wide), round(x.shape[1] * wide))
        x = self._cut(random, x)
        if self.symmetric and random.random() < 0.5:
            x = x[:, ::-1]
        if self.brightness:
            x = x * self._factor(random, self.brightness)
        if self.contrast:
            middle = x.mean(dtype="float32")
            x = middle + (x - middle) * self._factor(random, self.contrast)
        if self.saturation and x.shape[2] == 3:
            grey = (x @ LUMA)[..., None]
            x = grey + (x - grey) * self._factor(random, self.saturation)
        if self.lighting and x.shape[2] == 3:
            x = x + COLOURS @ (random.normal(0, self.lighting, 3).astype("float32") * SPREADS)
        mean, std = np.array(self.mean, "float32"), np.array(self.std, "float32")
        return ((x - mean) / std).astype("float32")

    @staticmethod
    def _factor(random: np.random.Generator, reach: float) -> np.float32:
        """Return a factor between 1 / (1 + reach) and 1 + reach, log-uniform."""
        return np.float32(np.exp(random.uniform(-1, 1) * np.log1p(reach)))

    def _cut(self, random: np.random.Generator, x: Image) -> Image:
        """Return the part of the given size near the centre, with 0 outside of the image."""
        shifts = [int(random.integers(-n, n, endpoint=True)) for n in self.offset]
        made = np.zeros((*self.size, x.shape[2]), "float32")
        source, target = [], []
        for have, want, shift in zip(x.shape[:2], self.size, shifts, strict=True):
            begin = (have - want) // 2 + shift
            lowest, highest = max(begin, 0), max(min(begin + want, have), max(begin, 0))
            source.append(slice(lowest, highest))
            target.append(slice(lowest - begin, highest - begin))
        made[tuple(target)] = x[tuple(source)]
        return made


def resized(x: Image, height: int, width: int) -> Image:
    """Return an image of another size by linear interpolation between centres of pixels."""
    for dim, length in enumerate((height, width)):
        have = x.shape[dim]
        at = np.clip((np.arange(length) + 0.5) * (have / length) - 0.5, 0, have - 1)
        low = np.minimum(at.astype(int), have - 1)
        part = (at - low).astype("float32").reshape([-1 if k == dim else 1 for k in range(3)])
        below, above = np.take(x, low, dim), np.take(x, np.minimum(low + 1, have - 1), dim)
        x = below + (above - below) * part
    return x
