"""Emit a transposed pass: operands that are contiguous along lanes are transposed in tiles.

Tiles fit the L1 and L2 caches. Their rows are padded, so that they do not map to one cache set.
"""

from __future__ import annotations

from ....op_graph.axes.affine import Size
from ...printing.nests.loop_lines import for_loop, indent
from ...printing.nests.pass_text import PrintedPass, PrintedTiles, TurnedLoad, first_turn
from ..names.naming import KernelNames

TILE_LANES = 64  # lanes of a transpose tile
TILE_ROW_BYTES = 512  # bytes of a row of a tile, so that most cache lines are stored as a whole
TILE_PADDING_ELEMENTS = 8  # elements of padding between the rows of a tile
COLLAPSED_TILE_ELEMENTS = 1024  # elements of a tile of short adjacent rows
REGISTER_BLOCK_BYTES = 32  # bytes of a row in a block of registers
TRANSPOSE_SQUARE_SIDE = 128  # rows and columns of a square of a plain transpose
MIN_TRANSPOSED_LINE_BYTES = 256  # minimum bytes of a line for which squares pay off
MIN_TRANSPOSED_ITEM_BYTES = (
    4  # minimum bytes of an element: a block's rows of smaller ones fill no cache line
)
MAX_INTERLEAVED_ELEMENTS = 4  # maximum elements of a row that compilers interleave in vectors


