"""The three sizes of a test run, and the table of times that ends each of them.

``make test-tiny`` runs ``tests/tiny``. ``make test`` leaves out what is marked ``slow`` and runs a
part of the cases of what is marked ``cases``, with another part for each seed; its native code is
compiled with few passes (``-Og``). ``make test-all`` is pytest with ``--all``: everything, as
users have it compiled, and a share of it with ``--part 2/4``.
"""

from __future__ import annotations

import itertools
import random
import time
import zlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from hypothesis import settings

from geon.testing.fixtures import NEED_A_DEVICE, is_without_device

SLOWEST_FILES = 25
SLOWEST_TESTS = 30
SECONDS_PER_DAY = 86400
SHORT_EXAMPLES, ALL_EXAMPLES, LONG_EXAMPLES = 20, 150, 5000  # of Hypothesis, for one test
# Flags after all others for units of one program: half the time of the usual ones, see
# docs/decisions.md.
FEW_PASSES = "-Og"


def add_options(parser: pytest.Parser) -> None:
    """Add the options of a run's size to pytest."""
    group = parser.getgroup("geon's own tests")
    group.addoption("--all", action="store_true", help="run all tests and all of their cases")
    group.addoption(
        "--part", metavar="K/N", default="1/1", help="run the K-th of N shares of the tests"
    )
    group.addoption(
        "--cases-seed",
        metavar="SEED",
        type=int,
        help="choose the cases by this seed (default: the number of the day)",
    )
    group.addoption("--times", metavar="FILE", help="write the time of each file as Markdown")


def configure(config: pytest.Config) -> None:
    """Settle the seed for all workers, and choose the compiler's passes."""
    if config.option.cases_seed is None:
        config.option.cases_seed = int(time.time()) // SECONDS_PER_DAY
    if not config.option.all:
        compile_with_few_passes()


def compile_with_few_passes() -> None:
    """Compile the units of single programs with ``-Og`` from here on."""
    from geon.transformers.native.toolchain import Toolchain

    usual = Toolchain.own_flags

    def own_flags(self: Toolchain, unit: str) -> tuple[str, ...]:
        return (*usual(self, unit), FEW_PASSES) if self.lean else usual(self, unit)

    Toolchain.own_flags = own_flags  # type: ignore[method-assign]


def header(config: pytest.Config) -> str:
    """Return the line that says which tests run, and on which devices they do not."""
    which = f"those of `make test`, cases by --cases-seed {config.option.cases_seed}"
    if config.option.all:
        which = f"all, part {config.option.part}"
    absent = [name for name in NEED_A_DEVICE if is_without_device(name)]
    left = "".join(f"; none on {name}, whose device is not here" for name in absent)
    return f"tests: {which}{left}"


def scaled(count: int) -> int:
    """Return how many of ``count`` random cases a run of this size has, at least one.

    All of them with ``--all``, as many more or fewer elsewhere as Hypothesis' profile has examples.
    """
    return max(1, count * settings.default.max_examples // ALL_EXAMPLES)


# Choice -------------------------------------------------------------------------------------------


def select(config: pytest.Config, items: list[pytest.Item]) -> list[pytest.Item]:
    """Return the tests that a run of this size has, in order."""
    share, shares = part(config.option.part)
    kept = [item for item in items if zlib.crc32(function(item).encode()) % shares == share]
    if config.option.all:
        return kept
    groups: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in kept:
        if item.get_closest_marker("slow") is None:
            groups[function(item)].append(item)
    chosen = {id(item) for group in groups.values() for item in some(group, config)}
    return [item for item in kept if id(item) in chosen]


def part(text: str) -> tuple[int, int]:
    """Return the number of a share, from 0, and how many there are."""
    share, _, shares = text.partition("/")
    if not (share.isdecimal() and shares.isdecimal() and 1 <= int(share) <= int(shares)):
        raise pytest.UsageError(f"--part {text}: give a share and their number, such as 2/4")
    return int(share) - 1, int(shares)


def function(item: pytest.Item) -> str:
    """Return the node id of a test without its parameters."""
    return item.nodeid.partition("[")[0]


def some(group: Sequence[pytest.Item], config: pytest.Config) -> Iterable[pytest.Item]:
    """Return the cases of one test that run: all, unless it is marked ``cases``."""
    marker = group[0].get_closest_marker("cases")
    if marker is None:
        return group
    strength = marker.kwargs.get("strength", 1)
    seed = f"{config.option.cases_seed} {function(group[0])}"
    return [group[k] for k in covering(levels(group), strength, seed)]


def levels(group: Sequence[pytest.Item]) -> list[tuple[int, ...]]:
    """Return for each case the number of its value in each independent parameter.

    Parameters whose values always change together count as one.
    """
    rows = [item.callspec.params for item in group]  # type: ignore[attr-defined]
    columns: dict[tuple[int, ...], None] = {}
    for name in rows[0]:
        numbers: dict[int, int] = {}
        columns[tuple(numbers.setdefault(id(row[name]), len(numbers)) for row in rows)] = None
    return list(zip(*columns, strict=True))


def covering(rows: Sequence[tuple[int, ...]], strength: int, seed: str) -> list[int]:
    """Return indices of rows that together have each combination of ``strength`` values.

    A greedy covering array: rows in an order drawn from ``seed``, always the one with the most
    combinations that are not covered yet.
    """
    width = min(strength, len(rows[0]))
    combinations = [set(itertools.combinations(enumerate(row), width)) for row in rows]
    order = list(range(len(rows)))
    random.Random(seed).shuffle(order)
    missing: set[object] = set().union(*combinations)
    chosen = []
    while missing:
        best = max(order, key=lambda k: len(combinations[k] & missing))
        chosen.append(best)
        missing -= combinations[best]
    return sorted(chosen)


# Times --------------------------------------------------------------------------------------------


def summarize(terminal: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the seconds of the slowest files and tests; write all files where that was asked."""
    tests: dict[str, float] = defaultdict(float)
    for reports in terminal.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                tests[report.nodeid] += report.duration
    files: dict[str, list[float]] = defaultdict(list)
    for node, seconds in tests.items():
        files[node.partition("::")[0]].append(seconds)
    if not files:
        return
    ranked = sorted(files, key=lambda file: -sum(files[file]))
    total = sum(tests.values())
    terminal.section(f"seconds by file, {total:.0f} in all")
    for file in ranked[:SLOWEST_FILES]:
        terminal.write_line(f"{sum(files[file]):8.1f}  {len(files[file]):5}  {file}")
    terminal.section("slowest tests")
    for node in sorted(tests, key=lambda node: -tests[node])[:SLOWEST_TESTS]:
        terminal.write_line(f"{tests[node]:8.1f}  {node}")
    if config.option.times is not None:
        lines = ["| seconds | cases | file |", "|---:|---:|---|"]
        lines += [f"| {sum(files[f]):.1f} | {len(files[f])} | `{f}` |" for f in ranked]
        Path(config.option.times).write_text("\n".join([*lines, ""]))
