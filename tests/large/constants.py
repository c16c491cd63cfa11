"""Every constant at which work is done in another way, and the lengths that each gives the fuzz.

A constant is named by its file, the place in it and, where that has several numbers, the number;
its value is the one the scan of the source finds there, so that an entry whose number is gone
fails, and so does a number that has no entry: it gets lengths below, or a reason in ``unlisted``.
"""

from dataclasses import dataclass
from functools import cache

from .programs import Aim
from .scanning import found
from .unlisted import reason_of

LONGEST = 1 << 20  # a length "many times" a constant that is larger is this, and one more than it
NATIVE = "transformers/native/"


@dataclass(frozen=True)
class Constant:
    """A number of the source, and what is so long: roles of ``tests.large.roles``.

    ``each`` is how much of what the constant counts one element is: 4 for bytes of float32, some
    statements for work; ``plus`` is added to the number. ``many`` is how many times it is gone
    beyond, 0 where that is no use.
    """

    file: str
    where: str
    roles: tuple[str, ...]
    value: int | None = None
    each: tuple[float, ...] = (1,)
    many: float = 3
    plus: int = 0

    @property
    def name(self):
        module = self.file.rsplit("/", 1)[-1]
        return f"{module}:{self.where}" + ("" if self.value is None else f" {self.value}")

    def values(self):
        """The numbers that the source has at this place."""
        here = [n.value for n in found() if (n.file, n.where) == (self.file, self.where)]
        return [v for v in here if self.value is None or v == self.value]

    def lengths(self):
        """Pairs of where a length lies, and the length, for each value."""
        return [
            pair
            for value in self.values()
            for each in self.each
            for pair in around(int((int(value) + self.plus) / each), self.many)
        ]

    def aims(self):
        """An aim for each length, in each role where it lies near the constant."""
        return [
            Aim(self.name, near, role, length)
            for role in self.roles
            for near, length in self.lengths()
        ]


def around(value, many=3):
    """Lengths just below, at, just above and many times a value."""
    beyond = [("many", min(int(value * many) + 2, max(LONGEST + 1, value + 2)))] if many else []
    return [("below", max(1, value - 1)), ("at", value), ("above", value + 1), *beyond]


def _native(file, where, *roles, **options):
    return Constant(f"{NATIVE}{file}.py", where, roles, **options)


def _c(file, where, *roles, **more):
    return Constant(f"{NATIVE}c/{file}", where, roles, **more)


def _shared(file, where, *roles, **options):
    return Constant(f"transformers/{file}.py", where, roles, **options)


