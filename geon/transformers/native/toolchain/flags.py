"""The flags of C compilers, with their reasons."""

from __future__ import annotations

# FP contraction is off, so that a product and a sum round separately on all machines. NaN,
# infinities and signed zeros follow IEEE 754. The flags -fno-math-errno and -fno-trapping-math drop
# errno and the order of FP exceptions, which no program reads; otherwise square roots are not
# vectorised. -O2 with the vectoriser of -O3 gives equally fast loops, measured, and compiles a
# fifth faster. Partial redundancy elimination is off: it moves work into branches, and such a loop
# is not vectorised.
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
    "-Werror=implicit-function-declaration",  # else the object fails only when it is loaded
)
# Passes of gcc that are off for emitted programs: these have no dead code, no common subexpressions
# and straight-line loop bodies. The passes find nothing and take a fifth of the compile time.
# Passes before the vectoriser stay on: guarded loads of stencils vectorise only after jump
# threading and load hoisting. Dominator optimisation is off also because it threads jumps through
# selects with common conditions, as in the derivative of a maximum; the loop then has branches and
# is not vectorised.
LEAN = tuple(
    f"-fno-{name}"
    for name in """tree-dominator-opts gcse schedule-insns2 expensive-optimizations tree-vrp
    ipa-cp caller-saves crossjumping tree-tail-merge ipa-sra ipa-icf rerun-cse-after-loop
    cse-follow-jumps store-merging peephole2 ipa-vrp ipa-bit-cp optimize-strlen ipa-ra
    tree-switch-conversion partial-inlining inline-small-functions inline-functions
    devirtualize""".split()
)
# First line of a unit without loops for the compiler to vectorise. With the few passes of -Og gcc
# takes less than half of the time for it; `docs/design/22-vector-code.md`
# states the cost.
OF_VECTORS = "/* of vectors */"
FEW_PASSES = ("-Og", "-fmove-loop-invariants", "-fira-region=one")
# Flags that a compiler must support: without them code would be wrong or could not be loaded.
NEEDED = ("-std=gnu11", "-O2", "-ffp-contract=off", "-fwrapv", "-fPIC")
# Replacements for flags that a compiler does not support.
INSTEAD = {"-march=native": "-mcpu=native", "-mtune=sapphirerapids": "-mtune=skylake-avx512"}
WIDE = "-mprefer-vector-width=512"
# For a processor that is newer than gcc, -march=native implies generic tuning, which avoids
# gathers: a loop that needs one is then not vectorised at all.
UNTUNED = "-mtune=generic"
TUNED = "-mtune=sapphirerapids"
# Arena memory is reused for values of other types. gcc orders a store after earlier loads of any
# type; clang does so only without strict aliasing.
ANY_TYPE = "-fno-strict-aliasing"
SANITIZERS = (
    "-O1",
    "-g1",
    "-fno-tree-vectorize",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=undefined",
    "-fno-omit-frame-pointer",
)
