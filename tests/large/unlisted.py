"""Numbers of the source at which no work on elements changes its way, each with its reason.

By file where that holds for all of it, else by file and place; a place may name the numbers it is
about, and a new number there is then unlisted.
"""

FORMULA = "coefficients of a formula, and where its branches meet"
BITS = "widths of types in bits or bytes"
NAMES = "names of types"
CACHE = "how much is remembered; what is computed does not depend on it"
TEXT = "how a text is written for people"
MEASURES = "how long measurements take"
ATTEMPT = "a number that a trial computes"
ALIGNED = "an alignment in bytes"
ADDRESS = "the largest size in bytes that an address can say"
CHECKS = "what is read back is checked to be as it was written"
ORDER = "only the order of independent work depends on it"
ROUNDING = "half or one less of a number that is listed, as it rounds up to it"

FILES = {
    "op_graph/approximations.py": FORMULA,
    "op_graph/normal.py": FORMULA,
    "op_graph/special.py": FORMULA,
    "op_graph/elementwise.py": "domains of generated tests",
    "op_graph/logic.py": BITS,
    "op_graph/dtypes.py": BITS,
    "op_graph/random.py": BITS,
    "op_graph/dump_values.py": CHECKS,
    "op_graph/dumps.py": TEXT,
    "op_graph/loads.py": CHECKS,
    "op_graph/attributes.py": CHECKS,
    "op_graph/legal.py": CHECKS,
    "op_graph/pictures.py": TEXT,
    "op_graph/nodes.py": TEXT,
    "op_graph/op_graph.py": "the precedence of operators over NumPy's",
    "op_graph/build.py": CACHE,
    "op_graph/rewrite.py": "how often a rewrite may repeat before it is refused",
    "transformers/elementary_f32.py": FORMULA,
    "transformers/elementary_f32_angles.py": FORMULA,
    "transformers/elementary_f64.py": FORMULA,
    "transformers/elementary_f64_angles.py": FORMULA,
    "transformers/elementary_text.py": FORMULA,
    "transformers/c_functions.py": BITS,
    "transformers/c_expressions.py": BITS,
    "transformers/cache.py": CACHE,
    "transformers/calls.py": CACHE,
    "transformers/checkpoint.py": "files, not computations",
    "transformers/computation.py": MEASURES,
    "transformers/destinations.py": "flags of arrays",
    "transformers/dims.py": ADDRESS,
    "transformers/feeding.py": "flags of arrays",
    "transformers/files.py": "files, not computations",
    "transformers/forms.py": CACHE,
    "transformers/layout.py": CACHE,
    "transformers/target.py": ALIGNED,
    "transformers/verify.py": "lengths that plans are verified with",
    "transformers/native/ceilings.c": MEASURES,
    "transformers/native/ceilings.py": MEASURES,
    "transformers/native/disk_cache.py": "files, not computations",
    "transformers/native/objects.py": "how much memory a compiler may be asked for again",
    "transformers/native/profile.py": TEXT,
    "transformers/native/sanitizing.py": "gaps that only this fuzz and its like have",
    "transformers/native/threads.py": "more threads than any machine here has",
    "transformers/native/toolchain.py": ATTEMPT,
    "transformers/native/transformer.py": "operands that a library kernel reads",
    "transformers/native/entry.py": BITS,
    "transformers/numpy/embedding.py": TEXT,
    "transformers/numpy/table.py": BITS,
    "transformers/numpy/module.py": TEXT,
}

