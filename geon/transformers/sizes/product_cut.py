"""Divide a product into blocks, items and tasks, and lay out their scratch memory.

The functions whose first parameter is ``of`` also run in the driver of products, in each call,
since blocks depend on the number of threads: ``native/products/size_functions.py`` translates
them to C. They use integers, floats, `SizeProblem` and `ProductCut` only. Integers are not negative
where they are divided.
"""

from __future__ import annotations

from ...lazy_dataclasses import dataclass
from .product_blocks import (
    DIRECT_COLUMN_BLOCKS,
    DIRECT_DEPTH_BLOCKS,
    FEW_ROWS_PANELS,
    MAX_BLOCK_ROWS,
    MAX_DIRECT_BLOCK_BYTES,
    MAX_DURATION_NANOSECONDS,
    MAX_SERIAL_TERMS,
    MAX_SHALLOW_DEPTH,
    MAX_SUM_PARTS,
    MAX_THIN_BYTES,
    MIN_PACK_FIRST_MULADDS,
    MIN_PART_BYTES,
    MIN_PART_DEPTH,
    MIN_STREAM_COST_ROWS,
    MULADDS_PER_NANOSECOND,
    PART_DEPTH,
    ROWS_PER_GROUP,
    TASK_MULADDS,
    Shape,
    blocks_for,
)
from .product_problem import BY_DOTS, BY_STREAM, BY_TILES, SizeProblem


@dataclass(slots=True)
class ProductCut:
    """Blocks of rows and columns, items (blocks of all batches and parts), and tasks.

    A task has neighbouring items: of the same columns (``by_columns``) if the right operand is
    larger than all else, so that each thread reads and packs few of them, else of the same rows,
    since threads that write parts of the same rows take cache lines from each other. Only
    ``part_depth``, ``depth_block`` and ``chain`` enter results, and they do not depend on threads.
    What has few elements but long sums, or is a stream, is summed in ``parts``. If sums are long
    (``is_long``), ``chain`` terms are added in their own type, and the rest in double. Of what is
    packed before the tasks that need it there are ``packed_columns`` of ``packed_batches`` at a
    time, 0 for none, and ``packed_block`` in a task. ``banded``: rows are windows in a band.
    ``duration`` is that of all work on one thread, in nanoseconds.

    The memory of a thread has ``left``, ``panels``, ``sums``, ``totals`` and ``staged`` elements,
    in this order, with rows of the left block ``left_step`` apart and those of sums ``sums_step``.
    ``first`` are the elements in front of all threads' memory, and ``packing`` those that a thread
    needs to pack.
    """

    row_block: int = 0
    column_block: int = 0
    depth_block: int = 0
    row_blocks: int = 0
    column_blocks: int = 0
    items: int = 0
    tasks: int = 0
    parts: int = 0
    part_depth: int = 0
    chain: int = 0
    packed_batches: int = 0
    packed_columns: int = 0
    packed_block: int = 0
    by_columns: bool = False
    is_long: bool = False
    banded: bool = False
    duration: int = 0
    left_step: int = 0
    sums_step: int = 0
    left: int = 0
    panels: int = 0
    sums: int = 0
    totals: int = 0
    staged: int = 0
    first: int = 0
    packing: int = 0


