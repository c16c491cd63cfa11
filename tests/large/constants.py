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
    _native("nests/nest_text", "GRAIN", "size", "lane", "flat", value=1 << 17, each=(2, 3, 5)),
    _native("nests/nest_text", "GRAIN", "size", "row", value=1 << 15, each=(1, 2, 4)),
    _native("nests/nest_text", "GRAIN", "size", value=1 << 19, each=(1, 2, 4), many=2),
    _native("nests/nest_text", "GRAIN", "lane", "row", value=16, many=4),
    _native("nests/split_reduction", "PARTS", "size", "lane", "row", many=2000),
    _native("nests/row_loops", "FEW_ROWS", "lane", "beside"),
    _native("nests/split_reduction", "FEW_TURNS", "wide_turns"),
    _native("nests/split_reduction", "WIDE_RUNS", "wide_turns", each=(1, 1 / 64, 1 / 1024)),
    _native("nests/row_loops", "LONG_ROW", "row", "size"),
    _native("nests/row_loops", "MANY_ROWS", "lane", "few_rows", many=2),
    _native("nests/task_text", "ON_STACK", "row"),
    _native("nests/buffered_loads", "TURNS", "backwards", "size", many=10),
    _native("machine/caches", "LEAST", "size", "row", each=(4, 8), many=0),
    _native(
        "vectors/nontemporal_stores", "STAGE", "size", "row", "flat", each=(1, 2, 4, 8), many=20
    ),
    _native("vectors/nontemporal_stores", "SHORT", "size", "row", "across", many=30),
    _native("vectors/nontemporal_stores", "LONG", "row", "across", many=9),
    _native("vectors/nontemporal_stores", "PIECE", "joined", "bordered", each=(4, 8), many=2),
    _native("vectors/nontemporal_stores", "MOST", "together", many=2),
    _native("vectors/transpose_tiles", "TILE", "lane", "across", "row", "columns_of_runs", many=15),
    _native("vectors/transpose_tiles", "WIDE", "across", each=(1 / 2, 1, 2, 4, 8), many=9),
    _native("vectors/transpose_tiles", "SHORT", "across"),
    _native("vectors/transpose_tiles", "TURNED", "across", many=9),
    _native("vectors/transpose_tiles", "LEAST_TURNED", "across", each=(4, 8), many=9),
    _native("vectors/transpose_tiles", "FLAT", "across", each=(2, 5, 16), many=9),
    _native("vectors/transpose_tiles", "INTERLEAVED", "across", many=9),
    _shared("printing/nests/transposed_passes", "SHORT_ROW", "across"),
    _native("nests/collapsed_lanes", "turns_beside", "one_run", value=4, each=(1 / 4, 1 / 16)),
    _native("nests/split_reduction", "RUNS", "one_run", each=(1 / 64, 1 / 1024)),
    _native("emit/unit_texts", "transposes", "across", value=16, each=(1, 2, 4)),
    _native("emit/unit_texts", "transposes", "across", "lane", value=8, many=20),
    _native("emit/unit_texts", "transposes", "across", "lane", value=4, many=20),
    _native("nests/row_loops", "NestByRows.block_size", "lane", "across", value=64, many=20),
    _native("nests/accumulators", "CHAIN", "lane", "row", each=(1, 1 / 8, 1 / 16), many=100),
    _native("nests/accumulators", "TRUTHS", "size", "row"),
    _native("nests/accumulators", "TRUTHS_OF_LANE", "row", many=20),
    _native("nests/accumulators", "NARROW", "size", "row"),
    _native("nests/accumulators", "FEW_NARROW", "row", "short_row", many=20),
    _shared("printing/nests/scalar_statements", "LANES", "lane", "across"),
    _shared("printing/nests/vector_function_passes", "STRIP", "size", "row", many=10),
    _shared("printing/nests/vector_function_passes", "SHORT", "size", "row", many=10),
    _shared("printing/nests/vector_function_passes", "MOST", "heavy", many=2),
    _shared("kernels/nests/nest_lowering", "SHORT", "short_row"),
    _shared("kernels/nests/nest_lowering", "BESIDE", "short_rows", many=20),
    _shared("kernels/nests/short_row_variants", "COSTLY", "short_row", many=20),
    _shared("printing/nests/scalar_statements", "is_worse_known", "short_row", each=(1, 1 / 2)),
    _shared("kernels/nests/nest_builder", "BUFFERED", "row"),
    _shared(
        "kernels/nests/nest_lowering", "VECTORS", "read_ahead", "numbered", each=(1, 4, 8), many=2
    ),
    _shared("kernels/nests/index_set_splitting", "STRIDED", "strided", many=20),
    _shared("kernels/nests/nest_lowering", "COPIED", "read_ahead", "turned_short", many=2),
    _shared("kernels/nests/buffered_loads", "PERIOD", "read_ahead", "numbered", "strided", many=2),
    _shared("printing/nests/gather_prefetch", "AHEAD", "looked_up"),
    _shared("printing/nests/gather_prefetch", "NEAR", "looked_up", each=(4, 160), many=0),
    _shared("kernels/nests/buffered_loads", "MOST", "loads", many=2),
    _shared("kernels/nests/iteration_space", "NEAR", "turned_short", many=2),
    _shared("kernels/nests/iteration_space", "FEW", "turned_short", many=9),
    # Joins: what is taken apart.
    _shared("kernels/nests/index_set_splitting", "SMALL", "joined", "bordered"),
    _shared("kernels/nests/index_set_splitting", "UNROLLED", "joined", "bordered", "parts_joined"),
    _shared("kernels/nests/index_set_splitting", "THIN", "joined", "bordered"),
    _shared("kernels/nests/index_set_splitting", "LONG", "joined", "bordered", many=20),
    _shared("kernels/nests/index_set_splitting", "MOST", "parts_joined", many=2),
    _shared("kernels/nests/index_set_splitting", "TEXT", "parts_joined", each=(4, 8), many=0),
    _native("vectors/unroll_jam_columns", "TOGETHER", "row", many=8),
    _native("vectors/unroll_jam_columns", "ENOUGH", "row", each=(1 / 4,)),
    _native("nests/pass_loops", "SHORT_ROW", "positions", each=(1 / 4, 1 / 8, 1 / 16), many=40),
    _native("nests/pass_loops", "LONG_ROW", "positions", each=(1 / 4, 1 / 8, 1 / 16), many=3),
    # Fusion: how many ops, and how long rows.
    _shared("lowering/fusion/legality", "BODY", "chain", many=2),
    _shared("lowering/fusion/legality", "EPILOGUE", "stored", many=2),
    _shared("lowering/fusion/op_facts", "ELEMENTARY", "heavy", each=(20,), many=4),
    _shared("lowering/fusion/duplication", "CHEAP_CHAIN", "cheap"),
    _shared("lowering/fusion/duplication", "TIMES", "divided_turns"),
    _shared("lowering/fusion/duplication", "DIVISIONS", "divided"),
    _shared("lowering/fusion/legality", "ROW", "row"),
    _shared("lowering/fusion/legality", "FEW_ROWS", "lane", "row"),
    _shared("lowering/fusion/legality", "BESIDE", "lane"),
    _shared("lowering/fusion/op_facts", "LONG", "matrix_vector", many=70),
    _shared("lowering/fusion/op_facts", "MANY", "matrices", many=2),
    _shared("lowering/fusion/recomputed_stores", "LARGE", "bent", each=(4,), many=2),
    _shared("lowering/fusion/horizontal_fusion", "NEAR", "cheap", many=0),
    _shared("lowering/fusion/legality", "small_rows", "row", value=1024),
    # Chains: what is worth one, and how rows are cut into blocks.
    _shared(
        "lowering/fusion/chain_fusion", "LARGE", "reduced_product", each=(4 * 600, 8 * 600), many=2
    ),
    _shared("lowering/fusion/chain_fusion", "FEWEST", "reduced_product"),
    _shared("sizes/blocks", "BLOCK", "reduced_product", each=(4 * 600, 8 * 600), many=9),
    _shared("sizes/blocks", "LEAST_ROWS", "reduced_product"),
    _shared("sizes/blocks", "MOST_ROWS", "reduced_product"),
    _shared("sizes/blocks", "BLOCKS", "reduced_batch", many=2),
    _shared("sizes/blocks", "FEWEST_ROWS", "reduced_product"),
    # Products of a few summed indices: which are loops.
    _shared("lowering/fusion/thin_products", "TERMS", "terms", many=2),
    _shared("lowering/fusion/thin_products", "LEAST", "elements_of_terms"),
    _shared("lowering/fusion/thin_products", "LONG", "run_of_terms"),
    _shared("lowering/fusion/thin_products", "AGAIN", "again"),
    _shared("lowering/fusion/thin_products", "SHORT", "run_of_terms", each=(1, 2, 3)),
    _shared("lowering/fusion/thin_products", "SMALL", "small_products", each=(1 / 2, 1, 2)),
    _shared("lowering/fusion/thin_products", "SQUARE", "small_products"),
    # Folds over what lies on both sides of kept axes: which are two.
    _shared("lowering/rules/split_reductions", "LONGEST", "run_behind", many=2),
    _shared("lowering/rules/split_reductions", "TURNS", "turns_before"),
    _shared("lowering/rules/split_reductions", "LEAST", "of_both_sides"),
    # Products: how they are cut, packed and stored.
    _native("sizes/blocking", "GROUP", "rows"),
    _native("sizes/blocking", "FEW", "rows", "columns"),
    _native(
        "sizes/blocking",
        "DOT_VECTORS",
        "thin_depth",
        each=(1 / 4, 1 / 8, 1 / 16, 1 / 32),
    ),
    _native("sizes/blocking", "DOT_ROWS", "rows", "columns"),
    _native("sizes/blocking", "THIN", "thin"),
    _native(
        "sizes/blocking",
        "THIN_BYTES",
        "thin_depth",
        each=(4 * 2, 4 * 5, 4 * 25, 8 * 10),
    ),
    _native("sizes/blocking", "SHALLOW", "depth", "depth64", many=0),
    _native("sizes/blocking", "LOWERED", "depth"),
    _native("sizes/blocking", "TURNED", "few_columns", many=0),
    _native("sizes/blocking", "NEAR", "near", each=(1,)),
    _native("sizes/blocking", "NARROW", "columns", each=(1,)),
    _native("sizes/blocking", "KEPT_FROM", "rows"),
    _native("sizes/blocking", "KEPT_ROWS", "rows"),
    _native("sizes/blocking", "LEAST_COLUMNS", "columns", many=17),
    _native("sizes/blocking", "PANEL", "columns", many=5),
    _native("sizes/blocking", "Shape.depth", "depth", value=384, many=5),
    _native("sizes/blocking", "Shape.depth", "depth64", value=256, many=5),
    _native("sizes/blocking", "Shape.few_elements", "parts", each=(4, 8)),
    _native("sizes/blocking", "Shape.columns", "columns", "columns64", each=(4, 8), many=10),
    _native("sizes/blocking", "Shape.packed_columns", "columns", value=4, each=(1 / 256,)),
    _native("sizes/blocking", "Shape.packed_columns", "columns64", value=4, each=(1 / 128,)),
    _native("sizes/blocking", "PACKED_BYTES", "depth", "depth64", each=(4 * 256,), many=2),
    _native("sizes/blocking", "PACKED_WORK", "products", many=0),
    _native("sizes/blocking", "HALVED_WORK", "narrow_products"),
    _native("sizes/blocking", "CHAIN", "depth", many=400),
    _native("sizes/blocking", "STREAM_ROWS", "rows"),
    _native("sizes/blocking", "STREAMED", "depth"),
    _native("sizes/blocking", "MOST_PARTS", "stream", each=(1 / (1 << 17),)),
    _native("sizes/blocking", "MOST_PARTS", "streams", each=(1, 2)),
    _native("sizes/blocking", "PART_DEPTH", "stream_depth", each=(1, 1 / 2, 1 / 3)),
    _native("sizes/blocking", "PART_BYTES", "stream", each=(1, 1 / 2, 1 / 3)),
    _native(
        "sizes/blocking",
        "Shape.long_depth",
        "depth",
        "matrix_vector",
        value=8192,
        many=5,
    ),
    _native(
        "sizes/blocking",
        "Shape.long_stream",
        "depth",
        "matrix_vector",
        value=1024,
        many=5,
    ),
    _c("product_moves.h", "geon_copy_short", "columns", "depth", value=8),
    _c("product_moves.h", "geon_copy_short", "columns", "depth", value=4),
    _c("product_cut.h", "geon_cut", "rows", "columns", value=8),
    _c("product_cut.h", "geon_cut", "rows", "batch", value=4),
    _c("product_cut.h", "geon_cut", "products", value=100000),
    _native("sizes/blocking", "MOST_ROWS", "rows"),
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
    _native("sizes/blocking", "Shape.heights", "rows", value=12),
    _native("sizes/blocking", "Shape.heights", "rows", value=4),
    _native("sizes/blocking", "Shape.heights", "rows", value=6),
    # The library.
    _native("nests/random_buffer", "RUN", "bits", each=(1, 2), many=50),
    _c("random_words.c", "NAME", "bits", value=64),
    _shared("kernels/nests/random_runs", "SIDE_BY_SIDE", "bits"),
    _native("sizes/prefixes", "WIDTH", "beside"),
    _native("library/prefix_sums", "ROWS", "running_rows"),
    _native("sizes/prefixes", "PIECE", "running", each=(1, 1 / 4), many=9),
    _native("sizes/prefixes", "LEAST_ROWS", "running_rows", each=(1, 1 / 4)),
    _native("sizes/prefixes", "FEW_LINES", "running_lines"),
    _native("library/prefix_sums", "GRAIN", "running", each=(16,)),
    _c("cumulative.c", "NAME", "running", value=7, many=40),
    _c("scan.h", "LANES", "running", "beside", value=8, many=4),
    _c("scan.h", "LANES", "running", "beside", value=4),
    _c("cumulative.c", "PART", "beside", value=8, each=(1 / 8,)),
    _c("cumulative.c", "PART", "beside", value=9, each=(1 / 8,)),
    _native("sizes/scatters", "GRAIN", "added", "scattered", each=(1, 3), many=4),
    _native("library/scattering", "COLUMNS", "scattered", many=3),
    _native("sizes/scatters", "FEW_PLACES", "places", each=(1 / 4096,)),
    _native("sizes/scatters", "MOST_PARTS", "places", each=(1 / 256, 1)),
    _native("library/scattering", "PIECE", "places", many=2),
    _native("library/scattering", "FAR", "far_places", each=(4, 8, 16), many=0),
    _native("library/scattering", "AHEAD", "far_values"),
    _native("library/scattering", "LISTED", "far_values", plus=1 << 16),
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
    _native(
        "library/sorting", "MOST_ROWS", "line", "line8", "line16", "line32", "line64", each=(1, 2)
    ),
    _native("sizes/sorts", "NARROW_ROWS", "line", "line8", "line16", "line32", "line64"),
    _native("sizes/sorts", "TILE", "line32", each=(16, 32, 64), many=0),
    _native("library/sorting", "SHORTEST_SHARED", "line32", many=2),
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
    _native("runtime/result_pool", "POOLED_BYTES", "size", each=(4, 2, 8), many=2),
    _native("runtime/bound_program", "LONG", "size"),
    _native("emit/module_text", "RUN_LINES", "steps", many=0),
    _c("pool.c", "MOST_SHARES", "lane", "size", many=1000),
    _c("pool.c", "STACK_BYTES", "row", each=(8, 4), many=0),
    _shared("runtime/arena", "SMALL_PLAN", "steps", many=0),
    _shared("lowering/planning/kernel_order", "MAX_READERS", "results"),
    _shared("lowering/planning/kernel_order", "MAX_STEPS", "steps", many=0),
    # NumPy.
    _shared("numpy/runtime", "_blocks", "shifted"),
    _shared("numpy/arrays", "CARVED_TOGETHER", "results"),
    _shared("numpy/arrays", "NAMED_BY_VALUE", "results"),
    _shared("numpy/emit", "ADDED_UP", "results"),
    _shared("numpy/split_functions", "PART", "steps", each=(1,), many=0),
    _shared("numpy/pairwise_sums", "RUNNING", "running", many=9),
    _shared("numpy/pairwise_sums", "CHAIN", "lane", "row", "beside", many=100),
    _shared("numpy/pairwise_sums", "PIECE", "size", "lane", "flat", many=2),
    _shared("numpy/pairwise_sums", "LONG_PRODUCT", "depth", "matrix_vector"),
    _shared("numpy/pairwise_sums", "VECTOR", "matrix_vector", many=30),
    _shared("numpy/pairwise_sums", "_matrices", "deep_rows", many=0),
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