def width(made: PrintedPass) -> int:
    """Return the iterations of the last loop in a tile: all of them if they are few."""
    sizes = [load.itemsize for load in made.turned] or [store.itemsize for store in made.stores]
    wide, turns = (
        max(TILE_ROW_BYTES // sum(sizes) // TILE_LANES, 1) * TILE_LANES,
        made.loops[-1].extent,
    )
    return turns if isinstance(turns, int) and 0 < turns <= 2 * wide else wide


def lanes_of_tile(made: PrintedPass) -> int:
    """Return the lanes of a tile; more if rows are short and adjacent."""
    return (
        max(COLLAPSED_TILE_ELEMENTS // width(made) // TILE_LANES, 1) * TILE_LANES
        if made.flat
        else TILE_LANES
    )


def tiles(start: str, size: str, low: str, high: str, body: list[str]) -> list[str]:
    """Return a loop over the tiles along one side."""
    end = "tile_end" if start == "tile" else "lane_end"
    stop = f"{start} + {size} < {high} ? {start} + {size} : {high}"
    head = f"for (int64_t {start} = {low}; {start} < {high}; {start} += {size}) {{"
    return [head, *indent([f"const int64_t {end} = {stop};", *body]), "}"]


def tile_loops(
    made: PrintedPass,
    names: KernelNames,
    along: list[str],
    cut: tuple[str, str] | None,
    passes: bool = False,
) -> list[str]:
    """Return the loops of a transposed pass around ``along``, the loop over one row of a tile.

    Lanes are processed in tiles, for any number of them. ``cut`` are the bounds of the last loop if
    it is divided. If ``passes``, stores of large results are non-temporal.
    """
    *outer, last = made.loops
    wide = width(made)
    if made.flat:
        assert TILE_LANES * made.most <= COLLAPSED_TILE_ELEMENTS
        few = TILE_LANES if made.most else lanes_of_tile(made)
        size = str(few) if made.most or isinstance(last.extent, int) else "block"
        by_tiles = tiles("lane_tile", size, "0", "lanes", [*fill_tiles(made, names), *along])
        # A value of a group is that of its first lane, even if it is in an array over lanes.
        shared = PrintedTiles(["const int64_t lane = 0;", *made.grouped.lines], made.grouped.tiles)
        return [*fill_repeated(made, shared, "lanes", names), *by_tiles]
    lines = []
    bounds = cut or ("0", names.length(last.extent))
    for t in made.turned:
        lines.append(f"{t.ctype} {t.name}[{TILE_LANES}][{wide + TILE_PADDING_ELEMENTS}];")
        names.calls([f"geon_transpose_{t.itemsize}"])
        sides = "tile_end - tile, lane_end - lane_tile"
        lines.append(f"geon_transpose_{t.itemsize}({t.source}, {t.step}, {t.name}, "
                     f"{wide + TILE_PADDING_ELEMENTS}, {sides});")  # fmt: skip
    lines += for_loop("lane", "lane_tile", "lane_end", along)
    body = tiles("tile", str(wide), *bounds, lines)
    for turns in reversed(outer):
        body = for_loop(turns.name, "0", names.length(turns.extent), body)
    by_tiles = tiles("lane_tile", str(TILE_LANES), "0", "lanes", body)
    return straight(made, names, bounds, by_tiles, passes) if is_copy(made) else by_tiles


def is_copy(made: PrintedPass) -> bool:
    """Return True if a pass only transposes one operand, with elements large enough for register
    blocks.
    """
    if not made.copies or len(made.loops) != 1 or (len(made.turned), len(made.stores)) != (1, 1):
        return False
    (turned,), (store,) = made.turned, made.stores
    return (
        store.start is not None and turned.itemsize == store.itemsize >= MIN_TRANSPOSED_ITEM_BYTES
    )


def straight(
    made: PrintedPass,
    names: KernelNames,
    bounds: tuple[str, str],
    by_tiles: list[str],
    passes: bool,
) -> list[str]:
    """Return a plain transpose directly into the result.

    It falls back to ``by_tiles`` for non-temporal stores (``passes``) and for strides where tiles
    are faster.
    """
    (turned,), (store,), last = made.turned, made.stores, made.loops[-1]
    function, (low, high) = f"geon_transpose_{turned.itemsize}", bounds
    names.calls([function, f"{function}_turned"])
    apart = names.length(store.apart)
    pays = f"{function}_straight({turned.step}, {apart}, {high} - {low})"
    flags = ["!past", pays] if passes else [pays]
    sides = f"{high} - {low}, lanes"
    target = f"{store.start}, {apart}, {sides}"
    call = [
        f"const int64_t tile = {low}, lane_tile = 0, lane = 0, {first_turn(last.name)} = {low};",
        f"{function}_turned({turned.source}, {turned.step}, {target});",
    ]
    return [f"if ({' && '.join(flags)}) {{", *indent(call), "} else {", *indent(by_tiles), "}"]


def fill_tiles(made: PrintedPass, names: KernelNames) -> list[str]:
    """Return the statements that fill tiles of short rows, in the order of the stores."""
    turns, lines = made.loops[-1].extent, []
    size, wide = size_of_tile(made), turns_of(made, names)
    for t in made.turned:
        lines.append(f"{t.ctype} {t.name}[{size}];")
        known = isinstance(turns, int) and (
            turns <= MAX_INTERLEAVED_ELEMENTS and turns * t.itemsize < REGISTER_BLOCK_BYTES
        )
        if t.step == "0" and not (isinstance(turns, int) and turns <= MAX_INTERLEAVED_ELEMENTS):
            function = f"geon_transpose_{t.itemsize}"
            names.calls([function, f"{function}_spread"])
            lines[-1:] = [
                f"{t.ctype} {t.name}[{size + REGISTER_BLOCK_BYTES // t.itemsize}];",
                f"{function}_spread({t.source}, {t.name}, {wide}, lane_end - lane_tile);",
            ]
            continue
        if t.lane_step == "1" and not known:
            names.calls([f"geon_transpose_{t.itemsize}"])
            lines.append(f"geon_transpose_{t.itemsize}({t.source}, {t.step}, {t.name}, {wide}, "
                         f"{wide}, lane_end - lane_tile);")  # fmt: skip
            continue
        lines += for_loop("lane", "0", "lane_end - lane_tile", copy_lane(t, turns, wide))
    if made.others.tiles:
        lines += [f"{ctype} {name}[{size}];" for name, ctype, _ in made.others.tiles]
        at = f"(lane - lane_tile) * {wide} + turn"
        puts = [f"{name}[{at}] = {text};" for name, _, text in made.others.tiles]
        each = for_loop("turn", "0", wide, [*made.others.lines, *puts])
        lines += for_loop("lane", "lane_tile", "lane_end", each)
    return lines


def turns_of(made: PrintedPass, names: KernelNames) -> str:
    """Return the elements of a short row, as a factor in C."""
    turns = made.loops[-1].extent
    return str(turns) if isinstance(turns, int) else f"({names.length(turns)})"


def size_of_tile(made: PrintedPass) -> int:
    """Return the elements of a tile of short rows."""
    known = isinstance(made.loops[-1].extent, int)
    return lanes_of_tile(made) * width(made) if known else COLLAPSED_TILE_ELEMENTS


def patterns(made: PrintedPass, names: KernelNames) -> list[str]:
    """Return the statements of a task that fill tiles with values that all rows share."""
    return fill_repeated(made, made.patterns, "block", names)


def fill_repeated(
    made: PrintedPass, found: PrintedTiles, rows: str, names: KernelNames
) -> list[str]:
    """Return the statements that fill tiles with ``rows`` copies of one row's values."""
    if not found.tiles:
        return []
    turns = turns_of(made, names)
    lines = [f"{ctype} {name}[{size_of_tile(made)}];" for name, ctype, _ in found.tiles]
    puts = [f"{name}[turn] = {text};" for name, _, text in found.tiles]
    lines += for_loop("turn", "0", turns, [*found.lines, *puts])
    names.calls(["geon_repeat"])
    sizes = f"{turns}, {rows} * {turns}"
    return lines + [f"geon_repeat({name}, sizeof *{name}, {sizes});" for name, _, _ in found.tiles]


REPEAT = """\
GEON_INLINE void geon_repeat(void *elements, size_t size, int64_t count, int64_t all)
{
    for (int64_t done = count; done < all; done *= 2) {
        const int64_t left = all - done;
        memcpy((char *)elements + done * size, elements, (done < left ? done : left) * size);
    }
}
"""


def copy_lane(turned: TurnedLoad, turns: Size, wide: str) -> list[str]:
    """Return the statements that copy one lane into a tile.

    Rows of at most ``MAX_INTERLEAVED_ELEMENTS`` elements are unrolled, as compilers vectorise a
    short loop
    worse.
    """

    def put(turn: str) -> str:
        place = f"lane * ({turned.lane_step}) + {turn} * ({turned.step})"
        return f"{turned.name}[lane * {wide} + {turn}] = ({turned.source})[{place}];"

    if isinstance(turns, int) and turns <= MAX_INTERLEAVED_ELEMENTS:
        return [put(str(turn)) for turn in range(turns)]
    return for_loop("turn", "0", wide, [put("turn")])