def blocks(of: Shape, total: int, block: int) -> int:
    """Return the number of blocks that cover ``total``; ``c/product/common.h`` has it in C."""
    return -(-total // block)


def share(of: Shape, total: int, most: int, step: int) -> int:
    """Return the least block, a multiple of ``step``, that cuts ``total`` into as few as ``most``
    does.
    """
    parts = blocks(of, total, most) if total > most else 1
    block = blocks(of, blocks(of, total, parts), step) * step
    return max(block, step)


def widest_columns(of: Shape, threads: int) -> int:
    """Return the maximum columns of a block.

    Rows are packed once for each block, so wide ones are better. What one thread would pack at a
    time is shared by all, but no block of a chain has as much.
    """
    return max(of.packed_columns // max(threads, 1) // of.panel * of.panel, of.columns)


def longest_panels(of: Shape, panels: int, block: int, rows: int, threads: int) -> int:
    """Return the panels of the thread with most of them, for blocks of ``block`` panels.

    Whole blocks come first, then what is left of the columns, each for ``rows`` blocks of rows.
    """
    whole = rows * (panels // block)
    rest = panels % block
    idle = (threads - whole % threads) % threads
    left = rows - idle if rest > 0 else 0
    return blocks(of, whole, threads) * block + (
        blocks(of, left, threads) * rest if left > 0 else 0
    )


def even_columns(of: Shape, columns: int, most: int, rows: int, threads: int) -> int:
    """Return the widest block of columns, up to ``most``, that keeps all threads busy as long.

    Wide blocks are better since rows are packed for each.
    """
    panels = blocks(of, columns, of.panel)
    best = min(most // of.panel, panels)
    block = best - 1
    while block > 0:
        if longest_panels(of, panels, block, rows, threads) < longest_panels(
            of, panels, best, rows, threads
        ):
            best = block
        block -= 1
    return best * of.panel


def sum_parts(of: Shape, p: SizeProblem) -> int:
    """Return the number of parts of sums of few elements: of long sums, and of a stream.

    Tasks then divide what a stream reads along memory. Parts of narrow rows are a piece of each
    page: two threads hardly read them faster than one does. Many batches are divided instead.
    """
    elements = float(p.whole_batches) * float(p.whole_rows) * float(p.whole_columns)
    if elements > of.few_elements:
        return 1
    parts = p.depth // PART_DEPTH if p.depth >= 2 * PART_DEPTH else 1
    most = MAX_SUM_PARTS
    if p.direct == BY_STREAM:
        read = float(p.whole_batches) * float(p.whole_columns) * float(p.depth) * of.bytes
        most = min(MAX_SUM_PARTS // p.whole_batches, p.depth // MIN_PART_DEPTH)
        parts = most
        if read < float(most) * MIN_PART_BYTES:
            parts = int(read / MIN_PART_BYTES)
    return max(min(parts, most), 1)


def depth_limit(of: Shape, p: SizeProblem, is_long: bool) -> int:
    """Return the maximum summed indices of a block."""
    vectors = of.vector * MAX_SERIAL_TERMS
    if p.thin:
        lines = p.whole_rows + p.whole_columns
        return min(vectors, MAX_THIN_BYTES // of.bytes // lines // of.vector * of.vector)
    if p.direct == BY_DOTS:
        runs = min(of.vector, blocks_for(p.whole_rows, DIRECT_DEPTH_BLOCKS))
        return vectors if is_long else runs * of.depth
    if p.direct == BY_STREAM:
        return blocks_for(p.whole_rows, DIRECT_DEPTH_BLOCKS) * of.depth
    return of.depth


def cut_items(of: Shape, p: SizeProblem, s: ProductCut) -> None:
    """Divide a product whose threads pack what they need."""
    s.parts = sum_parts(of, p)
    s.part_depth = blocks(of, blocks(of, p.depth, s.parts), 8) * 8
    s.is_long = p.depth > of.long_depth
    if p.direct == BY_STREAM:
        s.is_long = s.part_depth > of.long_stream
    s.chain = MAX_SERIAL_TERMS if s.is_long else max(p.depth, 1)
    wide = of.columns
    if p.direct != BY_TILES:
        wide = blocks_for(p.rows, DIRECT_COLUMN_BLOCKS) * of.columns
    elif p.alone:
        wide = widest_columns(of, p.threads)
    # A stream waits for the rows that it reads, as long as a few of its own take.
    busy = max(p.rows, MIN_STREAM_COST_ROWS) if p.direct == BY_STREAM else p.rows
    work = float(p.batches) * float(busy) * float(p.columns) * float(p.depth + 4)
    s.duration = MAX_DURATION_NANOSECONDS
    if work < MAX_DURATION_NANOSECONDS:
        s.duration = int(work) // MULADDS_PER_NANOSECOND
    least = FEW_ROWS_PANELS * of.panel
    if p.direct == BY_STREAM:
        # Streams go through long runs; if one block has all columns, two threads share much work.
        halves = p.columns <= of.columns and work > TASK_MULADDS
        least = of.columns // 2 if halves else of.columns
    wanted = 2 * p.threads if p.threads > 1 and work > TASK_MULADDS / 2 else 1
    s.row_block = share(of, p.rows, MAX_BLOCK_ROWS, of.row_step)
    s.column_block = share(of, p.columns, wide, of.panel)
    while True:
        s.row_blocks = blocks(of, p.rows, s.row_block)
        s.column_blocks = blocks(of, p.columns, s.column_block)
        s.items = p.batches * s.row_blocks * s.column_blocks * s.parts
        if s.items >= wanted or work / float(s.items) < TASK_MULADDS / 2:
            break
        if p.direct == BY_STREAM and s.parts > 1:
            break
        high = s.row_block >= s.column_block or s.column_block <= least
        if s.row_block > 2 * ROWS_PER_GROUP and high:
            s.row_block = share(of, s.row_block, s.row_block // 2, of.row_step)
        elif s.column_block > least:
            s.column_block = share(of, s.column_block, s.column_block // 2, of.panel)
        else:
            break
    if p.direct == BY_TILES and s.column_blocks > 1 and s.items < 2 * wanted:
        others = s.items // s.column_blocks
        s.column_block = even_columns(of, p.columns, wide, others, p.threads)
        s.column_blocks = blocks(of, p.columns, s.column_block)
        s.items = others * s.column_blocks
    s.by_columns = float(p.depth) * float(p.columns) > float(p.rows) * float(p.depth + p.columns)
    summed = s.part_depth if s.parts > 1 else p.depth
    s.depth_block = share(of, summed, depth_limit(of, p, s.is_long), 8)
    s.tasks = 4 * wanted if wanted > 1 else 1
    if work < TASK_MULADDS * float(s.tasks):
        s.tasks = int(work / TASK_MULADDS) + 1
    s.packed_batches = p.batches
    s.packed_block = s.column_block


def packs_first(of: Shape, p: SizeProblem, s: ProductCut, bands: bool) -> bool:
    """Return True if all threads pack the right operand before the tasks that need it.

    They do for much work. An operand larger than all else is packed and read by parts, each by one
    thread alone. What ``bands`` are multiplied by is packed first however little the work is.
    """
    work = float(p.rows) * float(p.columns) * float(p.depth)
    if p.direct != BY_TILES or not p.alone or p.placed:
        return False
    if s.by_columns or s.parts > 1 or s.is_long or p.rows <= ROWS_PER_GROUP:
        return False
    if not p.keeps and 0 < s.depth_block * p.near_step * of.bytes <= MAX_DIRECT_BLOCK_BYTES:
        return False
    if of.packed // max(p.depth, 1) // of.panel * of.panel < of.columns:
        return False
    return bands or work >= MIN_PACK_FIRST_MULADDS


def cut_packed(of: Shape, p: SizeProblem, s: ProductCut, bands: bool) -> None:
    """Divide a product whose right operand is packed once, before its tasks.

    Some columns are packed at all depths. Items are then groups of rows, which are packed once for
    all of these columns. Of what bands are multiplied by there are few columns at a time where rows
    alone are tasks enough. If a copy is kept, all columns are there, and items of the same columns
    follow each other.
    """
    room = of.packed // max(p.depth, 1) // of.panel * of.panel
    wanted = 2 * p.threads if p.threads > 1 else 1
    if bands and blocks(of, p.rows, ROWS_PER_GROUP) >= wanted:
        room = max(of.band_packed // p.depth // of.panel * of.panel, 2 * of.panel)
    s.packed_columns = share(of, p.columns, min(room, of.packed_columns), of.panel)
    s.packed_batches = 1
    if s.packed_columns >= p.columns:
        s.packed_batches = min(p.batches, room // s.packed_columns)
    s.row_block = share(of, p.rows, ROWS_PER_GROUP, of.row_step)
    s.row_blocks = blocks(of, p.rows, s.row_block)
    s.column_block = s.packed_columns
    least = FEW_ROWS_PANELS * of.panel
    while s.column_block >= least:
        found = s.packed_batches * s.row_blocks * blocks(of, s.packed_columns, s.column_block)
        if found >= wanted:
            break
        s.column_block = share(of, s.column_block, s.column_block // 2, of.panel)
    s.packed_block = min(s.column_block, least)
    s.column_blocks = blocks(of, p.columns, s.column_block)
    s.items = p.batches * s.row_blocks * s.column_blocks
    s.by_columns = p.keeps


def cut_bands(of: Shape, p: SizeProblem, s: ProductCut) -> None:
    """Divide a product whose rows are windows into bands of rows.

    Panels of all depths are read again for each band: where there are few columns at a time, the
    second cache holds these, and small bands divide the work more evenly. Threads have as many
    bands each.
    """
    block = s.row_block
    if s.packed_columns > 0:
        block = ROWS_PER_GROUP if p.depth > s.depth_block else p.band_rows
    s.row_block = share(of, p.rows, min(block, p.band_rows), of.row_step)
    s.row_blocks = blocks(of, p.rows, s.row_block)
    others = p.batches * s.column_blocks * s.parts
    tiles = blocks(of, p.rows, of.row_step)
    while s.tasks > 1 and others * s.row_blocks % p.threads > 0 and s.row_blocks < tiles:
        s.row_blocks += 1
    s.items = others * s.row_blocks


def cache_lines(of: Shape, elements: int) -> int:
    """Return elements rounded up to 64, which are whole cache lines."""
    return blocks(of, elements, 64) * 64


def lay_out(of: Shape, p: SizeProblem, s: ProductCut) -> None:
    """Lay out the scratch memory of each thread, in elements."""
    s.left_step = of.line
    if p.depth <= MAX_SHALLOW_DEPTH:
        s.left_step = p.depth
    elif p.direct != BY_TILES:
        s.left_step = s.depth_block + of.vector
    s.sums_step = s.column_block + of.vector
    groups = blocks(of, s.row_block, ROWS_PER_GROUP) if p.depth > s.depth_block else 1
    height = ROWS_PER_GROUP
    if p.rows < ROWS_PER_GROUP:
        height = blocks(of, p.rows, of.row_step) * of.row_step
    s.left = p.rows * s.left_step if p.direct != BY_TILES else height * of.line
    if s.banded:
        s.left = p.band_size
    s.panels = 0
    if p.thin:
        s.panels = p.own_columns * s.left_step
    elif p.placed:
        s.panels = p.places_size
    elif p.direct == BY_TILES and s.packed_columns == 0 and not (p.keeps and s.parts == 1):
        s.panels = s.column_block * s.depth_block
    high = groups * ROWS_PER_GROUP if groups > 1 else height
    s.left = cache_lines(of, s.left)
    s.panels = cache_lines(of, s.panels)
    s.sums = cache_lines(of, high * s.sums_step)
    s.totals = s.sums * (8 // of.bytes) if s.is_long else 0
    if p.packs:
        lines = min(p.left_staged, p.rows) + (p.own_columns if p.thin else p.right_staged)
        s.staged = cache_lines(of, lines * s.depth_block + s.column_block)
        s.packing = cache_lines(of, p.right_staged * s.depth_block + s.packed_block)
    if s.packed_columns > 0 and not p.keeps:
        s.first = cache_lines(of, s.packed_batches * s.packed_columns * p.depth)


def cut_product(of: Shape, p: SizeProblem) -> ProductCut:
    """Return the division of a product and its scratch memory."""
    s = ProductCut()
    cut_items(of, p, s)
    deep = p.depth > s.depth_block
    # A block of a larger product has no memory for what is packed first.
    shows = p.band_rows > 0 and p.direct == BY_TILES and not s.is_long and s.parts == 1
    bands = shows and p.band_size > 0 and deep
    if packs_first(of, p, s, bands):
        cut_packed(of, p, s, bands)
    # A band has all summed indices of its rows: panels of all must be there.
    s.banded = shows and (not deep or p.keeps or s.packed_columns > 0)
    if s.banded:
        cut_bands(of, p, s)
    lay_out(of, p, s)
    return s


SIZE_FUNCTIONS = (
    share,
    widest_columns,
    longest_panels,
    even_columns,
    sum_parts,
    depth_limit,
    cut_items,
    packs_first,
    cut_packed,
    cut_bands,
    cache_lines,
    lay_out,
    cut_product,
)
"""The functions that the driver has in C, each after those it calls."""
