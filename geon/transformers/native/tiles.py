"""A pass across memory as C: what adjoins along lanes is turned in tiles and read along stores.

Tiles are small enough for the nearest caches; their rows are padded so that they do not meet in one
set of these.
"""

from __future__ import annotations

from ...op_graph.affine import Size
from ..printing.printed import PrintedPass, TurnedLoad
from .loops import for_loop, indented
from .naming import KernelNames

TILE = 64  # the lanes of a tile of a transpose
WIDE = 512  # bytes of a row of it, so that most lines that it stores into are stored as a whole
SHORT = 512  # lanes up to which all of a row that is read come before the next ones
APART = 8  # elements between the rows of a tile
FLAT = 1024  # elements of a tile of short rows
BLOCK = 32  # bytes of a row that blocks of registers hold
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


def tiles(start: str, size: int, low: str, high: str, body: list[str]) -> list[str]:
    """A loop over the tiles of one side."""
    end = "tile_end" if start == "tile" else "lane_end"
    stop = f"{start} + {size} < {high} ? {start} + {size} : {high}"
    head = f"for (int64_t {start} = {low}; {start} < {high}; {start} += {size}) {{"
    return [head, *indented([f"const int64_t {end} = {stop};", *body]), "}"]


def tiled(
    made: PrintedPass, names: KernelNames, along: list[str], cut: tuple[str, str] | None
) -> list[str]:
    """The loops of a pass across memory, around those ``along`` one row of a tile.

    Lanes are taken a tile's side at a time, however many a block has. The last loop is ``cut``
    where it is divided.
    """
    *outer, last = made.loops
    wide = width(made)
    if made.flat:
        return tiles("lane_tile", lanes_of_tile(made), "0", "lanes", [*filled(made, names), *along])
    lines = []
    for t in made.turned:
        lines.append(f"{t.ctype} {t.name}[{TILE}][{wide + APART}];")
        names.calls([f"geon_transpose_{t.itemsize}"])
        sides = "tile_end - tile, lane_end - lane_tile"
        lines.append(f"geon_transpose_{t.itemsize}({t.source}, {t.step}, {t.name}, "
                     f"{wide + APART}, {sides});")  # fmt: skip
    lines += for_loop("lane", "lane_tile", "lane_end", along)
    body = tiles("tile", wide, *(cut or ("0", names.length(last.extent))), lines)
    for turns in reversed(outer):
        body = for_loop(turns.name, "0", names.length(turns.extent), body)
    return tiles("lane_tile", TILE, "0", "lanes", body)


def filled(made: PrintedPass, names: KernelNames) -> list[str]:
    """The tiles of a pass of short rows, which lie in them as they are stored."""
    wide, lines = width(made), []
    for t in made.turned:
        lines.append(f"{t.ctype} {t.name}[{lanes_of_tile(made) * wide}];")
        if t.lane_step == "1" and (wide > INTERLEAVED or wide * t.itemsize >= BLOCK):
            names.calls([f"geon_transpose_{t.itemsize}"])
            lines.append(f"geon_transpose_{t.itemsize}({t.source}, {t.step}, {t.name}, {wide}, "
                         f"{wide}, lane_end - lane_tile);")  # fmt: skip
            continue
        lines += for_loop("lane", "0", "lane_end - lane_tile", placed(t, wide))
    return lines


def placed(turned: TurnedLoad, wide: int) -> list[str]:
    """The elements of one lane put into a tile, each by itself where compilers put them beside each
    other: they make no vectors of a loop over three.
    """

    def put(turn: str) -> str:
        place = f"lane * ({turned.lane_step}) + {turn} * ({turned.step})"
        return f"{turned.name}[lane * {wide} + {turn}] = ({turned.source})[{place}];"

    if wide <= INTERLEAVED:
        return [put(str(turn)) for turn in range(wide)]
    return for_loop("turn", "0", str(wide), [put("turn")])
