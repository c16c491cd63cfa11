"""Every constant at which work is done in another way, and the lengths that each gives the fuzz.

A constant is named by its file, the place in it and, where that has several numbers, the number;
its value is the one the scan of the source finds there, or that of an expression of others. So an
entry whose number is gone fails, and so does a number that has no entry: it gets lengths below, or
a reason in ``unlisted``.
"""

import importlib
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
        if self.value is not None:
            return [v for v in here if v == self.value]
        return derived(self.file, self.where) or here

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


def derived(file, name):
    """The value of a name of a module, which may be an expression of others; [] if it has none."""
    if not (file.endswith(".py") and name.isupper()):
        return []
    module = importlib.import_module("geon." + file.removesuffix(".py").replace("/", "."))
    value = getattr(module, name, None)
    return [value] if isinstance(value, int | float) else []


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
    _shared("sizes/limits", "MIN_WORK", "size", "lane", "flat", each=(2, 3, 5)),
    _shared("sizes/limits", "MIN_TASK_WORK", "size", "row", each=(1, 2, 4)),
    _shared("sizes/limits", "MAX_TASK_WORK", "size", each=(1, 2, 4), many=2),
    _shared("sizes/blocks", "MIN_BLOCKS", "lane", "row", many=4),
    _shared("loops/work", "MAX_PARTS", "size", "lane", "row", each=(2,), many=2000),
    _shared("sizes/blocks", "MIN_BLOCKS", "few_rows", "running_lines", many=2),
    _native("trees/row_arrays", "MAX_STACK_ELEMENTS", "row"),
    _shared("loops/values_ahead", "MAX_BUFFERED_TURNS", "backwards", "size", many=10),
    _shared("loops/rules/streaming_copies", "MAX_BLOCK_TURNS", "size", "row", many=10),
    _shared("loops/work", "MAX_PARTS", "one_run", "wide_turns", each=(1, 1 / 64, 1 / 1024)),
    _shared("sizes/limits", "MIN_LAST_CACHE_BYTES", "size", "row", each=(4, 8), many=0),
    _shared(
        "loops/rules/streaming_copies",
        "STREAMED_BLOCK_BYTES",
        "size",
        "row",
        "flat",
        each=(1, 2, 4, 8),
        many=20,
    ),
    _shared("loops/rules/streaming_copies", "MIN_STREAMED_TURNS", "size", "row", "across", many=30),
    _native(
        "vectors/nontemporal_stores",
        "MIN_STREAMING_PIECE_BYTES",
        "joined",
        "bordered",
        each=(4, 8),
        many=2,
    ),
    _shared("loops/rules/streaming_copies", "MAX_STREAMED_STORES", "together", many=2),
    _shared(
        "loops/rules/transposed_tiles", "TILE_COLUMNS", "lane", "across", "columns_of_runs", many=15
    ),
    _shared(
        "loops/rules/transposed_tiles", "TILE_ROW_BYTES", "across", each=(1 / 2, 1, 2, 4, 8), many=9
    ),
    _native("emit/unit_texts", "TRANSPOSE_SQUARE_SIDE", "across", many=9),
    _shared(
        "loops/rules/transposed_tiles", "MIN_TRANSPOSED_LINE_BYTES", "across", each=(4, 8), many=9
    ),
    _shared("loops/rules/transposed_tiles", "STRAIGHT_ELEMENTS", "across", many=9),
    _shared("loops/rules/transposed_tiles", "MAX_ADJACENT_ELEMENTS", "across", many=9),
    _shared("loops/values_ahead", "MAX_OPEN_BUFFERED_TURNS", "across", each=(2, 5, 16), many=9),
    _native("trees/vector_statements", "MAX_INTERLEAVED_ELEMENTS", "across", many=9),
    _native("emit/unit_texts", "transposes", "across", value=16, each=(1, 2, 4)),
    _native("emit/unit_texts", "transposes", "across", "lane", value=8, many=20),
    _native("emit/unit_texts", "transposes", "across", "lane", value=4, many=20),
    _shared(
        "kernels/nests/unrolled_reductions",
        "MAX_SERIAL_TERMS",
        "lane",
        "row",
        each=(1, 1 / 8, 1 / 16),
        many=100,
    ),
    _shared("loops/rules/compiled_folds", "TRUTHS_PER_CHECK", "size", "row", "positions"),
    _shared("loops/rules/compiled_folds", "TERMS_PER_CHECK", "across"),
    _shared("loops/vector_loops", "MIN_WHOLE_VECTORS", "row", each=(1 / 4, 1 / 8, 1 / 16)),
    _shared("loops/rules/compiled_folds", "MIN_NARROW_BLOCK_TERMS", "row", "short_row", many=20),
    _shared("loops/rules/compiled_folds", "MAX_NARROW_BLOCK_TERMS", "size", "row"),
    _native("vectors/vector_functions", "MIN_STRIP_ROW_ELEMENTS", "size", "row", many=10),
    _native("vectors/vector_functions", "MAX_STRIP_NODES", "heavy", many=2),
    _shared("kernels/nests/nest_lowering", "MAX_SHORT_ROW_ELEMENTS", "short_row"),
    _native("target", "MAX_COLLAPSED_ROW_ELEMENTS", "across"),
    _shared("loops/rules/contiguous_rows", "MAX_ROW_ELEMENTS", "short_row"),
    _shared("kernels/nests/nest_lowering", "MIN_ADJACENT_ROWS", "short_rows", many=20),
    _shared("kernels/nests/short_row_variants", "MAX_COSTLY_ROW_ELEMENTS", "short_row", many=20),
    _shared("kernels/nests/nest_builder", "MAX_BUFFERED_ROW_ELEMENTS", "row"),
    _shared(
        "kernels/nests/nest_lowering",
        "MIN_VECTOR_LOOP_BYTES",
        "read_ahead",
        "numbered",
        each=(1, 4, 8),
        many=2,
    ),
    _shared("kernels/nests/index_set_splitting", "MIN_STRIDED_ELEMENTS", "strided", many=20),
    _shared(
        "kernels/nests/nest_lowering",
        "MIN_COPIED_ROW_ELEMENTS",
        "read_ahead",
        "turned_short",
        many=2,
    ),
    _shared(
        "kernels/nests/buffered_loads",
        "MAX_PERIOD_TURNS",
        "read_ahead",
        "numbered",
        "strided",
        many=2,
    ),
    _shared("sizes/limits", "PREFETCH_DISTANCE", "looked_up"),
    _shared(
        "sizes/blocks",
        "L1_BYTES",
        "looked_up",
        each=(4, 160),
        many=0,
    ),
    _shared("kernels/nests/buffered_loads", "MAX_BUFFERED_VALUES", "loads", many=2),
    _shared("kernels/nests/iteration_space", "MAX_NEAR_STRIDE_ELEMENTS", "turned_short", many=2),
    _shared("kernels/nests/iteration_space", "MIN_LANES", "turned_short", many=9),
    # Joins: what is taken apart.
    _shared("kernels/nests/reduction_splitting", "MIN_ROW_ELEMENTS", "joined", "bordered"),
    _shared(
        "kernels/nests/index_set_splitting",
        "MAX_UNROLLED_ELEMENTS",
        "joined",
        "bordered",
        "parts_joined",
    ),
    _shared("kernels/nests/index_set_splitting", "MAX_THIN_BORDER_ELEMENTS", "joined", "bordered"),
    _shared(
        "kernels/nests/index_set_splitting", "MIN_INTERVAL_ELEMENTS", "joined", "bordered", many=20
    ),
    _shared("kernels/nests/index_set_splitting", "MAX_PIECES", "parts_joined", many=2),
    _shared(
        "kernels/nests/reduction_splitting", "MAX_PIECES_NODES", "parts_joined", each=(4, 8), many=0
    ),
    # Fusion: how many ops, and how long rows.
    _shared("sizes/limits", "MAX_FUNCTION_NODES", "chain", "stored", many=2),
    _shared("sizes/limits", "MAX_FUNCTION_NODES", "heavy", each=(24,), many=4),
    _shared("lowering/fusion/duplication", "MAX_CHEAP_CHAIN_OPS", "cheap"),
    _shared("lowering/fusion/duplication", "MIN_STORED_REPEATS", "divided_turns"),
    _shared("lowering/fusion/duplication", "MIN_STORED_DIVISIONS", "divided"),
    _shared("lowering/fusion/legality", "MIN_PARALLEL_ROWS", "lane", "row"),
    _shared("lowering/fusion/op_facts", "MIN_STREAMED_ROW_ELEMENTS", "matrix_vector", many=70),
    _shared("lowering/fusion/op_facts", "MIN_STREAMED_MATRIX_ELEMENTS", "matrices", many=2),
    _shared("sizes/blocks", "L2_BYTES", "bent", each=(4,), many=2),
    _shared("sizes/limits", "MAX_SEARCHED", "cheap", many=0),
    _shared("lowering/fusion/legality", "small_rows", "row", value=1024),
    # Chains: what is worth one, and how rows are cut into blocks.
    _shared("sizes/blocks", "L2_BYTES", "reduced_product", each=(4 * 600, 8 * 600), many=2),
    _shared("lowering/fusion/chain_fusion", "MIN_BLOCKED_ROWS", "reduced_product"),
    _shared("sizes/blocks", "L2_BYTES", "reduced_product", each=(8 * 1200,), many=9),
    _shared("sizes/blocks", "MIN_BLOCK_ROWS", "reduced_product"),
    _shared("sizes/blocks", "MAX_BLOCK_ROWS", "reduced_product"),
    _shared("sizes/blocks", "MIN_BLOCKS", "reduced_batch", many=2),
    _shared("sizes/blocks", "MIN_BALANCED_BLOCK_ROWS", "reduced_product"),
    # Products of a few summed indices: which are loops.
    _shared("lowering/fusion/thin_products", "MAX_PRODUCT_TERMS", "terms", many=2),
    _shared("lowering/fusion/thin_products", "MIN_PRODUCT_ELEMENTS", "elements_of_terms"),
    _shared("lowering/fusion/thin_products", "MIN_VECTOR_RUN_ELEMENTS", "run_of_terms"),
    _shared("lowering/fusion/thin_products", "MAX_GATHER_REPEATS", "again"),
    _shared("lowering/fusion/thin_products", "MAX_SHORT_RUN_TERMS", "run_of_terms", each=(1, 2, 3)),
    _shared(
        "lowering/fusion/thin_products",
        "MAX_SMALL_PRODUCT_TERMS",
        "small_products",
        each=(1 / 2, 1, 2),
    ),
    _shared("lowering/fusion/thin_products", "MAX_SMALL_PRODUCT_ELEMENTS", "small_products"),
    # Folds over what lies on both sides of kept axes: which are two.
    _shared("lowering/rules/split_reductions", "FAST_RUN_ELEMENTS", "run_behind", many=2),
    _shared("lowering/rules/split_reductions", "MIN_SPLIT_RUNS", "turns_before"),
    _shared("lowering/rules/split_reductions", "MIN_SPLIT_ELEMENTS", "of_both_sides"),
    # Products: how they are cut, packed and stored.
    _shared("sizes/product_blocks", "ROWS_PER_GROUP", "rows", each=(1, 1 / 2)),
    _shared("sizes/product_blocks", "MAX_BLOCK_ROWS", "rows"),
    _shared("sizes/product_blocks", "MAX_DIRECT_ROWS", "rows", "columns"),
    _shared(
        "sizes/product_blocks",
        "MIN_DOT_VECTORS",
        "thin_depth",
        each=(1 / 4, 1 / 8, 1 / 16, 1 / 32),
    ),
    _shared("sizes/product_blocks", "MAX_DOT_ROWS", "rows", "columns"),
    _shared("sizes/product_blocks", "MAX_THIN_RESULTS", "thin"),
    _shared(
        "sizes/blocks",
        "L1_BYTES",
        "thin_depth",
        each=(4, 2 * 5, 2 * 25, 4 * 10),
    ),
    _shared("sizes/product_blocks", "MAX_SHALLOW_DEPTH", "depth", "depth64", many=0),
    _shared("sizes/product_blocks", "MAX_LOW_TILE_DEPTH", "depth"),
    _shared("sizes/product_blocks", "MAX_TRANSPOSED_COLUMNS", "few_columns", many=0),
    _shared("sizes/blocks", "L1_BYTES", "near"),
    _shared("sizes/product_blocks", "MAX_UNPACKED_PANELS", "columns", each=(1,)),
    _shared("sizes/product_blocks", "MAX_PACK_CACHE_ROWS", "rows", many=0),
    _shared("sizes/product_blocks", "MIN_PACK_CACHE_COLUMNS", "columns", each=(1, 2), many=17),
    _shared("sizes/product_blocks", "Shape.depth", "depth", value=384, many=5),
    _shared("sizes/product_blocks", "Shape.depth", "depth64", value=256, many=5),
    _shared("sizes/product_blocks", "Shape.few_elements", "parts", each=(4, 8)),
    _shared("sizes/product_blocks", "Shape.columns", "columns", "columns64", each=(4, 8), many=10),
    _shared("sizes/product_blocks", "Shape.packed_columns", "columns", value=4, each=(1 / 256,)),
    _shared("sizes/product_blocks", "Shape.packed_columns", "columns64", value=4, each=(1 / 128,)),
    _shared(
        "sizes/product_blocks", "MAX_PACKED_BYTES", "depth", "depth64", each=(4 * 256,), many=2
    ),
    _shared("sizes/product_blocks", "MIN_PACK_FIRST_MULADDS", "products", many=0),
    _shared("sizes/product_blocks", "MIN_HALF_VECTOR_MULADDS", "narrow_products"),
    _shared("sizes/product_blocks", "MAX_SERIAL_TERMS", "depth", many=400),
    _shared("sizes/product_blocks", "MIN_STREAM_COST_ROWS", "rows"),
    _shared("sizes/product_blocks", "MIN_STREAM_DEPTH", "depth"),
    _shared("sizes/product_blocks", "MAX_SUM_PARTS", "stream", each=(1 / (1 << 17),)),
    _shared("sizes/product_blocks", "MAX_SUM_PARTS", "streams", each=(1, 2)),
    _shared("sizes/product_blocks", "MIN_PART_DEPTH", "stream_depth", each=(1, 1 / 2, 1 / 3)),
    _shared("sizes/product_blocks", "MIN_PART_BYTES", "stream", each=(1, 1 / 2, 1 / 3)),
    _shared(
        "sizes/product_blocks", "PART_DEPTH", "depth", "matrix_vector", each=(1, 1 / 2), many=5
    ),
    _shared(
        "sizes/product_blocks",
        "Shape.long_stream",
        "depth",
        "matrix_vector",
        value=1024,
        many=5,
    ),
    _c("product/packing.h", "geon_copy_short", "columns", "depth", value=8),
    _c("product/packing.h", "geon_copy_short", "columns", "depth", value=4),
    _shared("sizes/product_cut", "cut_items", "depth", value=8, many=48),
    _shared("sizes/product_cut", "cut_items", "rows", "batch", value=4),
    _shared("sizes/product_blocks", "DIRECT_COLUMN_BLOCKS", "rows", "columns"),
    _shared("sizes/product_blocks", "DIRECT_DEPTH_BLOCKS", "rows", value=4),
    _shared("sizes/product_blocks", "DIRECT_DEPTH_BLOCKS", "rows", value=16),
    _shared("sizes/product_blocks", "DIRECT_DEPTH_BLOCKS", "depth", value=32, many=384),
    _shared("sizes/product_blocks", "DIRECT_DEPTH_BLOCKS", "depth", value=10, many=384),
    _shared("sizes/product_blocks", "TASK_MULADDS", "products", each=(1, 1 / 2), many=16),
    _shared("sizes/product_blocks", "FEW_ROWS_PANELS", "rows", "columns", many=99),
    _shared("sizes/product_blocks", "MIN_THIN_VECTORS", "thin_depth", each=(1 / 16, 1 / 8, 1 / 4)),
    _c("product/packing.h", "FEW", "few_columns", many=2),
    _c("product/packing.h", "geon_transpose", "few_columns", value=4, many=2),
    _shared("sizes/product_cut", "cache_lines", "columns"),
    # The memory that products work in, which is planned for the largest of these blocks.
    _native("sizes/products", "ProductScratch._tiles", "depth", value=8, many=48),
    _native("sizes/products", "ProductScratch._direct", "depth", value=8, many=48),
    _c("product/few_rows.h", "MOST", "rows", value=4),
    _c("product/few_rows.h", "UNROLL", "depth", value=8),
    _c("product/few_rows.h", "geon_stream", "columns", value=16384, each=(16, 32)),
    _c("product/few_rows.h", "geon_dots", "columns", value=4),
    _c("product/few_rows.h", "geon_dots", "columns", value=8),
    _shared("sizes/product_blocks", "Shape.heights", "rows", value=12),
    _shared("sizes/product_blocks", "Shape.heights", "rows", value=4),
    _shared("sizes/product_blocks", "Shape.heights", "rows", value=6),
    # The library.
    _shared("loops/values_ahead", "MAX_BUFFERED_WORDS", "bits", each=(1, 2), many=50),
    _c("random_words.c", "NAME", "bits", value=64),
    _shared("kernels/nests/random_runs", "MAX_SIDE_BY_SIDE_ROWS", "bits", "lane"),
    _native("sizes/kernel_scratch", "BLOCK_COLUMNS", "beside"),
    _native("library/prefixes", "BLOCK_ROWS", "running_rows"),
    _native("sizes/kernel_scratch", "PART_ELEMENTS", "running", each=(1, 1 / 4), many=9),
    _native("sizes/kernel_scratch", "MIN_PART_ROWS", "running_rows", each=(1, 1 / 4)),
    _c("scan/cumulative.c", "NAME", "running", value=7, many=40),
    _c("scan/contiguous.h", "LANES", "running", "beside", value=8, many=4),
    _c("scan/contiguous.h", "LANES", "running", "beside", value=4),
    _c("scan/cumulative.c", "PART", "beside", value=8, each=(1 / 8,)),
    _c("scan/cumulative.c", "PART", "beside", value=9, each=(1 / 8,)),
    _native(
        "sizes/kernel_scratch", "MIN_PARALLEL_ELEMENTS", "added", "scattered", each=(1, 3), many=4
    ),
    _native("library/scattering", "MIN_TASK_COLUMNS", "scattered", many=3),
    _native("sizes/kernel_scratch", "MIN_VALUES_PER_PLACE", "places", each=(1 / 4096,)),
    _native("sizes/kernel_scratch", "MAX_COPIES", "places", each=(1 / 256, 1)),
    _native("library/scattering", "ELEMENTS_PER_SUM_TASK", "places", many=2),
    _native("library/scattering", "MIN_UNCACHED_BYTES", "far_places", each=(4, 8, 16), many=0),
    _native("library/scattering", "PREFETCH_DISTANCE_POSITIONS", "far_values"),
    _native("library/scattering", "POSITIONS_PER_BATCH", "far_values", plus=1 << 16),
    _native("sizes/kernel_scratch", "MIN_PARALLEL_ELEMENTS", "far_values"),
    _c("scatter.c", "PART", "scattered", value=4),
    _c("scatter.c", "PART", "scattered", value=8),
    _c("check_finite.h", "NAME", "finite", many=9),
    _c("sort/argsort.c", "SCANNED", "most", value=64),
    _c("sort/argsort.c", "SCANNED", "line", value=4),
    _c("sort/argsort.c", "PART", "line32", value=64),
    _c("sort/rows.h", "MOST_KEPT", "most"),
    _c("sort/rows.h", "FEWEST_TURNED", "line", "lines"),
    _native(
        "library/sorting",
        "MAX_WIDE_SORT_LENGTH",
        "line",
        "line16",
        "line32",
        "line64",
        each=(1, 2),
    ),
    _shared("sizes/blocks", "MAX_NARROW_SORT_LENGTH", "line", "line16", "line32", "line64"),
    _native("sizes/kernel_scratch", "MAX_TILE_BYTES", "line32", each=(16, 32, 64), many=0),
    _native("library/sorting", "MIN_SHARED_SORT_LENGTH", "line32", many=2),
    _c(
        "sort/quicksort.h",
        "LONGEST_BLOCK",
        "line32",
        "line64",
        value=16,
        each=(1 / 4, 1 / 8, 1 / 16),
    ),  # lanes of a vector
    _c("sort/prefix.h", "LONGEST_RUN", "line64"),
    _c("sort/network.h", "PART", "lines", "columns", value=16),
    _native(
        "sizes/kernel_scratch", "MIN_TASK_ELEMENTS", "line", "extreme", "running", each=(1, 16)
    ),
    _c("sort/words.h", "FEW", "line16", value=24, plus=8),
    _c("sort/words.h", "FEW", "line16", value=24, plus=16),
    _c("sort/words.h", "FEW", "line32", value=24, plus=32),
    _c("sort/words.h", "FEW", "line64", value=24, plus=64),
    _c("sort/words.h", "PART", "line", value=256),
    _c("sort/vector.h", "VECTOR_BYTES", "lines", value=64, each=(1, 2, 4, 8), many=9),
    _c("argmax.c", "PART", "extreme", many=9),
    _c("argmax.c", "BLOCK", "extreme", many=9),
    _c("argmax.c", "SHORT", "extreme", many=9),
    # Calls, results and memory.
    _native("runtime/result_pool", "MIN_POOLED_BYTES", "size", each=(4, 2, 8), many=2),
    _native("runtime/bound_program", "MIN_GIL_RELEASE_ELEMENTS", "size"),
    _native("emit/module_text", "MAX_RUN_LINES", "steps", many=0),
    _c("pool.c", "MOST_SHARES", "lane", "size", many=1000),
    _c("pool.c", "STACK_BYTES", "row", each=(8, 4), many=0),
    _shared("runtime/arena", "MAX_SEARCHED_BUFFERS", "steps", many=0),
    _shared("lowering/planning/kernel_order", "MAX_READERS", "results"),
    _shared("lowering/planning/kernel_order", "MAX_LOOKAHEAD_KERNELS", "steps", many=0),
    # NumPy.
    _shared("numpy/runtime", "_blocks", "shifted"),
    _shared("numpy/arrays", "MAX_VIEWS_PER_STATEMENT", "results"),
    _shared("numpy/arrays", "MAX_VALUE_NAME_CHARACTERS", "results"),
    _shared("numpy/emit", "MAX_ADDED_TERMS", "results"),
    _shared("numpy/split_functions", "STATEMENTS_PER_FUNCTION", "steps", each=(1,), many=0),
    _shared("numpy/pairwise_sums", "RUNNING_SUM_ELEMENTS", "running", many=9),
    _shared("numpy/pairwise_sums", "MAX_SERIAL_TERMS", "lane", "row", "beside", many=100),
    _shared("numpy/pairwise_sums", "PIECE_ELEMENTS", "size", "lane", "flat", many=2),
    _shared("numpy/pairwise_sums", "MAX_FLOAT32_TERMS", "depth", "matrix_vector"),
    _shared("numpy/pairwise_sums", "VECTOR_PRODUCT_TERMS", "matrix_vector", many=30),
    _shared("numpy/pairwise_sums", "_matrices", "deep_rows", many=0),
    Constant("op_graph/random/philox.py", "_BLOCK_COUNTERS", ("bits",), each=(1,), many=9),
    Constant("op_graph/building/constants.py", "MAX_INLINE_BYTES", ("constant",), many=40),
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
    named = {(c.file, c.where) for c in CONSTANTS if c.value is None}
    listed = {(c.file, c.where, v) for c in CONSTANTS for v in c.values()}
    return [f"{n} (line {line})" for n, line in found().items()
            if tuple(n) not in listed and (n.file, n.where) not in named
            and reason_of(n) is None]  # fmt: skip


def stale():
    """Entries whose number the source no longer has."""
    return [c.name for c in CONSTANTS if not c.values()]
