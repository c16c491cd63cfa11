"""How well kernels' times are predicted: for each kernel of the workloads in ``benchmarks/peers``
that takes more than 20 microseconds the prediction beside what was measured.

``python -m benchmarks.predictions`` prints a line for each kernel, and how many predictions are
within a factor of 1.5. A kernel's time is the least of several calls, since a busy machine
makes kernels slower and never faster. ``--fresh`` measures the machine again first,
``--only NAME`` takes one workload, ``--rounds N`` profiles so often.
"""

from __future__ import annotations

import argparse

from geon.transformers.native.machine.microbenchmarks import speeds
from geon.transformers.native.machine.roofline_peaks import ceilings
from geon.transformers.native.toolchain.compilers import find_toolchain

from .peers import workloads
from .profiled import profiles

LEAST = 20e-6  # seconds of a kernel that counts
FACTOR = 1.5


def main() -> None:
    """Print the kernels and how many predictions fit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--only")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    if options.fresh:
        ceilings(options.threads, fresh=True)
        toolchain = find_toolchain()
        assert toolchain is not None
        speeds(toolchain, fresh=True)
    names = [options.only] if options.only else [w.name for w in workloads.WORKLOADS]
    counted: dict[str, list[bool]] = {}
    print(f"{'workload':24} {'kernel':48} {'measured us':>12} {'predicted us':>12} {'ratio':>6}")
    for name in names:
        for rows in zip(*profiles(name, options.threads, options.rounds, 1), strict=True):
            row = min(rows, key=lambda each: each.seconds)
            if row.seconds <= LEAST:
                continue
            ratio = row.predicted / row.seconds
            fits = 1 / FACTOR <= ratio <= FACTOR
            counted.setdefault(name, []).append(fits)
            what = f"{row.number} {row.kind} {row.computes[0]}"[:48]
            times = f"{1e6 * row.seconds:12.1f} {1e6 * row.predicted:12.1f}"
            print(f"{name:24} {what:48} {times} {ratio:6.2f}{'' if fits else ' *'}", flush=True)
    fits_in_all = [each for fits in counted.values() for each in fits]
    shares = [sum(fits) / len(fits) for fits in counted.values()]
    if not shares:
        print(f"no kernel takes more than {1e6 * LEAST:.0f} us")
        return
    print(f"within a factor of {FACTOR}: {sum(fits_in_all)} of {len(fits_in_all)} kernels "
          f"({sum(fits_in_all) / len(fits_in_all):.0%}); each workload counted once: "
          f"{sum(shares) / len(shares):.0%}")  # fmt: skip


if __name__ == "__main__":
    main()
