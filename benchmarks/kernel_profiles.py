"""Write what each kernel of two workloads should take and takes: ``benchmarks/KERNELS.md``.

``python -m benchmarks.kernel_profiles`` profiles the perceptron's training step and the transformer
block with its derivatives of ``benchmarks/peers`` on the native transformer.
"""

from __future__ import annotations

import platform
from pathlib import Path

from geon.transformers.native.machine.roofline_peaks import ceilings

from .peers import workloads
from .profiled import profiles

WORKLOADS = ("mlp-step", "block-forward", "block-gradient")


def profile(name: str, threads: int) -> str:
    """The table of one workload."""
    return str(profiles(name, threads, rounds=1, repeats=30)[0])


def main() -> None:
    """Profile on one thread and on two, and write the page."""
    parts = [
        "# Kernels: predicted and measured",
        "Made by `python -m benchmarks.kernel_profiles`. `predicted us` is what a kernel should "
        "take by the machine's measured speeds, `least us` what the machine's measured "
        "ceilings allow for the bytes and operations of a kernel, `of ceiling` its share of the "
        "time taken.",
        f"Machine: {platform.machine()}, Python {platform.python_version()}.",
    ]
    for threads in (1, 2):
        ceilings(threads, fresh=True)  # what is kept may be of a busier hour
    for name in WORKLOADS:
        for threads in (1, 2):
            title = workloads.named(name).title
            parts += [f"## {title}, {threads} thread{'s' * (threads > 1)}",
                      f"```text\n{profile(name, threads)}\n```"]  # fmt: skip
    Path(__file__).with_name("KERNELS.md").write_text("\n\n".join(parts) + "\n")


if __name__ == "__main__":
    main()
