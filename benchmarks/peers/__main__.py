"""Measure geon beside its peers: ``python -m benchmarks.peers [--only NAME,...] [--quick]``.

Prints the tables and writes ``results.json`` here, and ``RESULTS.md`` and ``RESULTS.png`` one
folder up; with ``--only``, ``--contenders``, ``--base`` or ``--quick`` just the JSON, where
``--out`` says.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import ceilings, compiling, contest, report
from .base import UnknownRevisionError, installed
from .processes import BASE, CONTENDERS, Lost, Process, pin
from .workloads import COMPILED, WORKLOADS, Workload

HERE = Path(__file__).parent
PREFIX = "compile-"  # of the names of what is compiled in fresh processes
IMPORT = "import"


def options(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    names = [w.name for w in WORKLOADS] + [PREFIX + w.name for w in COMPILED] + [IMPORT]
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.peers", description=(__doc__ or "").splitlines()[0]
    )
    split = lambda text: [part for part in text.split(",") if part]  # noqa: E731
    parser.add_argument("--only", type=split, metavar="NAME,...", help=f"of {', '.join(names)}")
    parser.add_argument("--contenders", type=split, metavar="NAME,...",
                        help=f"of {', '.join(CONTENDERS)}")  # fmt: skip
    parser.add_argument("--rounds", type=int, default=7, help="turns of each contender")
    parser.add_argument("--threads", type=int, default=min(2, os.cpu_count() or 1),
                        help="for every contender alike")  # fmt: skip
    parser.add_argument("--base", metavar="REVISION",
                        help="a git revision of geon that is measured, too")  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="a trial run on small sizes")
    parser.add_argument("--out", type=Path, help="where the JSON goes")
    parser.add_argument("--page", type=Path, help="where tables go, as a page without a picture")
    chosen = parser.parse_args(argv)
    for given, known in ((chosen.only, names), (chosen.contenders, list(CONTENDERS))):
        for name in given or ():
            if name not in known:
                parser.error(f"{name!r} is not among {', '.join(known)}")
    return chosen


def machine() -> dict[str, Any]:
    """What the figures depend on."""
    command = ceilings.compiler()
    said = "none"
    if command is not None:
        ran = subprocess.run([*command, "--version"], capture_output=True, text=True)
        said = (ran.stdout.splitlines() or ["unknown"])[0]
    return {
        "processor": processor(),
        "processors": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "compiler": said,
    }


def processor() -> str:
    """Its name and, where the system tells, its widest vectors: names of machines that are lent
    may hide what they are.
    """
    name, widest = platform.processor() or platform.machine(), ""
    info = Path("/proc/cpuinfo")
    for line in info.read_text().splitlines() if info.exists() else ():
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            name = value.strip()
        if key.strip() == "flags":
            has = value.split()
            known = {"avx512f": " with AVX-512", "avx2": " with AVX2"}
            widest = next((text for flag, text in known.items() if flag in has), "")
            break
    return name + widest


def say(text: str) -> None:
    """What is going on, beside the tables."""
    print(text, file=sys.stderr, flush=True)


def start_all(
    names: list[str], threads: int, base: Path | None
) -> tuple[dict[str, Process], dict[str, Any]]:
    """A process for each contender that works here; versions, and why others are missing."""
    processes, versions, missing = {}, {}, {}
    for name in names:
        process = Process(name, threads, base=base)
        try:
            versions[name] = process.ask("version")
            processes[name] = process
        except Lost as lost:
            process.stop()
            missing[name] = str(lost)
            say(f"{CONTENDERS[name]} is missing: {lost}")
    return processes, {"versions": versions, "missing": missing}


def work(
    chosen: argparse.Namespace, processes: dict[str, Process], wanted: list[Workload]
) -> list[dict[str, Any]]:
    """The rows of the workloads."""
    rows = []
    for workload in wanted:
        start = time.perf_counter()
        found = contest.compete(workload, processes, chosen.rounds, chosen.quick)
        cost = workload.cost(chosen.quick)
        rows.append(
            {
                "name": workload.name,
                "title": workload.title,
                "flops": cost.flops if cost else None,
                "bytes_read": cost.read if cost else None,
                "bytes_written": cost.written if cost else None,
                "contenders": found,
            }
        )
        shown = ", ".join(
            f"{name} {report.seconds(one.get('median'))}" for name, one in found.items()
        )
        say(f"{workload.name} ({time.perf_counter() - start:.0f} s): {shown}")
    return rows


def compile_all(
    chosen: argparse.Namespace, names: list[str], wanted: list[Workload], base: Path | None
) -> list[dict[str, Any]]:
    """The rows of what is compiled in fresh processes."""
    rows = []
    for workload in wanted:
        start = time.perf_counter()
        found = {
            name: compiling.compiled(name, workload, chosen.threads, chosen.quick, base)
            for name in names
        }
        rows.append({"name": PREFIX + workload.name, "title": workload.title, "contenders": found})
        shown = ", ".join(
            f"{name} {report.seconds(one.get('cold'))}, {report.seconds(one.get('cached'))}"
            for name, one in found.items()
        )
        say(f"compile {workload.name} ({time.perf_counter() - start:.0f} s): {shown}")
    return rows


def measure(chosen: argparse.Namespace) -> dict[str, Any]:
    """The whole run."""
    wanted = lambda name: chosen.only is None or name in chosen.only  # noqa: E731
    pin(chosen.threads)
    run: dict[str, Any] = {
        "date": datetime.date.today().isoformat(),
        "machine": machine(),
        "threads": chosen.threads,
        "quick": chosen.quick,
        "ceilings": None,
        "notes": [],
    }
    limits: ceilings.Ceilings | None = None
    try:
        limits = ceilings.measure(chosen.threads, chosen.quick)
    except RuntimeError as error:
        run["ceilings_reason"] = str(error)
    listed = chosen.contenders or list(CONTENDERS)
    base = installed(chosen.base) if chosen.base else None
    names = [name for name in CONTENDERS if name in listed and name != BASE]
    if base is not None:
        names.insert(1, BASE)
    processes, found = start_all(names, chosen.threads, base)
    run |= found
    try:
        run["workloads"] = work(chosen, processes, [w for w in WORKLOADS if wanted(w.name)])
        for process in processes.values():
            run["notes"] += process.ask("notes")
    finally:
        for process in processes.values():
            process.stop()
    names = run["contenders"] = list(processes)
    run["compile"] = compile_all(
        chosen, names, [w for w in COMPILED if wanted(PREFIX + w.name)], base
    )
    run["import"] = (
        {name: compiling.imported(name, chosen.threads) for name in names} if wanted(IMPORT) else {}
    )
    if limits is not None:
        if not chosen.quick:
            # Again, in case other work on the machine held the first ones down.
            limits = limits.better(ceilings.measure(chosen.threads, chosen.quick))
        run["ceilings"] = limits.as_json()
    for row in run["workloads"]:
        cost = next(w for w in WORKLOADS if w.name == row["name"]).cost(chosen.quick)
        row["ceiling_seconds"] = limits.seconds(cost) if limits and cost else None
        report.summarize(row)
    run["geometric_mean"] = report.geometric_mean(row["ratio"] for row in run["workloads"])
    run["before"] = report.geometric_mean(row["before"] for row in run["workloads"])
    return run


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, print, write."""
    chosen = options(argv)
    whole = not (chosen.only or chosen.contenders or chosen.quick or chosen.base)
    start = time.perf_counter()
    try:
        run = measure(chosen)
    except UnknownRevisionError as error:
        sys.exit(str(error))
    print(report.text(run))
    path = chosen.out or (HERE / "results.json" if whole else None)
    if path is not None:
        path.write_text(json.dumps(run, indent=1, ensure_ascii=False) + "\n")
    if chosen.page is not None:
        chosen.page.write_text(report.page(run))
    if whole:
        from .picture import draw

        (HERE.parent / "RESULTS.md").write_text(report.page(run, "RESULTS.png"))
        try:
            draw(run, HERE.parent / "RESULTS.png")
        except ImportError as error:
            say(f"no picture: {error}")
    say(f"{time.perf_counter() - start:.0f} s in all")


if __name__ == "__main__":
    main()
