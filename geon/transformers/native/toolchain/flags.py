"""The flags that C compilers are given, and why."""

from __future__ import annotations

# Contraction is off so that a product and a sum round twice everywhere alike; NaN, infinities and
# signed zeros stay as IEEE 754 says. The two `no-math` flags drop errno and the order of
# exceptions, which no program here looks at, and without which square roots do not vectorise.
# -O2 with the vectoriser of -O3 makes loops as fast, measured, and compiles a fifth sooner.
# Partial redundancies stay: without them work stands on branches, and such a loop has no vectors.
FLAGS = (
    "-std=gnu11",
    "-O2",
    "-ftree-vectorize",
    "-fvect-cost-model=dynamic",
    "-fno-tree-pre",
    "-march=native",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fwrapv",
    "-fopenmp-simd",
    "-fPIC",
    "-pipe",
    "-Werror=implicit-function-declaration",  # else it is an object that cannot be loaded
)
# What geon prints for one program has no dead code and no common subexpressions, and its loops are
# straight lines. These passes of gcc find nothing there, and look for it in a fifth of the time.
# Passes before the vectoriser stay: without threaded jumps and hoisted loads a guarded load of a
# stencil is no vector code. The dominator walks thread jumps too, through choices with conditions
# in common, as of a maximum's derivative: the loop falls into branches and has no vectors.
LEAN = tuple(
    f"-fno-{name}"
    for name in """tree-dominator-opts gcse schedule-insns2 expensive-optimizations tree-vrp
    ipa-cp caller-saves crossjumping tree-tail-merge ipa-sra ipa-icf rerun-cse-after-loop
    cse-follow-jumps store-merging peephole2 ipa-vrp ipa-bit-cp optimize-strlen ipa-ra
    tree-switch-conversion partial-inlining inline-small-functions inline-functions
    devirtualize""".split()
)
# A unit that begins with this line has no loop that a compiler is to find vectors for. With the few
# passes of -Og gcc takes less than half of the time for it; `docs/decisions.md` has what it costs.
OF_VECTORS = "/* of vectors */"
FEW_PASSES = ("-Og", "-fira-region=one")
# Without these, code would be wrong or could not be loaded: a compiler must know them.
NEEDED = ("-std=gnu11", "-O2", "-ffp-contract=off", "-fwrapv", "-fPIC")
# Tried in place of one that a compiler does not know.
INSTEAD = {"-march=native": "-mcpu=native", "-mtune=sapphirerapids": "-mtune=skylake-avx512"}
WIDE = "-mprefer-vector-width=512"
# A processor that is newer than gcc is tuned for as for any: without gathers, and a loop with one
# has no vectors then, whatever else it computes.
UNTUNED = "-mtune=generic"
TUNED = "-mtune=sapphirerapids"
# Memory of the arena has values of one type after those of another. gcc keeps a store behind what
# was read before it, whatever their types are; clang does not.
ANY_TYPE = "-fno-strict-aliasing"
SANITIZERS = (
    "-O1",
    "-g1",
    "-fno-tree-vectorize",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=undefined",
    "-fno-omit-frame-pointer",
)
