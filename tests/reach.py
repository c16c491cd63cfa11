"""The kernels that a run of the tests schedules, by structure, and how two runs compare.

    python -m pytest -n 2 --all -p tests.reach --reach=all    # the keys of each process in all/
    python -m pytest -n 2 -p tests.reach --reach=usual
    python -m tests.reach all usual                           # the share of all that usual reaches
    python -m tests.reach all usual --tests                   # and the tests that have the others
    python -m tests.reach usual --rotate                      # write the lists of tests/tiers.py

Of the others, `make test` runs those cases that are listed in ``kernel_cases.txt``: first the ones
that reach most in a second. Tests that take time and schedule only what others do are listed in
``rotating_tests.txt``, and the cases of random programs, which have ever new kernels.

A key is the digest of a kernel's structure: loops, reductions, stores and scalar code, with dtypes
and without names. There are two: one with all lengths and other numbers, of which random programs
have ever new ones, and one in which all numbers from 2 on are the same. A kernel that is one call
of a library has the name and the dtypes of its op. Branches of the code are compared with
coverage.py.
"""

from __future__ import annotations

import argparse
import hashlib
import heapq
import os
import re
import resource
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from geon.transformers import pipeline
from geon.transformers.kernels.ir.nest import Nest
from geon.transformers.kernels.products.contraction import Contraction
from geon.transformers.kernels.products.row_blocking import Blocked
from geon.transformers.kernels.scans.sequential_scan import OrderedLoop
from geon.transformers.kernels.structural_key import structure
from geon.transformers.lowering.fusion.kernel import Kernel
from tests.tiers import KERNEL_CASES, ROTATING_TESTS

ADDRESS = re.compile(r" at 0x[0-9a-f]+")
NUMBER = re.compile(r"\b(?!0\b|1\b)\d+\b")  # from 2 on; not those in names such as float32
KINDS = ("structures", "structures with lengths")
# What runs every time: it is about the files of the project.
FIXED = re.compile(
    r"tests/(test_(docs|imports|layers|readme|golden|types|public|lines)|tiny|large/test_constants)"
)
# Seconds of a test, of its cases that could rotate, and of a test of one case, from which it does.
LONG, LONG_REST, LONG_SINGLE = 0.05, 0.1, 0.5
LONG_CASE = 0.03  # mean seconds of these cases, below which a run has them all
# Least number of kernels of its own that a case schedules in a second of processor time, to run
# always. The others rotate: together they have 4 % of the kernels.
MIN_WORTH = 4.0
# In the names of tests whose cases are alike: they rotate whatever kernels they have.
ALIKE = re.compile(r"random|sums_of_equal_values_of_every_row")
_found: dict[str, set[str]] = defaultdict(set)  # by key: the tests that schedule such a kernel
_seconds: dict[str, float] = {}  # of processor time, by test


def keys(kernel: Kernel) -> list[str]:
    """Return the digests of a kernel's structure, without and with lengths."""
    work = kernel.work
    if isinstance(work, Nest | Contraction | Blocked | OrderedLoop):
        text = ADDRESS.sub("", repr(structure(work)))
    else:
        dtypes = [str(getattr(op, "dtype", "void")) for op in (kernel.op, *kernel.op.args)]
        text = f"{type(work).__name__} {kernel.op.primitive.name} {dtypes}"
    texts = (NUMBER.sub("n", text), text)
    return [f"{k} {hashlib.sha256(t.encode()).hexdigest()[:20]}" for k, t in enumerate(texts)]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--reach``."""
    parser.addoption("--reach", metavar="FOLDER", help="write the keys of scheduled kernels here")


def pytest_configure(config: pytest.Config) -> None:
    """Note each kernel that is scheduled from here on."""
    schedule = pipeline.make_schedule

    def scheduled(*args, **keywords):  # type: ignore[no-untyped-def]  # those of the function
        made = schedule(*args, **keywords)
        test = os.environ.get("PYTEST_CURRENT_TEST", "collection").partition(" (")[0]
        for kernel in made.kernels:
            for key in keys(kernel):
                _found[key].add(test)
        return made

    if config.option.reach is not None:
        pipeline.make_schedule = scheduled


def processor_seconds() -> float:
    """Return the processor time of this process and of those that it waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Note the processor time of each test."""
    start = processor_seconds()
    result = yield
    _seconds[item.nodeid] = processor_seconds() - start
    return result


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the keys of this process."""
    if session.config.option.reach is not None:
        folder = Path(session.config.option.reach)
        folder.mkdir(parents=True, exist_ok=True)
        lines = [f"{key}\t{test}\n" for key, tests in _found.items() for test in sorted(tests)]
        (folder / f"{os.getpid()}.keys").write_text("".join(sorted(lines)))
        times = [f"{seconds:.3f}\t{test}\n" for test, seconds in sorted(_seconds.items())]
        (folder / f"{os.getpid()}.seconds").write_text("".join(times))