PLACES = {
    (
        "transformers/fusion.py",
        "_Fusion.sources",
    ): "how far a search goes for what two kernels share",
    ("transformers/schedule.py", "NOMINAL_LENGTH"): ORDER,
    ("transformers/schedule.py", "_bytes"): CACHE,
    ("transformers/place.py", "place"): ALIGNED,
    ("transformers/numpy/emit.py", "length_text"): CACHE,
    ("transformers/numpy/emit.py", "_spread"): ADDRESS,
    ("transformers/numpy/emit.py", ""): TEXT,
    ("transformers/numpy/runtime.py", "broadcast"): ADDRESS,
    ("transformers/numpy/runtime.py", "left_shift"): BITS,
    ("transformers/numpy/runtime.py", "right_shift"): BITS,
    ("op_graph/contraction.py", "_cheapest_pair.cost"): ORDER,
    ("op_graph/constants.py", "NUMBERS_KEPT"): CACHE,
    ("op_graph/philox.py", "_MULTIPLIERS"): FORMULA,
    ("op_graph/philox.py", "_KEY_STEPS"): FORMULA,
    ("op_graph/philox.py", "_ROUNDS"): FORMULA,
    ("op_graph/philox.py", "_WORD"): BITS,
    ("op_graph/philox.py", "_pairs"): BITS,
    ("op_graph/philox.py", "_rounds"): BITS,
    ("op_graph/philox.py", "random_bits", 4): BITS,
    ("op_graph/philox.py", "random_bits", 32): BITS,
    ("op_graph/philox.py", "random_bits", 1 << 34): "refused: 64 GiB of words",
    ("op_graph/simplify.py", "sum_of_broadcast", 4): BITS,
    ("transformers/native/emit.py", "UNIT"): "how kernels share units of the compiler",
    ("transformers/native/emit.py", "CLOCK"): MEASURES,
    ("transformers/native/emit.py", "REPORTED"): "numbers of a report",
    ("transformers/native/entry.c", "Run"): "numbers of a report",
    ("transformers/native/entry.c", "KEPT"): CACHE,
    ("transformers/native/entry.c", "bind"): "positions of arguments",
    ("transformers/native/entry.c", "read_number"): BITS,
    ("transformers/native/nests.py", "GRAIN", 15): ROUNDING,
    ("transformers/scalars.py", "EXPENSIVE"): "what a function counts as: GRAIN has lengths",
    ("transformers/native/nests.py", "_Writer.accumulation", 4): BITS,
    (
        "transformers/native/product_shape.py",
        "Shape.long_depth",
        1 << 62,
    ): "never: no sum is as long",
    ("transformers/native/library.py", "_CUMULATIVE", 63): ROUNDING,
    ("transformers/native/library.py", "_SCATTER", 63): ROUNDING,
    ("transformers/native/library.py", "_RANDOM_BITS", 10): FORMULA,
    ("transformers/native/library.py", "_RANDOM_BITS", 32): BITS,
    ("transformers/native/library.py", "_RANDOM_BITS", 4): BITS,
    ("transformers/native/sorting.py", "", 8): BITS,
    ("transformers/native/sorting.py", "", 16): BITS,
    ("transformers/native/sorting.py", "", 64): BITS,
    ("transformers/native/sorting.py", "_WORDS", 8): BITS,
    ("transformers/native/sorting.py", "_WORDS", 255): BITS,
    ("transformers/native/sorting.py", "_words", 8): BITS,
    ("transformers/native/sorting.py", "_words", 64): BITS,
    ("transformers/native/sorting.py", "extreme_text", 4): "a grain that is four of those listed",
    ("transformers/native/spacious.py", "KEPT_BYTES"): CACHE,
    ("transformers/native/spacious.py", "ALIGNMENT"): ALIGNED,
    ("transformers/native/shared_units.py", "shared_unit"): CACHE,
    ("transformers/native/shared_units.py", "_prototype"): CACHE,
    ("transformers/native/runtime.py", "_EMPTY"): ALIGNED,
    ("transformers/native/runtime.py", "NativeProgram.sizes"): ADDRESS,
    ("transformers/native/runtime.py", "Bound.__init__"): "numbers of a report",
    ("transformers/native/pool.c", "SPIN_NANOSECONDS"): "when a thread that waits goes to sleep",
    ("transformers/native/pool.c", "PAUSES"): "when a thread that waits goes to sleep",
    ("transformers/native/pool.c", "ALONE_NANOSECONDS"): "when a thread that waits goes to sleep",
    ("transformers/native/pool.c", "MOST_WORKERS"): "more threads than any machine here has",
    ("transformers/native/pool.c", "LINE"): ALIGNED,
    ("transformers/native/pool.c", "ASLEEP"): BITS,
    ("transformers/native/pool.c", "SEAT"): BITS,
    ("transformers/native/pool.c", "SEATS"): BITS,
    ("transformers/native/pool.c", "RUN_SHIFT"): BITS,
    ("transformers/native/pool.c", "nanoseconds"): MEASURES,
    ("transformers/native/pool.c", "geon_scratch", 4095): ROUNDING,
    ("transformers/native/product_driver.py", "_task_text", 63): ROUNDING,
    ("transformers/native/product_rows.py", "stream_text", 64): BITS,
    (
        "transformers/native/product_rows.py",
        "_dots_block",
        512,
    ): "how far ahead memory is asked for",
    ("transformers/native/product_shape.py", "SIZES"): BITS,
    ("transformers/native/product_shape.py", "Shape.line"): "gaps of packed rows, for caches",
    ("transformers/native/product_shape.py", "shape"): BITS,
    ("transformers/native/product_tiles.py", "vector_text"): BITS,
    ("transformers/native/product_tiles.py", "heights", 64): BITS,
    ("transformers/native/product_tiles.py", "tile_text"): "how far ahead memory is asked for",
    ("transformers/native/product_tiles.py", "tiles_text"): "how far ahead memory is asked for",
}


def reason_of(number):
    """Why a number gives no lengths; None where nothing says so."""
    file, where, value = number
    return FILES.get(file) or PLACES.get((file, where)) or PLACES.get((file, where, value))
