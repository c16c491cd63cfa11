"""What the machine can do, measured by ``ceilings.c``, and how long a workload takes at least."""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .costs import Cost

SOURCE = Path(__file__).with_name("ceilings.c")
LARGEST, SMALL = 1 << 28, 1 << 24  # bytes of the largest working set; in a trial run
MIXES = {"1:0": 1.0, "3:1": 0.75, "2:1": 2 / 3, "1:1": 0.5, "0:1": 0.0}  # by the share of reading
IN_PLACE = {"4:3 in place": 4 / 7, "1:1 in place": 0.5}


@dataclass(frozen=True)
class Ceilings:
    """Operations per second by precision, and bytes per second by mix and working set."""

    threads: int
    fma: dict[str, float]
    bytes: dict[str, dict[int, float]]

    def bandwidth(self, mix: str, size: float) -> float:
        """Bytes per second, interpolated between the logarithms of measured sizes."""
        known = sorted(self.bytes[mix].items())
        if size <= known[0][0]:
            return known[0][1]
        for (below, low), (above, high) in zip(known, known[1:], strict=False):
            if size <= above:
                part = math.log(size / below) / math.log(above / below)
                return low * (high / low) ** part
        return known[-1][1]

    def seconds(self, cost: Cost) -> float:
        """The least time of a workload: by its operations or its bytes, whichever is more."""
        moving = 0.0
        if cost.read + cost.written:
            speed = self.bandwidth(mix_of(cost), cost.footprint)
            moving = (cost.read + cost.written) / speed
        return max(moving, cost.flops / self.fma["32"])

    def better(self, other: Ceilings) -> Ceilings:
        """The higher of each figure."""
        fma = {bits: max(rate, other.fma[bits]) for bits, rate in self.fma.items()}
        moved = {
            mix: {size: max(rate, other.bytes[mix][size]) for size, rate in rates.items()}
            for mix, rates in self.bytes.items()
        }
        return Ceilings(self.threads, fma, moved)

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def mix_of(cost: Cost) -> str:
    """The measured mix that is nearest in its share of reading."""
    mixes = IN_PLACE if cost.in_place else MIXES
    share = cost.read / (cost.read + cost.written)
    return min(mixes, key=lambda mix: abs(mixes[mix] - share))


def compiler() -> list[str] | None:
    """The command of a C compiler, or None."""
    named = os.environ.get("CC", "").split()
    if named:
        return named
    return next(([name] for name in ("cc", "gcc", "clang") if shutil.which(name)), None)


def measure(threads: int, quick: bool) -> Ceilings:
    """Compile and run the program; ``RuntimeError`` says why where that is not possible."""
    command = compiler()
    if command is None:
        raise RuntimeError("there is no C compiler: set CC, or install cc, gcc or clang")
    with tempfile.TemporaryDirectory() as folder:
        program = str(Path(folder, "ceilings"))
        options = ["-O3", "-march=native", "-std=gnu11", str(SOURCE), "-o", program, "-lpthread"]
        built = subprocess.run([*command, *options], capture_output=True, text=True)
        if built.returncode:
            raise RuntimeError(f"{command[0]} did not compile {SOURCE.name}: {built.stderr[:500]}")
        largest = str(SMALL if quick else LARGEST)
        ran = subprocess.run(
            [program, str(threads), largest], capture_output=True, text=True, timeout=300
        )
        if ran.returncode:
            raise RuntimeError(f"the program of {SOURCE.name} ended with {ran.returncode}")
    return read(threads, ran.stdout)


def read(threads: int, text: str) -> Ceilings:
    """The figures from the program's lines."""
    made = Ceilings(threads, {}, {})
    for line in text.splitlines():
        kind, rest = line.split(" ", 1)
        what, rate = rest.rsplit(" ", 1)
        if kind == "fma":
            made.fma[what] = float(rate)
        else:
            mix, size = what.split("|")
            made.bytes.setdefault(mix, {})[int(size)] = float(rate)
    return made