CONSTANTS = (
    # Loop nests: work is divided by statements, of which each element takes two to eight or so.
    _native("nests", "GRAIN", "size", "lane", "flat", value=1 << 17, each=(2, 3, 5)),
    _native("nests", "GRAIN", "size", "row", value=1 << 15, each=(1, 2, 4)),
    _native("nests", "GRAIN", "size", value=1 << 19, each=(1, 2, 4), many=2),
    _native("nests", "GRAIN", "lane", "row", value=16, many=4),
    _native("nest_divided", "PARTS", "size", "lane", "row", many=2000),
    _native("nest_rows", "FEW_ROWS", "lane", "beside"),
    _native("nest_divided", "FEW_TURNS", "wide_turns"),
    _native("nest_divided", "WIDE_RUNS", "wide_turns", each=(1, 1 / 64, 1 / 1024)),
    _native("nest_rows", "LONG_ROW", "row", "size"),
    _native("nest_rows", "MANY_ROWS", "lane", "few_rows", many=2),
    _native("nest_tasks", "ON_STACK", "row"),
    _native("stages", "TURNS", "backwards", "size", many=10),
    _native("caches", "LEAST", "size", "row", each=(4, 8), many=0),
    _native("past", "STAGE", "size", "row", "flat", each=(1, 2, 4, 8), many=20),
    _native("past", "SHORT", "size", "row", "across", many=30),
    _native("past", "LONG", "row", "across", many=9),
    _native("past", "PIECE", "joined", "bordered", each=(4, 8), many=2),
    _native("past", "MOST", "together", many=2),
    _native("tiles", "TILE", "lane", "across", "row", "columns_of_runs", many=15),
    _native("tiles", "WIDE", "across", each=(1 / 2, 1, 2, 4, 8), many=9),
    _native("tiles", "SHORT", "across"),
    _native("tiles", "TURNED", "across", many=9),
    _native("tiles", "LEAST_TURNED", "across", each=(4, 8), many=9),
    _native("tiles", "FLAT", "across", each=(2, 5, 16), many=9),
    _native("tiles", "INTERLEAVED", "across", many=9),
    _shared("printing/across", "SHORT_ROW", "across"),
    _native("beside", "turns_beside", "one_run", value=4, each=(1 / 4, 1 / 16)),
    _native("nest_divided", "RUNS", "one_run", each=(1 / 64, 1 / 1024)),
    _native("unit_texts", "transposes", "across", value=16, each=(1, 2, 4)),
    _native("unit_texts", "transposes", "across", "lane", value=8, many=20),
    _native("unit_texts", "transposes", "across", "lane", value=4, many=20),
    _native("nest_rows", "NestByRows.block_size", "lane", "across", value=64, many=20),
    _native("accumulate", "CHAIN", "lane", "row", each=(1, 1 / 8, 1 / 16), many=100),
    _native("accumulate", "TRUTHS", "size", "row"),
    _native("accumulate", "TRUTHS_OF_LANE", "row", many=20),
    _native("accumulate", "NARROW", "size", "row"),
    _native("accumulate", "FEW_NARROW", "row", "short_row", many=20),
    _shared("printing/scalars", "LANES", "lane", "across"),
    _shared("printing/strips", "STRIP", "size", "row", many=10),
    _shared("printing/strips", "SHORT", "size", "row", many=10),
    _shared("printing/strips", "MOST", "heavy", many=2),
    _shared("kernels/nests", "SHORT", "short_row"),
    _shared("kernels/nests", "BESIDE", "short_rows", many=20),
    _shared("kernels/short_forms", "COSTLY", "short_row", many=20),
    _shared("printing/scalars", "is_worse_known", "short_row", each=(1, 1 / 2)),
    _shared("kernels/nest_building", "BUFFERED", "row"),
    _shared("kernels/nests", "VECTORS", "read_ahead", "numbered", each=(1, 4, 8), many=2),
    _shared("kernels/pieces", "STRIDED", "strided", many=20),
    _shared("kernels/nests", "COPIED", "read_ahead", "turned_short", many=2),
    _shared("kernels/staged", "PERIOD", "read_ahead", "numbered", "strided", many=2),
    _shared("printing/lookups", "AHEAD", "looked_up"),
    _shared("printing/lookups", "NEAR", "looked_up", each=(4, 160), many=0),
    _shared("kernels/staged", "MOST", "loads", many=2),
    _shared("kernels/nest_space", "NEAR", "turned_short", many=2),
    _shared("kernels/nest_space", "FEW", "turned_short", many=9),
    # Joins: what is taken apart.
    _shared("kernels/pieces", "SMALL", "joined", "bordered"),
    _shared("kernels/pieces", "UNROLLED", "joined", "bordered", "parts_joined"),
    _shared("kernels/pieces", "THIN", "joined", "bordered"),
    _shared("kernels/pieces", "LONG", "joined", "bordered", many=20),
    _shared("kernels/pieces", "MOST", "parts_joined", many=2),
    _shared("kernels/pieces", "TEXT", "parts_joined", each=(4, 8), many=0),
    _native("together", "TOGETHER", "row", many=8),
    _native("together", "ENOUGH", "row", each=(1 / 4,)),
    _native("passes", "SHORT_ROW", "positions", each=(1 / 4, 1 / 8, 1 / 16), many=40),
    _native("passes", "LONG_ROW", "positions", each=(1 / 4, 1 / 8, 1 / 16), many=3),
    # Fusion: how many ops, and how long rows.
    _shared("lowering/fusion/fits", "BODY", "chain", many=2),
    _shared("lowering/fusion/fits", "EPILOGUE", "stored", many=2),
    _shared("lowering/fusion/facts", "ELEMENTARY", "heavy", each=(20,), many=4),
    _shared("lowering/fusion/repeats", "CHEAP_CHAIN", "cheap"),
    _shared("lowering/fusion/repeats", "TIMES", "divided_turns"),
    _shared("lowering/fusion/repeats", "DIVISIONS", "divided"),
    _shared("lowering/fusion/fits", "ROW", "row"),
    _shared("lowering/fusion/fits", "FEW_ROWS", "lane", "row"),
    _shared("lowering/fusion/fits", "BESIDE", "lane"),
    _shared("lowering/fusion/facts", "LONG", "matrix_vector", many=70),
    _shared("lowering/fusion/facts", "MANY", "matrices", many=2),
    _shared("lowering/fusion/recomputing", "LARGE", "bent", each=(4,), many=2),
    _shared("lowering/fusion/siblings", "NEAR", "cheap", many=0),
    _shared("lowering/fusion/fits", "small_rows", "row", value=1024),
    # Chains: what is worth one, and how rows are cut into blocks.
    _shared("lowering/blocks", "LARGE", "reduced_product", each=(4 * 600, 8 * 600), many=2),
    _shared("lowering/blocks", "FEWEST", "reduced_product"),
    _shared("sizes/blocks", "BLOCK", "reduced_product", each=(4 * 600, 8 * 600), many=9),
    _shared("sizes/blocks", "LEAST_ROWS", "reduced_product"),
    _shared("sizes/blocks", "MOST_ROWS", "reduced_product"),
    _shared("sizes/blocks", "BLOCKS", "reduced_batch", many=2),
    _shared("sizes/blocks", "FEWEST_ROWS", "reduced_product"),
    # Products of a few summed indices: which are loops.
    _shared("lowering/short_sums", "TERMS", "terms", many=2),
    _shared("lowering/short_sums", "LEAST", "elements_of_terms"),
    _shared("lowering/short_sums", "LONG", "run_of_terms"),
    _shared("lowering/short_sums", "AGAIN", "again"),
    _shared("lowering/short_sums", "SHORT", "run_of_terms", each=(1, 2, 3)),
    _shared("lowering/short_sums", "SMALL", "small_products", each=(1 / 2, 1, 2)),
    _shared("lowering/short_sums", "SQUARE", "small_products"),
    # Folds over what lies on both sides of kept axes: which are two.
    _shared("lowering/split_folds", "LONGEST", "run_behind", many=2),
    _shared("lowering/split_folds", "TURNS", "turns_before"),
    _shared("lowering/split_folds", "LEAST", "of_both_sides"),
    # Products: how they are cut, packed and stored.
    _native("product_shape", "GROUP", "rows"),
    _native("product_shape", "FEW", "rows", "columns"),
    _native("product_shape", "DOT_VECTORS", "thin_depth", each=(1 / 4, 1 / 8, 1 / 16, 1 / 32)),
    _native("product_shape", "DOT_ROWS", "rows", "columns"),
    _native("product_shape", "THIN", "thin"),
    _native("product_shape", "THIN_BYTES", "thin_depth", each=(4 * 2, 4 * 5, 4 * 25, 8 * 10)),
    _native("product_shape", "SHALLOW", "depth", "depth64", many=0),
    _native("product_shape", "LOWERED", "depth"),
    _native("product_shape", "TURNED", "few_columns", many=0),
    _native("product_shape", "NEAR", "near", each=(1,)),
    _native("product_shape", "NARROW", "columns", each=(1,)),
    _native("product_shape", "KEPT_FROM", "rows"),
    _native("product_shape", "KEPT_ROWS", "rows"),
    _native("product_shape", "LEAST_COLUMNS", "columns", many=17),
    _native("product_shape", "PANEL", "columns", many=5),
    _native("product_shape", "Shape.depth", "depth", value=384, many=5),
    _native("product_shape", "Shape.depth", "depth64", value=256, many=5),
    _native("product_shape", "Shape.few_elements", "parts", each=(4, 8)),
    _native("product_shape", "Shape.columns", "columns", "columns64", each=(4, 8), many=10),
    _native("product_shape", "Shape.packed_columns", "columns", value=4, each=(1 / 256,)),
    _native("product_shape", "Shape.packed_columns", "columns64", value=4, each=(1 / 128,)),
    _native("product_shape", "PACKED_BYTES", "depth", "depth64", each=(4 * 256,), many=2),
    _native("product_shape", "PACKED_WORK", "products", many=0),
    _native("product_shape", "HALVED_WORK", "narrow_products"),
    _native("product_shape", "CHAIN", "depth", many=400),
    _native("product_shape", "STREAM_ROWS", "rows"),
    _native("product_shape", "STREAMED", "depth"),
    _native("product_shape", "MOST_PARTS", "stream", each=(1 / (1 << 17),)),
    _native("product_shape", "MOST_PARTS", "streams", each=(1, 2)),
    _native("product_shape", "PART_DEPTH", "stream_depth", each=(1, 1 / 2, 1 / 3)),
    _native("product_shape", "PART_BYTES", "stream", each=(1, 1 / 2, 1 / 3)),
    _native("product_shape", "Shape.long_depth", "depth", "matrix_vector", value=8192, many=5),
    _native("product_shape", "Shape.long_stream", "depth", "matrix_vector", value=1024, many=5),
    _c("product_moves.h", "geon_copy_short", "columns", "depth", value=8),
    _c("product_moves.h", "geon_copy_short", "columns", "depth", value=4),
    _c("product_cut.h", "geon_cut", "rows", "columns", value=8),
    _c("product_cut.h", "geon_cut", "rows", "batch", value=4),
    _c("product_cut.h", "geon_cut", "products", value=100000),
    _native("product_shape", "MOST_ROWS", "rows"),
    _c("product_cut.h", "geon_cut", "rows", value=12),
    _c("product_cut.h", "geon_parts", "depth", value=16384, many=9),
    _c("product_cut.h", "geon_parts", "depth", value=8192, many=5),
    _c("product_cut.h", "geon_cut", "rows", value=16),
    _c("product_cut.h", "geon_cut", "depth", value=7),
    _c("product_cut.h", "geon_cut", "rows", value=96),
    _c("product_cut.h", "geon_cut", "depth", value=32, many=384),
    _c("product_cut.h", "geon_cut", "depth", value=10, many=384),
    _c("product_cut.h", "geon_cut", "products", value=200000, many=16),
    _c("product_cut.h", "geon_row_start", "rows", value=12, many=40),
    _c("product_cut.h", "geon_cut_packed", "rows", "columns", value=4, many=99),
    _c("product_cut.h", "geon_cut_packed", "rows", value=12, many=20),
    _c("product.c", "geon_is_thin", "thin_depth", value=8, each=(1 / 16, 1 / 8, 1 / 4)),
    _c("product_moves.h", "FEW", "few_columns", many=2),
    _c("product_moves.h", "geon_transpose", "few_columns", value=4, many=2),
    _c("product.c", "geon_lines", "columns", value=64),
    # The memory that products work in, which is planned for the largest of these blocks.
    _native("sizes/products", "ProductScratch.bytes", "products", value=200000, many=8),
    _native("sizes/products", "ProductScratch.most", "rows", "columns", value=4),
    _native("sizes/products", "ProductScratch.most", "rows", "columns", value=16),
    _native("sizes/products", "ProductScratch.most", "rows", "columns", value=32),
    _native("sizes/products", "ProductScratch._packed", "depth", value=8, many=48),
    _native("sizes/products", "ProductScratch._group", "depth", value=8, many=48),
    _native("sizes/products", "ProductScratch._packed", "rows", value=12, many=40),
    _native("sizes/products", "ProductScratch._direct", "rows", "columns", value=8),
    _native("sizes/products", "ProductScratch._direct", "rows", "columns", value=4),
    _native("sizes/products", "ProductScratch._direct", "rows", "columns", value=16),
    _native("sizes/products", "ProductScratch._direct", "depth", value=32, each=(1 / 384, 1 / 256)),
    _native("sizes/products", "ProductScratch._direct", "depth", value=10, each=(1 / 384, 1 / 256)),
    _c("product_block.h", "geon_pack_left", "rows", value=12),
    _c("product_rows.h", "MOST", "rows", value=4),
    _c("product_rows.h", "UNROLL", "depth", value=8),
    _c("product_rows.h", "geon_stream", "columns", value=16384, each=(16, 32)),
    _c("product_rows.h", "geon_dots", "columns", value=4),
    _c("product_rows.h", "geon_dots", "columns", value=8),
    _native("product_shape", "Shape.heights", "rows", value=12),
    _native("product_shape", "Shape.heights", "rows", value=4),
    _native("product_shape", "Shape.heights", "rows", value=6),
    # The library.
    _native("draws", "RUN", "bits", each=(1, 2), many=50),
    _c("random_words.c", "NAME", "bits", value=64),
    _shared("kernels/draws", "SIDE_BY_SIDE", "bits"),
    _native("sizes/prefixes", "WIDTH", "beside"),
    _native("prefix", "ROWS", "running_rows"),
    _native("sizes/prefixes", "PIECE", "running", each=(1, 1 / 4), many=9),
    _native("sizes/prefixes", "LEAST_ROWS", "running_rows", each=(1, 1 / 4)),
    _native("sizes/prefixes", "FEW_LINES", "running_lines"),
    _native("prefix", "GRAIN", "running", each=(16,)),
    _c("cumulative.c", "NAME", "running", value=7, many=40),
    _c("scan.h", "LANES", "running", "beside", value=8, many=4),
    _c("scan.h", "LANES", "running", "beside", value=4),
    _c("cumulative.c", "PART", "beside", value=8, each=(1 / 8,)),
    _c("cumulative.c", "PART", "beside", value=9, each=(1 / 8,)),
    _native("sizes/scatters", "GRAIN", "added", "scattered", each=(1, 3), many=4),
    _native("scattering", "COLUMNS", "scattered", many=3),
    _native("sizes/scatters", "FEW_PLACES", "places", each=(1 / 4096,)),
    _native("sizes/scatters", "MOST_PARTS", "places", each=(1 / 256, 1)),
    _native("scattering", "PIECE", "places", many=2),
    _native("scattering", "FAR", "far_places", each=(4, 8, 16), many=0),
    _native("scattering", "AHEAD", "far_values"),
    _native("scattering", "LISTED", "far_values", plus=1 << 16),
    _native("sizes/scatters", "GRAIN", "far_values"),
    _c("scatter.c", "PART", "scattered", value=4),
    _c("scatter.c", "PART", "scattered", value=8),
    _c("check_finite.h", "NAME", "finite", many=9),
    _c("top_k.c", "SCANNED", "most", value=64),
    _c("top_k.c", "SCANNED", "line", value=4),
    _c("top_k.c", "PART", "line32", value=64),
    _c("sort_rows.h", "MOST_KEPT", "most"),
    _c("sort_rows.h", "FEWEST_TURNED", "line", "lines"),
    _c("sort_lines.h", "FEWEST_COUNTED", "line8"),
    _c("sort_columns.h", "PART", "bools", value=255),
    _c("sort_counts.h", "PART", "bools", value=128),
    _native("sorting", "MOST_ROWS", "line", "line8", "line16", "line32", "line64", each=(1, 2)),
    _native("sizes/sorts", "NARROW_ROWS", "line", "line8", "line16", "line32", "line64"),
    _native("sizes/sorts", "TILE", "line32", each=(16, 32, 64), many=0),
    _native("sorting", "SHORTEST_SHARED", "line32", many=2),
    _c(
        "sort_quick.h", "LONGEST_BLOCK", "line32", "line64", value=16, each=(1 / 4, 1 / 8, 1 / 16)
    ),  # lanes of a vector
    _c("sort_prefix.h", "LONGEST_RUN", "line64"),
    _c("sort_network.h", "PART", "lines", "columns", value=16),
    _native("sizes/sorts", "GRAIN", "line", "extreme"),
    _c("sort_words.h", "FEW", "line8", value=24, plus=8),
    _c("sort_words.h", "FEW", "line16", value=24, plus=16),
    _c("sort_words.h", "FEW", "line32", value=24, plus=32),
    _c("sort_words.h", "FEW", "line64", value=24, plus=64),
    _c("sort_words.h", "PART", "line", value=256),
    _c("sort_vector.h", "VECTOR_BYTES", "lines", value=64, each=(1, 2, 4, 8), many=9),
    _c("extreme.c", "PART", "extreme", many=9),
    _c("extreme.c", "BLOCK", "extreme", many=9),
    _c("extreme.c", "SHORT", "extreme", many=9),
    # Calls, results and memory.
    _native("result_pool", "POOLED_BYTES", "size", each=(4, 2, 8), many=2),
    _native("runtime", "LONG", "size"),
    _native("emit", "RUN_LINES", "steps", many=0),
    _c("pool.c", "MOST_SHARES", "lane", "size", many=1000),
    _c("pool.c", "STACK_BYTES", "row", each=(8, 4), many=0),
    _shared("runtime/place", "SMALL_PLAN", "steps", many=0),
    _shared("lowering/order", "MAX_READERS", "results"),
    _shared("lowering/order", "MAX_STEPS", "steps", many=0),
    # NumPy.
    _shared("numpy/runtime", "_blocks", "shifted"),
    _shared("numpy/operands", "CARVED_TOGETHER", "results"),
    _shared("numpy/operands", "NAMED_BY_VALUE", "results"),
    _shared("numpy/emit", "ADDED_UP", "results"),
    _shared("numpy/parts", "PART", "steps", each=(1,), many=0),
    _shared("numpy/long_sums", "RUNNING", "running", many=9),
    _shared("numpy/long_sums", "CHAIN", "lane", "row", "beside", many=100),
    _shared("numpy/long_sums", "PIECE", "size", "lane", "flat", many=2),
    _shared("numpy/long_sums", "LONG_PRODUCT", "depth", "matrix_vector"),
    _shared("numpy/long_sums", "VECTOR", "matrix_vector", many=30),
    _shared("numpy/long_sums", "_matrices", "deep_rows", many=0),
    Constant("op_graph/random/philox.py", "_BLOCK", ("bits",), each=(1,), many=9),
    Constant("op_graph/building/constants.py", "SMALL_BYTES", ("constant",), many=40),
)


@cache
def aims():
    """All aims, each constant's together."""
    together: dict[str, list[Aim]] = {}
    for constant in CONSTANTS:
        together.setdefault(constant.name, []).extend(constant.aims())
    return together


def unlisted():
    """Numbers of the source that no entry has, and that no reason excuses."""
    listed = {(c.file, c.where, v) for c in CONSTANTS for v in c.values()}
    return [f"{n} (line {line})" for n, line in found().items()
            if tuple(n) not in listed and reason_of(n) is None]  # fmt: skip


def stale():
    """Entries whose number the source no longer has."""
    return [c.name for c in CONSTANTS if not c.values()]
