"""A pass across memory as C: what adjoins along lanes is turned in tiles and read along stores.

Tiles are small enough for the nearest caches; their rows are padded so that they do not meet in one
set of these.
"""

from __future__ import annotations

from ....op_graph.axes.affine import Size
from ...printing.nests.pass_text import PrintedPass, PrintedTiles, TurnedLoad, first_turn
from ..names.loop_lines import for_loop, indented
from ..names.naming import KernelNames

TILE = 64  # the lanes of a tile of a transpose
WIDE = 512  # bytes of a row of it, so that most lines that it stores into are stored as a whole
SHORT = 512  # lanes up to which all of a row that is read come before the next ones
APART = 8  # elements between the rows of a tile
FLAT = 1024  # elements of a tile of short rows
BLOCK = 32  # bytes of a row that blocks of registers hold
TURNED = 128  # rows and columns of a square of what is turned and does not change
LEAST_TURNED = 256  # bytes of a line from which on that is worth it,
WORD = 4  # and of an element: smaller ones fill no line with a block's rows
INTERLEAVED = 4  # elements of a row that compilers put beside each other in vectors


def width(made: PrintedPass) -> int:
    """How many turns of its last loop a tile of a pass has: all, where these are few."""
    sizes = [load.itemsize for load in made.turned] or [store.itemsize for store in made.stores]
    wide, turns = max(WIDE // sum(sizes) // TILE, 1) * TILE, made.loops[-1].extent
    return turns if isinstance(turns, int) and 0 < turns <= 2 * wide else wide


def lanes_of_tile(made: PrintedPass) -> int:
    """How many lanes a tile of a pass has: more where rows are short and adjoin."""
    return max(FLAT // width(made) // TILE, 1) * TILE if made.flat else TILE


def walks_along(made: PrintedPass, lanes: Size) -> bool:
    """Whether all of a few lanes of a tile's turns come before its next turns: rows that are short
    are then read from end to end, and a single tile's side of them may still be divided.
    """
    if not made.crosses or len(made.loops) != 1:
        return False
    turns = made.loops[0].extent
    if not isinstance(turns, int) or not isinstance(lanes, int):
        return False
    return turns > width(made) and lanes <= min(turns, SHORT)


def tiles(start: str, size: str, low: str, high: str, body: list[str]) -> list[str]:
    """A loop over the tiles of one side."""
    end = "tile_end" if start == "tile" else "lane_end"
    stop = f"{start} + {size} < {high} ? {start} + {size} : {high}"
    head = f"for (int64_t {start} = {low}; {start} < {high}; {start} += {size}) {{"
    return [head, *indented([f"const int64_t {end} = {stop};", *body]), "}"]


def tiled(
    made: PrintedPass,
    names: KernelNames,
    along: list[str],
    cut: tuple[str, str] | None,
    passes: bool = False,
) -> list[str]:
    """The loops of a pass across memory, around those ``along`` one row of a tile.

    Lanes are taken a tile's side at a time, however many a block has. The last loop is ``cut``
    where it is divided. What it stores ``passes`` by the caches where that is more than these hold.
    """
    *outer, last = made.loops
    wide = width(made)
    if made.flat:
        assert TILE * made.most <= FLAT
        few = TILE if made.most else lanes_of_tile(made)
        size = str(few) if made.most or isinstance(last.extent, int) else "block"
        by_tiles = tiles("lane_tile", size, "0", "lanes", [*filled(made, names), *along])
        # What a group shares is that of its first lane, too, where all lanes have an array of it.
        shared = PrintedTiles(["const int64_t lane = 0;", *made.grouped.lines], made.grouped.tiles)
        return [*repeated(made, shared, "lanes", names), *by_tiles]
    lines = []
    bounds = cut or ("0", names.length(last.extent))
    for t in made.turned:
        lines.append(f"{t.ctype} {t.name}[{TILE}][{wide + APART}];")
        names.calls([f"geon_transpose_{t.itemsize}"])
        sides = "tile_end - tile, lane_end - lane_tile"
        lines.append(f"geon_transpose_{t.itemsize}({t.source}, {t.step}, {t.name}, "
                     f"{wide + APART}, {sides});")  # fmt: skip
    lines += for_loop("lane", "lane_tile", "lane_end", along)
    body = tiles("tile", str(wide), *bounds, lines)
    for turns in reversed(outer):
        body = for_loop(turns.name, "0", names.length(turns.extent), body)
    by_tiles = tiles("lane_tile", str(TILE), "0", "lanes", body)
    return straight(made, names, bounds, by_tiles, passes) if is_copy(made) else by_tiles


def is_copy(made: PrintedPass) -> bool:
    """Whether a pass does nothing but turn one operand, whose lines blocks of registers hold."""
    if not made.copies or len(made.loops) != 1 or (len(made.turned), len(made.stores)) != (1, 1):
        return False
    (turned,), (store,) = made.turned, made.stores
    return store.start is not None and turned.itemsize == store.itemsize >= WORD


def straight(
    made: PrintedPass,
    names: KernelNames,
    bounds: tuple[str, str],
    by_tiles: list[str],
    passes: bool,
) -> list[str]:
    """A pass that is a copy, written where it is to lie; ``by_tiles`` where it ``passes`` by the
    caches, or where steps let it.
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
    return [f"if ({' && '.join(flags)}) {{", *indented(call), "} else {", *indented(by_tiles), "}"]


def filled(made: PrintedPass, names: KernelNames) -> list[str]:
    """The tiles of a pass of short rows, which lie in them as they are stored."""
    turns, lines = made.loops[-1].extent, []
    size, wide = size_of_tile(made), turns_of(made, names)
    for t in made.turned:
        lines.append(f"{t.ctype} {t.name}[{size}];")
        known = isinstance(turns, int) and (turns <= INTERLEAVED and turns * t.itemsize < BLOCK)
        if t.step == "0" and not (isinstance(turns, int) and turns <= INTERLEAVED):
            function = f"geon_transpose_{t.itemsize}"
            names.calls([function, f"{function}_spread"])
            lines[-1:] = [
                f"{t.ctype} {t.name}[{size + BLOCK // t.itemsize}];",
                f"{function}_spread({t.source}, {t.name}, {wide}, lane_end - lane_tile);",
            ]
            continue
        if t.lane_step == "1" and not known:
            names.calls([f"geon_transpose_{t.itemsize}"])
            lines.append(f"geon_transpose_{t.itemsize}({t.source}, {t.step}, {t.name}, {wide}, "
                         f"{wide}, lane_end - lane_tile);")  # fmt: skip
            continue
        lines += for_loop("lane", "0", "lane_end - lane_tile", placed(t, turns, wide))
    if made.others.tiles:
        lines += [f"{ctype} {name}[{size}];" for name, ctype, _ in made.others.tiles]
        at = f"(lane - lane_tile) * {wide} + turn"
        puts = [f"{name}[{at}] = {text};" for name, _, text in made.others.tiles]
        each = for_loop("turn", "0", wide, [*made.others.lines, *puts])
        lines += for_loop("lane", "lane_tile", "lane_end", each)
    return lines


def turns_of(made: PrintedPass, names: KernelNames) -> str:
    """The elements of a short row, as a factor."""
    turns = made.loops[-1].extent
    return str(turns) if isinstance(turns, int) else f"({names.length(turns)})"


def size_of_tile(made: PrintedPass) -> int:
    """The elements of a tile of short rows."""
    known = isinstance(made.loops[-1].extent, int)
    return lanes_of_tile(made) * width(made) if known else FLAT


def patterns(made: PrintedPass, names: KernelNames) -> list[str]:
    """The statements of a task that make what is the same in all rows of a tile, row after row."""
    return repeated(made, made.patterns, "block", names)


def repeated(made: PrintedPass, found: PrintedTiles, rows: str, names: KernelNames) -> list[str]:
    """The statements that make patterns of rows, so many ``rows`` of each."""
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


def placed(turned: TurnedLoad, turns: Size, wide: str) -> list[str]:
    """The elements of one lane put into a tile, each by itself where compilers put them beside each
    other: they make no vectors of a loop over three.
    """

    def put(turn: str) -> str:
        place = f"lane * ({turned.lane_step}) + {turn} * ({turned.step})"
        return f"{turned.name}[lane * {wide} + {turn}] = ({turned.source})[{place}];"

    if isinstance(turns, int) and turns <= INTERLEAVED:
        return [put(str(turn)) for turn in range(turns)]
    return for_loop("turn", "0", wide, [put("turn")])
