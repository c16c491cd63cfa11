"""``python -m benchmarks.random_programs.bench_random``: random large programs, and derivatives of
them, beside JAX; ``make bench-random``. Values that differ from those of JAX fail it.
"""

from __future__ import annotations

import importlib.util
import math
import sys
from typing import Any

from .fuzz_speed import FILES, collected, parsed
from .programs import grown

MEAN, LEAST = 3.0, 0.97  # what the geometric mean and each ratio should be at least
KINDS = ("forward", "gradient")
Row = dict[str, Any]


def ratios(found: list[Row]) -> list[Row]:
    """Each computation that was measured, the worst ratio of JAX's time to geon's first."""
    rows = [
        {**row[which], "program": row["number"], "kind": which, "shown": row["shown"],
         "ratio": row[which]["jax"] / row[which]["geon"],
         "ratio_of_best": row[which]["jax_best"] / row[which]["geon_best"]}
        for row in found
        for which in KINDS
        if "geon" in row.get(which, ())
    ]  # fmt: skip
    return sorted(rows, key=lambda row: float(row["ratio"]))


def geometric_mean(rows: list[Row], of: str = "ratio") -> float:
    """Of the ratios; 0 without any."""
    return math.exp(sum(math.log(row[of]) for row in rows) / len(rows)) if rows else 0.0


def differences(found: list[Row]) -> list[Row]:
    """Each computation whose values are not those of JAX."""
    return [
        {"program": row["number"], "kind": which, "shown": row["shown"],
         "differs": row[which]["differs"]}
        for row in found
        for which in KINDS
        if "differs" in row.get(which, ())
    ]  # fmt: skip


def fails(rows: list[Row]) -> bool:
    """Whether geon is slower than it should be."""
    return geometric_mean(rows) < MEAN or rows[0]["ratio"] < LEAST


def line(row: Row, seed: str) -> str:
    """One line of the table."""
    return (
        f"{row['ratio']:7.2f}  {1e6 * row['geon']:9.0f} us  {1e6 * row['jax']:9.0f} us  "
        f"{row['kind']:8}  {seed}-{row['program']}  {row['shown'][:100]}"
    )


def report(found: list[Row], seed: str, shown: int) -> str:
    """All that is printed."""
    rows = ratios(found)
    lines = [f"{'JAX/geon':>7}  {'geon':>11}  {'JAX':>11}  what"]
    lines += [line(row, seed) for row in rows]
    for which in KINDS:
        some = [row for row in rows if row["kind"] == which]
        lines.append(f"geometric mean of {len(some)} {which}: {geometric_mean(some):.2f}")
    slower = sum(row["ratio"] < LEAST for row in rows)
    lines.append(f"geometric mean of {len(rows)}: {geometric_mean(rows):.2f}; below {LEAST}: "
                 f"{slower}")  # fmt: skip
    fastest = geometric_mean(rows, "ratio_of_best")
    lines.append(f"of the fastest calls, which other work disturbs least: {fastest:.2f}")
    if rows:
        lines += ["", "the worst:", *[line(row, seed) for row in rows[:shown]]]
    for row in found:
        if "failed" in row:
            lines.append(f"--- {row['number']}: {row['shown']}\n{row['failed']}")
        for which in KINDS:
            if "reason" in row.get(which, ()):
                lines.append(f"left out: {row['number']} {which}: {row[which]['reason']}")
    lines += [
        f"DIFFERS from JAX: {seed}-{row['program']} {row['kind']}: {row['differs']}"
        f"\n    {row['shown']}"
        for row in differences(found)
    ]
    return "\n".join(lines)


def write_files(rows: list[Row], seed: str, most: int, small: bool) -> list[str]:
    """The first programs of some rows, in files that ``python -m geon replay`` runs."""
    from .raced import derivatives, summed  # here because it needs JAX

    FILES.mkdir(parents=True, exist_ok=True)
    paths = []
    for row in rows[:most]:
        program = grown(seed, row["program"], derivatives=False, small=small)
        results = None
        if row["kind"] == "gradient":
            results = derivatives(program, summed(program))
        path = FILES / f"{seed}-{row['program']}-{row['kind']}.geon"
        path.write_text(program.dumped(results))
        paths.append(str(path))
    return paths


def told(row: Row) -> str:
    """One line about a program."""
    if "failed" in row:
        return f"failed: {row['failed'].splitlines()[0]}"
    parts = []
    for which in KINDS:
        one = row.get(which, {})
        if "geon" in one:
            parts.append(f"{which} {one['jax'] / one['geon']:.2f}")
        elif "differs" in one:
            parts.append(f"{which} DIFFERS: {one['differs']}")
        elif one:
            parts.append(f"{which} left out: {one['reason'][:80]}")
    return ", ".join(parts)


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and the exit status: 1 where values differ from those of JAX or a program
    fails, and with ``--assert`` where geon is slower than it should be."""
    chosen = parsed(arguments, "bench_random", programs=100)
    if importlib.util.find_spec("jax") is None:
        print("JAX is not installed: pip install 'geon[bench]'", file=sys.stderr)
        return 2
    found = collected(chosen, "raced", told)
    rows = ratios(found)
    print("\n" + report(found, chosen.seed, 10))
    wrong = differences(found)
    paths = write_files(wrong, chosen.seed, len(wrong), chosen.small)
    for path in paths + write_files(rows, chosen.seed, chosen.files, chosen.small):
        print(f"python -m geon replay {path} --transformer native")
    broken = wrong or any("failed" in row for row in found)
    return int(bool(broken) or (chosen.asserted and (not rows or fails(rows))))


if __name__ == "__main__":
    sys.exit(main())
