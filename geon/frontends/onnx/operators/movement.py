"""Transpose, join, slice, split, pad and repeat."""

from __future__ import annotations

from collections.abc import Sequence

from ....errors import ArgumentError
from ...positional import movement
from ...positional.movement import Part, concat, pad, slices, tile
from ...positional.programs import cast
from ...positional.reshaping import reshape, transpose
from ...positional.values import Size, Value, as_array, host, position, positions
from ..table import NodeInfo, row


def slice_at(
    x: Value,
    starts: Sequence[Size],
    ends: Sequence[Size],
    axes: Sequence[int] | None = None,
    steps: Sequence[int] | None = None,
    /,
) -> Value:
    """Return a slice; bounds are clamped where the length is known."""
    at = positions(range(len(starts)) if axes is None else axes, len(x.shape))
    bounds = zip(at, starts, ends, steps or [1] * len(starts), strict=True)
    return slices(x, {k: Part(_start(a, x.shape[k], c), b, c) for k, a, b, c in bounds})


def _start(start: Size, length: Size, step: int) -> Size:
    """Return a start; unlike Python's, one before the front is the front for each step."""
    known = isinstance(start, int) and isinstance(length, int)
    return 0 if known and step < 0 and start < -length else start


def split_along(
    x: Value,
    split: Sequence[Size] | None = None,
    /,
    *,
    node: NodeInfo,
    axis: int = 0,
    num_outputs: int | None = None,
) -> tuple[Value, ...]:
    """Return parts along ``axis``: of given lengths, or as many equal ones as there are outputs."""
    at = position(axis, len(x.shape))
    if split is None:
        split = _equal_parts(x.shape[at], num_outputs or len(node.outputs))
    return tuple(movement.split(x, at, split))


def _equal_parts(length: Size, count: int) -> list[Size]:
    """Return ``count`` lengths, the last one smaller if the length is no multiple."""
    whole = -(-length // count)
    if not isinstance(length, int):
        return [*[whole] * (count - 1), length - whole * (count - 1)]
    return [max(min(whole, length - k * whole), 0) for k in range(count)]


def pad_at(
    x: Value,
    pads: Sequence[Size],
    value: Value | None = None,
    axes: Sequence[int] | None = None,
    /,
    *,
    mode: str = "constant",
) -> Value:
    """Return ``x`` with a border."""
    rank = len(x.shape)
    at = positions(axes, rank)
    if len(pads) != 2 * len(at):
        raise ArgumentError(f"{len(pads)} widths for {len(at)} dimensions; two are needed for each")
    widths: list[tuple[Size, Size]] = [(0, 0)] * rank
    for number, k in enumerate(at):
        widths[k] = (pads[number], pads[number + len(at)])
    if mode == "wrap":
        return _wrapped(x, widths)
    fill = host(0, x.dtype) if value is None else cast(reshape(value, []), x.dtype)
    return pad(x, widths, mode, as_array(fill).tensor)


def _wrapped(x: Value, widths: Sequence[tuple[Size, Size]]) -> Value:
    for k, (before, after) in enumerate(widths):
        parts = []
        if before != 0:
            parts.append(slices(x, {k: Part(-before, None)}))
        parts.append(x)
        if after != 0:
            parts.append(slices(x, {k: Part(0, after)}))
        x = concat(parts, k)
    return x


def tile_one(x: Value, tiles: Size, axis: int, /) -> Value:
    """Return ``x`` repeated as a whole along one position."""
    repeats: list[Size] = [1] * len(x.shape)
    repeats[position(axis, len(x.shape))] = tiles
    return tile(x, repeats)


def depth_to_space(x: Value, /, *, blocksize: int, mode: str = "DCR") -> Value:
    """Return channels moved into blocks of the plane."""
    n, c, h, w = x.shape
    inner = c // blocksize**2
    depth_first = mode == "DCR"
    blocks = [blocksize, blocksize, inner] if depth_first else [inner, blocksize, blocksize]
    parts = reshape(x, [n, *blocks, h, w])
    order = [0, 3, 4, 1, 5, 2] if depth_first else [0, 1, 4, 2, 5, 3]
    return reshape(transpose(parts, order), [n, inner, h * blocksize, w * blocksize])


def space_to_depth(x: Value, /, *, blocksize: int, mode: str = "DCR") -> Value:
    """Return blocks of the plane moved into channels."""
    n, c, h, w = x.shape
    parts = reshape(x, [n, c, h // blocksize, blocksize, w // blocksize, blocksize])
    order = [0, 3, 5, 1, 2, 4] if mode == "DCR" else [0, 1, 3, 5, 2, 4]
    channels = c * blocksize**2
    return reshape(transpose(parts, order), [n, channels, h // blocksize, w // blocksize])


ROWS = [
    row("Transpose", transpose),
    row("Concat", lambda *values, axis=1: concat(values, axis)),
    row("Slice", slice_at, attributes={"starts": 1, "ends": 2, "axes": 3}),
    row("Split", split_along, attributes={"split": 1}),
    row("Pad", pad_at, attributes={"pads": 1, "paddings": 1, "value": 2}),
    row("Tile", tile, 6),
    row("Tile", tile_one, 1, 5),
    row("DepthToSpace", depth_to_space),
    row("SpaceToDepth", space_to_depth),
]
