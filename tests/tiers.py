"""The three sizes of a test run, and the table of times that ends each of them.

``make test-tiny`` runs ``tests/tiny``. ``make test`` leaves out what is marked ``slow``, and of a
test with several parameters it runs cases that have each value of each of them, others for each
seed: each on NumPy, and on one of the transformers that compile. Native code of single programs is
compiled with few passes (``-Og``) but for tests that are marked ``optimized``. Of the tests in
``rotating_tests.txt`` a run of all files has a twelfth of the cases, by the seed. Cases in
``kernel_cases.txt`` always run: they schedule kernels that no other case does. ``tests/reach.py``
makes both lists. Of random programs each seed has another unit (``units``).
``make test-all`` is pytest with ``--all``: everything, compiled as users have it, and a share of it
with ``--part 2/4``.
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
# docs/design/45-tests-and-golden-text.md.
FEW_PASSES = "-Og"
KERNEL_CASES = Path(__file__).with_name("kernel_cases.txt")
ROTATING_TESTS = Path(__file__).with_name("rotating_tests.txt")
TURNS = 12  # consecutive seeds that together run all chosen cases of a rotating test


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
    group.addoption(
        "--times", metavar="FILE", help="write the time of each file as Markdown; with ="
    )


def configure(config: pytest.Config) -> None:
    """Settle the seed for all workers, and choose the compiler's passes."""
    global cases_seed
    if config.option.cases_seed is None:
        config.option.cases_seed = int(time.time()) // SECONDS_PER_DAY
    cases_seed = config.option.cases_seed
    if not config.option.all:
        compile_with_few_passes()


def compile_with_few_passes() -> None:
    """Compile the units of single programs with ``-Og`` while ``few_passes`` is set."""
    from geon.transformers.native.toolchain.compilers import Toolchain

    usual = Toolchain.own_flags

    def own_flags(self: Toolchain, unit: str) -> tuple[str, ...]:
        few = few_passes and self.lean
        return (*usual(self, unit), FEW_PASSES) if few else usual(self, unit)

    Toolchain.own_flags = own_flags  # type: ignore[method-assign]


few_passes = True
cases_seed = 0


def set_up(item: pytest.Item) -> None:
    """Settle the flags that a test's programs are compiled with."""
    global few_passes
    few_passes = item.get_closest_marker("optimized") is None


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


def units(count: int) -> list[int]:
    """Return the numbers of the units of random cases that a run of this size has, of ``count``.

    They are as many as ``scaled`` says; a run that has not all has others for each seed.
    """
    first = cases_seed if scaled(count) < count else 0
    return [(first + k) % max(count, scaled(count)) for k in range(scaled(count))]


# Choice -------------------------------------------------------------------------------------------


def select(config: pytest.Config, items: list[pytest.Item]) -> list[pytest.Item]:
    """Return the tests that a run of this size has, in order."""
    share, shares = part(config.option.part)
    kernel_cases, rotating = listed(KERNEL_CASES), listed(ROTATING_TESTS)
    kept = [item for item in items if zlib.crc32(function(item).encode()) % shares == share]
    if config.option.all:
        return kept
    groups: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in kept:
        if item.get_closest_marker("slow") is None:
            groups[function(item)].append(item)
    chosen = set()
    for name, group in groups.items():
        cases = list(some(group, config))
        if name in rotating and not arguments_name(config, ".py"):
            cases = turn(cases, config.option.cases_seed + zlib.crc32(name.encode()))
        chosen.update(map(id, cases))
    return [item for item in kept if id(item) in chosen or item.nodeid in kernel_cases]


def listed(file: Path) -> frozenset[str]:
    """Return the node ids in a file."""
    return frozenset(file.read_text().splitlines())


def check_lists(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Raise an error for a listed test or case that is not among all tests of its file.

    They are not looked for if arguments name single cases or a transformer.
    """
    if arguments_name(config, "::") or config.getoption("--transformer") is not None:
        return
    files = {item.nodeid.partition("::")[0] for item in items}
    known = {name for item in items for name in (item.nodeid, function(item))}
    for file in (KERNEL_CASES, ROTATING_TESTS):
        gone = [name for name in sorted(listed(file) - known) if name.partition("::")[0] in files]
        if gone:
            raise pytest.UsageError(
                f"{file.name} names {gone[0]}, which is not there; give the line the new name, or "
                "leave it out"
            )


def arguments_name(config: pytest.Config, part: str) -> bool:
    """Return whether an argument of pytest has this part: a file's ``.py``, or a test's ``::``."""
    return any(part in str(argument) for argument in config.invocation_params.args)


def turn(cases: Sequence[pytest.Item], number: int) -> list[pytest.Item]:
    """Return a share of the cases: over ``TURNS`` consecutive numbers, each at least once.

    It is empty only for a test of a single case.
    """
    if 1 < len(cases) < TURNS:
        return [cases[number % len(cases)]]
    return [case for k, case in enumerate(cases) if (k + number) % TURNS == 0]


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
    """Return the cases of one test that run: all on NumPy, and each on one compiled transformer.

    Of several parameters besides each value is there, with ``cases(strength=2)`` each pair.
    """
    marker = group[0].get_closest_marker("cases")
    strength = 1 if marker is None else marker.kwargs["strength"]
    seed = f"{config.option.cases_seed} {function(group[0])}"
    on_numpy = [item for item in group if transformer_of(item) == "numpy"]
    others = [item for item in group if transformer_of(item) != "numpy"]
    for items in filter(None, (on_numpy, others)):
        rows = levels(items)
        yield from [items[k] for k in covering(rows, strength, seed)] if rows[0] else items


def transformer_of(item: pytest.Item) -> object:
    """Return the name of the transformer that a case is for, None for those without one."""
    return getattr(getattr(item, "callspec", None), "params", {}).get("transformer_name")


def levels(group: Sequence[pytest.Item]) -> list[tuple[int, ...]]:
    """Return for each case the number of its value in each independent parameter.

    Parameters whose values always change together count as one.
    """
    rows = [getattr(getattr(item, "callspec", None), "params", {}) for item in group]
    columns: dict[tuple[int, ...], None] = {}
    for name in rows[0]:
        numbers: dict[int, int] = {}
        columns[tuple(numbers.setdefault(id(row[name]), len(numbers)) for row in rows)] = None
    return list(zip(*columns, strict=True)) or [()] * len(group)


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