def tests_by_key(folder: str) -> dict[str, set[str]]:
    """Return the keys that a run wrote, and for each of them the tests that have it."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in Path(folder).glob("*.keys"):
        for line in path.read_text().splitlines():
            key, _, test = line.partition("\t")
            found[key].add(test)
    return found


def few_tests(wanted: dict[str, set[str]]) -> list[tuple[str, int]]:
    """Return tests that together have all keys, and how many each adds: a greedy cover."""
    keys_of: dict[str, set[str]] = defaultdict(set)
    for key, tests in wanted.items():
        for test in tests:
            keys_of[test].add(key)
    missing, chosen = set(wanted), []
    while missing:
        best = max(sorted(keys_of), key=lambda test: len(keys_of[test] & missing))
        chosen.append((best, len(keys_of[best] & missing)))
        missing -= keys_of[best]
    return chosen


def cover(keys_of: dict[str, set[str]], seconds: dict[str, float]) -> dict[str, float]:
    """Return cases that together have all keys, and how many new ones each has in a second.

    The ones with most come first.
    """
    missing = set().union(*keys_of.values())
    worth = lambda test: len(keys_of[test] & missing) / (seconds[test] + 0.02)  # noqa: E731
    queue = [(-worth(test), test) for test in keys_of]
    heapq.heapify(queue)
    chosen = {}
    while missing:
        _, test = heapq.heappop(queue)
        now = -worth(test)
        if queue and now > queue[0][0]:
            heapq.heappush(queue, (now, test))
        elif now < 0:
            chosen[test] = -now
            missing -= keys_of[test]
    return chosen


def rotate(folder: str) -> None:
    """Write the lists of cases that always run, and of tests of which each run has a part."""
    seconds: dict[str, float] = {}
    for path in Path(folder).glob("*.seconds"):
        for line in path.read_text().splitlines():
            took, _, test = line.partition("\t")
            seconds[test] = float(took)
    keys_of: dict[str, set[str]] = defaultdict(set)
    for key, tests in tests_by_key(folder).items():
        for test in tests & set(seconds) if key[0] == "0" else ():
            if not ALIKE.search(test):
                keys_of[test].add(key)
    worth = cover(keys_of, seconds)
    cases: dict[str, list[str]] = defaultdict(list)
    for test in seconds:
        cases[test.partition("[")[0]].append(test)
    # This run has a part of the cases of tests that rotate already.
    always = set(KERNEL_CASES.read_text().splitlines()) - set(seconds)
    rotating = set(ROTATING_TESTS.read_text().splitlines())
    for name, group in cases.items():
        own = {test for test in group if worth.get(test, 0.0) > MIN_WORTH}
        rest = [seconds[test] for test in group if test not in own]
        bound = LONG_REST if own else LONG if len(group) > 1 else LONG_SINGLE
        is_long = sum(rest) >= max(bound, LONG_CASE * len(rest))
        is_unit = len(group) == 1 and ALIKE.search(name)  # of which each run has another
        if name in rotating or is_long and not is_unit and not FIXED.match(name):
            rotating.add(name)
            always |= own
    KERNEL_CASES.write_text("".join(f"{name}\n" for name in sorted(always)))
    ROTATING_TESTS.write_text("".join(f"{name}\n" for name in sorted(rotating)))


def main() -> None:
    """Print how many keys of the first run the second one has, of each kind."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("first", help="the folder of the run that has more")
    parser.add_argument("second", nargs="?", help="the folder of the run that is compared with it")
    parser.add_argument("--tests", action="store_true", help="print tests that have the others")
    parser.add_argument("--rotate", action="store_true", help="write the lists of tests/tiers.py")
    arguments = parser.parse_args()
    if arguments.rotate:
        rotate(arguments.first)
        return
    if arguments.second is None:
        parser.error("give the folder of a second run, or --rotate")
    first, second = Path(arguments.first).name, Path(arguments.second).name
    every, found = tests_by_key(arguments.first), tests_by_key(arguments.second)
    for k, kind in enumerate(KINDS):
        wanted = {key: tests for key, tests in every.items() if key[0] == str(k)}
        fixed = {
            key: tests for key, tests in wanted.items() if not all(ALIKE.search(t) for t in tests)
        }
        for what, keys in ((kind, wanted), (f"{kind} of not only random programs", fixed)):
            missing = {key: tests for key, tests in keys.items() if key not in found}
            shared = len(keys) - len(missing)
            share = 100 * shared / max(len(keys), 1)
            print(f"{what}: {shared} of {len(keys)} of {first} are in {second}: {share:.1f} %")
        if arguments.tests and k == 0:
            print("".join(f"{count:6}  {test}\n" for test, count in few_tests(missing)), end="")


if __name__ == "__main__":
    main()
