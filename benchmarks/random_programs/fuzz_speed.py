"""``python -m benchmarks.random_programs.fuzz_speed``: kernels of random large programs, the worst
share of their ceiling first; ``make fuzz-speed``.

With ``--into FILE`` outcomes are kept as they are known, and a later run with the same file goes on
where it was. With ``--runs N`` all programs are measured N times, and the fastest run of each
kernel counts: other programs of the machine may slow down a whole run.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import statistics
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from . import ceiling
from .processes import ROOT, run
from .programs import grown

FILES = ROOT / ".hypothesis" / "speed"
LEAST = 100e-6  # seconds from which on a kernel counts
LOW, LOWEST = 0.3, 0.1  # shares of the ceiling
MOST_LOW = 0.05  # of the kernels that count may be below LOW
SHOWN = 40  # kernels
Row = dict[str, Any]


def counted(found: list[Row], least: float = LEAST) -> list[Row]:
    """The kernels that take longer than ``least`` seconds, the worst first, each with its program's
    number and its share."""
    rows = [
        {**row, "program": program["number"], "share": row["least"] / row["seconds"]}
        for program in found
        for row in program.get("kernels", ())
        if row["seconds"] > least
    ]
    return sorted(rows, key=lambda row: float(row["share"]))


def fails(rows: list[Row]) -> bool:
    """Whether more kernels are far from their ceiling than may be."""
    low = sum(row["share"] < LOW for row in rows)
    lowest = sum(row["share"] < LOWEST for row in rows)
    return lowest > 0 or low > MOST_LOW * len(rows)


def summary(found: list[Row], rows: list[Row], least: float) -> list[str]:
    """What there is to say of the kernels that count and of all programs."""
    measured = [program for program in found if "kernels" in program]
    low, lowest = (sum(row["share"] < limit for row in rows) for limit in (LOW, LOWEST))
    ratios = sorted(program["seconds"] / program["least"] for program in measured)
    inside = sorted(program["kernel_seconds"] / program["least"] for program in measured)
    lines = [
        f"{len(rows)} kernels took more than {1e6 * least:.0f} us, in {len(measured)} programs",
        f"below {LOW:.0%} of their ceiling: {low} ({_part(low, rows)}); below {LOWEST:.0%}: "
        f"{lowest} ({_part(lowest, rows)})",
    ]
    if rows:
        lines.append(f"median share: {statistics.median(row['share'] for row in rows):.0%}")
    if ratios:
        lines.append(
            "a program's time over the least that its inputs, results and operations allow: "
            f"median {statistics.median(ratios):.1f} (of its kernels alone "
            f"{statistics.median(inside):.1f})"
        )
    return lines


def _part(count: int, rows: list[Row]) -> str:
    return f"{count / len(rows):.0%}" if rows else "none"


def groups(rows: list[Row]) -> list[str]:
    """Kernels by what is special about them, those with the most time above their ceiling first."""
    by: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by[row["trait"]].append(row)
    lost = {name: sum(r["seconds"] - r["least"] for r in each) for name, each in by.items()}
    lines = [f"{'kernels':>8} {'<30%':>5} {'<10%':>5} {'median':>7} {'ms lost':>8}  what they are"]
    for name in sorted(by, key=lambda name: -lost[name]):
        shares = [row["share"] for row in by[name]]
        lines.append(
            f"{len(shares):8} {sum(s < LOW for s in shares):5} {sum(s < LOWEST for s in shares):5} "
            f"{statistics.median(shares):7.0%} {1e3 * lost[name]:8.1f}  {name}"
        )
    return lines


def worst(rows: list[Row], seed: str, shown: int) -> list[str]:
    """The worst kernels, each with its program and structure."""
    lines = []
    for row in rows[:shown]:
        lines.append(
            f"{row['share']:5.1%}  {1e6 * row['seconds']:8.0f} us, least {1e6 * row['least']:.0f} "
            f"by {row['by']}, predicted {1e6 * row['predicted']:.0f}; {seed}-{row['program']} "
            f"kernel {row['number']}: {row['computes']}\n       {row['structure']}"
        )
    return lines


def write_files(rows: list[Row], seed: str, most: int, small: bool) -> list[str]:
    """The programs of the worst kernels, in files that ``python -m geon replay`` runs."""
    FILES.mkdir(parents=True, exist_ok=True)
    paths = []
    for number in list(dict.fromkeys(row["program"] for row in rows))[:most]:
        path = FILES / f"{seed}-{number}.geon"
        path.write_text(grown(seed, number, small=small).dumped())
        paths.append(str(path))
    return paths


def report(found: list[Row], seed: str, shown: int, least: float = LEAST) -> str:
    """All that is printed."""
    rows = counted(found, least)
    failed = [program for program in found if "failed" in program]
    unsound = [program["number"] for program in found if not program.get("finite", True)]
    parts = [summary(found, rows, least), groups(rows), worst(rows, seed, shown)]
    parts.append([f"--- {p['number']}: {p['shown']}\n{p['failed']}" for p in failed])
    if unsound:
        parts.append([f"not finite: {', '.join(map(str, unsound))}"])
    said = (ceiling.__doc__ or "").strip()
    return "\n\n".join("\n".join(part) for part in [*parts, [said]] if part)


def read(path: Path | None) -> list[Row]:
    """The outcomes that an earlier run has kept."""
    if path is None or not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]


def fastest(found: list[Row]) -> list[Row]:
    """One outcome of each program: that of its only run, or the fastest time of each kernel."""
    best: dict[int, Row] = {}
    for row in found:
        known = best.setdefault(row["number"], row)
        if known is row or "kernels" not in row:
            continue
        if "kernels" in known:
            pairs = zip(known["kernels"], row["kernels"], strict=True)
            kernels = [min(pair, key=lambda kernel: float(kernel["seconds"])) for pair in pairs]
            total = sum(kernel["seconds"] for kernel in kernels)
            seconds = min(known["seconds"], row["seconds"])
            row = {**row, "kernels": kernels, "kernel_seconds": total, "seconds": seconds}
        best[row["number"]] = row
    return list(best.values())


def parsed(arguments: list[str] | None, what: str, programs: int) -> argparse.Namespace:
    """The options that both tools have."""
    parser = argparse.ArgumentParser(prog=f"python -m {__package__}.{what}")
    parser.add_argument("--programs", type=int, default=programs, help="how many")
    parser.add_argument("--seed", default="", help="what they are made of; else a new one")
    parser.add_argument("--only", default="", help="numbers of single programs, with commas")
    parser.add_argument("--threads", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--runs", type=int, default=1, help="how often each one is measured")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for one program")
    parser.add_argument("--seconds", type=float, default=float("inf"),
                        help="no program begins later")  # fmt: skip
    parser.add_argument("--into", type=Path, help="a file of outcomes, to which this run adds")
    parser.add_argument("--least", type=float, default=1e6 * LEAST,
                        help="microseconds from which on a kernel counts")  # fmt: skip
    parser.add_argument("--shown", type=int, default=SHOWN, help="how many are listed")
    parser.add_argument("--files", type=int, default=5, help="how many programs are written")
    parser.add_argument("--small", action="store_true", help="a trial run on small arrays")
    parser.add_argument("--assert", dest="asserted", action="store_true",
                        help="fail where the bound does not hold")  # fmt: skip
    chosen = parser.parse_args(arguments)
    chosen.seed = chosen.seed or secrets.token_hex(4)
    return chosen


def collected(chosen: argparse.Namespace, what: str, tell: Any) -> list[Row]:
    """The outcomes of the programs that were asked for, those of earlier runs among them."""
    numbers = [int(n) for n in chosen.only.split(",") if n] or list(range(chosen.programs))
    print(f"seed {chosen.seed}, {len(numbers)} programs, {chosen.threads} threads", flush=True)
    found = [row for row in read(chosen.into) if row["number"] in numbers]
    known = Counter(row["number"] for row in found)
    given = {"what": what, "seed": chosen.seed, "threads": chosen.threads, "small": chosen.small}
    began = time.monotonic()

    def keep(row: Row) -> None:
        found.append(row)
        if chosen.into is not None:
            with chosen.into.open("a") as file:
                file.write(json.dumps(row) + "\n")
        print(f"{time.monotonic() - began:7.1f} s  {row['number']}: {tell(row)}", flush=True)

    for turn in range(chosen.runs):
        left = [number for number in numbers if known[number] <= turn]
        run(given, left, chosen.limit, keep, began + chosen.seconds)
    return found


def told(row: Row) -> str:
    """One line about a program."""
    if "failed" in row:
        return f"failed: {row['failed'].splitlines()[0]}"
    shares = [each["least"] / each["seconds"] for each in row["kernels"] if each["seconds"] > LEAST]
    least = f", worst of {len(shares)} {min(shares):.0%}" if shares else ""
    return f"{1e3 * row['seconds']:.2f} ms, least {1e3 * row['least']:.2f}{least}"


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and the exit status."""
    chosen = parsed(arguments, "fuzz_speed", programs=300)
    found = fastest(collected(chosen, "measured", told))
    least = 1e-6 * chosen.least
    print("\n" + report(found, chosen.seed, chosen.shown, least))
    rows = counted(found, least)
    for path in write_files(rows, chosen.seed, chosen.files, chosen.small):
        print(f"python -m geon replay {path} --transformer native")
    return int(chosen.asserted and fails(rows))


if __name__ == "__main__":
    sys.exit(main())
