"""Write what each kernel of two workloads should take and takes: ``benchmarks/KERNELS.md``.

``python benchmarks/kernel_profiles.py`` profiles the perceptron's training step and the transformer
block with its derivatives of ``benchmarks/peers`` on the native transformer.
"""

from __future__ import annotations

import inspect
import platform
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import geon  # noqa: E402  # found from the root
from benchmarks.peers import geon_work, workloads  # noqa: E402  # as above
from geon.transformers.native.ceilings import ceilings  # noqa: E402  # as above

WORKLOADS = ("mlp-step", "block-forward", "block-gradient")


def profile(name: str, threads: int) -> str:
    """The table of one workload."""
    made: list[geon.Computation] = []

    class Noting(geon.NativeTransformer):
        def computation(self, *args: Any, **keywords: Any) -> geon.Computation:
            made.append(super().computation(*args, **keywords))
            return made[-1]

    geon_work.transformer = lambda: Noting(threads=threads)
    workload = workloads.named(name)
    prepared = geon_work.BUILDERS[workload.kind](workload.sized(False), workload.inputs(False))
    held = (
        inspect.getclosurevars(prepared.call).nonlocals if inspect.isfunction(prepared.call) else {}
    )
    data = held.get("data", getattr(prepared.call, "args", ()))
    return str(made[-1].profile(*data, repeats=30))


def main() -> None:
    """Profile on one thread and on two, and write the page."""
    parts = [
        "# Kernels: predicted and measured",
        "Made by `python benchmarks/kernel_profiles.py`. `predicted us` is what a kernel should "
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
    (ROOT / "benchmarks" / "KERNELS.md").write_text("\n\n".join(parts) + "\n")


if __name__ == "__main__":
    main()
