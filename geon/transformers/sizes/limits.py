"""Limits that several stages share: of loops, tasks, searches and the text of a kernel.

A threshold stands beside the rule that it belongs to. Where several rules bound the same thing, it
is here, and they use it or an expression of it. Bytes of caches are in ``blocks``.
"""

from .blocks import CACHE_LINE_BYTES, L1_BYTES, L2_BYTES
from .product_blocks import VECTOR_SIZES_BYTES

SSE_BYTES, AVX2_BYTES, AVX512_BYTES = VECTOR_SIZES_BYTES  # bytes of vector registers
PAGE_BYTES = 4096  # bytes of a page, whose end the hardware prefetcher does not cross
MISSES_PER_PAGE = 3  # cache lines of a page that are read before the prefetcher detects the stream
MIN_RUN_BYTES = 8 * CACHE_LINE_BYTES  # bytes of a run of memory, most of which is prefetched
L1_BLOCK_BYTES = L1_BYTES // 16  # bytes of a block in a buffer, beside what else a loop touches
MIN_LAST_CACHE_BYTES = 4 * L2_BYTES  # bytes that fit into the last cache of every machine
L1_WAYS = 8  # arrays that a loop can walk without evicting lines of each other from a cache set
PREFETCH_DISTANCE = 16  # iterations from a prefetch to the use of what it reads
OP_LATENCY_CYCLES = 4  # latency of an addition or product: so many independent vectors hide it

# Iterations of a long loop. Its start, its rest that fills no vector and a guard around it cost a
# few iterations, which is a tenth of its time or less.
LONG_LOOP_TURNS = 64
# Iterations of a short loop, at most: as fast without a loop, too few to divide or to vectorise.
SHORT_LOOP_TURNS = 8
# A part is small beside what is so many times as large: 12 % of its time or memory.
MIN_SIZE_RATIO = 8
NOMINAL_LENGTH = 1024  # elements of open axes where only the choice of a kernel depends on them

MIN_TASK_WORK = 1 << 15  # operations of a task: about 10 microseconds, much more than its start
MIN_WORK = 4 * MIN_TASK_WORK  # operations below which one task is faster than waking a thread
MAX_TASK_WORK = 4 * MIN_WORK  # operations of a task, for load balance

# Scalar nodes or statements of one function: with more it is no faster, and compilers take longer
# for each.
MAX_FUNCTION_NODES = 512
# Ops, kernels or pieces that a search visits while the user waits for a program.
MAX_SEARCHED = 64
MAX_CANDIDATES = 8  # alternatives of one choice that a search compares
MAX_LENGTH = 1 << 40  # elements along an axis of open length
