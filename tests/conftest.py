"""Settings of the whole session: plans are verified, generated tests are repeatable.

What computes numbers uses the fixture ``transformer`` (or ``make``), and so runs on each of geon's
own transformers.
"""

import gc
import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

from geon.testing.fixtures import (  # noqa: F401  # pytest finds them by name
    BESIDE,
    make,
    pytest_generate_tests,
    transformer,
    transformer_name,
)
from geon.transformers.loading.registry import transformer_class
from tests import identity_watch, tiers

# Before geon compiles anything; `geon.transformers.loading.environment` reads it.
os.environ["GEON_DEBUG"] = ",".join(
    {"verify", *filter(None, os.environ.get("GEON_DEBUG", "").split(","))}
)

COMMON = {
    "deadline": None,
    "phases": [Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
    "suppress_health_check": [
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.large_base_example,
    ],
    "print_blob": True,
    "report_multiple_bugs": False,  # a program's file name is new: each example another
}
settings.register_profile(
    "short", derandomize=True, max_examples=tiers.SHORT_EXAMPLES, database=None, **COMMON
)
settings.register_profile(
    "all", derandomize=True, max_examples=tiers.ALL_EXAMPLES, database=None, **COMMON
)
settings.register_profile("long", max_examples=tiers.LONG_EXAMPLES, **COMMON)


def pytest_addoption(parser):
    """Add the options that choose how much of the tests runs."""
    tiers.add_options(parser)


def pytest_configure(config):
    """Keep compiled code in pytest's own cache, and watch that geon compares no ops by ``==``."""
    identity_watch.start()
    tiers.configure(config)
    if config.getoption("--transformer") is None and transformer_class(HOST).unavailable() is None:
        config.stash[BESIDE] = (HOST,)
    if not config.getoption("--hypothesis-profile", None):
        settings.load_profile("all" if config.option.all else "short")
    if "GEON_CACHE" in os.environ:
        return
    cache = getattr(config, "cache", None)
    if cache is not None:
        folder = cache.mkdir("geon")
    else:
        folder = Path(tempfile.mkdtemp(prefix="geon-tests-"))
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    os.environ["GEON_CACHE"] = str(folder / "native")


# What takes minutes where a CPU plays the threads of a GPU; ``tests/cuda`` does the same in small.
HOST = "cuda-on-host"
LONG_ON_HOST = (
    "test_long_sums.py",
    "test_ctrl_c_during_a_call",
    "test_time_grows_as_the_graph",
    "test_ctrl_c_while_a_batch_is_waited_for",  # it compiles until long after the signal
)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Collect the tests, and keep what lives until the end out of garbage collections.

    Modules and tests are a million objects: a full collection visits them in 0.6 s, and these took
    a fifth of the processor time of all tests. Graphs are many objects with few cycles, so young
    ones are collected more rarely too.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.set_threshold(10_000, 10, 10)
        gc.callbacks.append(note_full_collection)
        gc.enable()


full_collections = 0  # since the last freeze


def note_full_collection(phase, info):
    """Count the full garbage collections: most are asked for by tests."""
    global full_collections
    full_collections += phase == "stop" and info["generation"] == 2


def freeze_survivors():
    """Keep what survived the full collections of the test before out of the next ones."""
    global full_collections
    if full_collections:
        gc.freeze()
        full_collections = 0


def pytest_collection_modifyitems(config, items):
    """Choose the tests of a run of this size, and with ``--transformer`` those that run on it."""
    named = [item.nodeid for item in items if " at 0x" in item.nodeid]
    if named:
        raise pytest.UsageError(f"{named[0]} has an address in its name: give it an id")
    tiers.check_lists(config, items)
    kept = items
    if config.getoption("--transformer") is not None:
        kept = [item for item in kept if "transformer_name" in getattr(item, "fixturenames", ())]
        kept = [item for item in kept if "transformer_name" not in names_of_parameters(item)]
    kept = [item for item in kept if not (on_host(item) and is_long_on_host(item))]
    kept = tiers.select(config, kept)
    chosen = set(map(id, kept))
    config.hook.pytest_deselected(items=[item for item in items if id(item) not in chosen])
    items[:] = kept


def on_host(item):
    """Return whether a test runs where a CPU plays the threads of a GPU."""
    name = tiers.transformer_of(item) or item.config.getoption("--transformer")
    return name == HOST


def is_long_on_host(item):
    """Return whether a test takes minutes there."""
    return any(part in item.nodeid for part in LONG_ON_HOST)


def pytest_runtest_setup(item):
    """Settle how the programs of a test are compiled, and what garbage collections visit."""
    tiers.set_up(item)
    freeze_survivors()


def pytest_report_header(config):
    """Say which tests run."""
    return tiers.header(config)


def pytest_terminal_summary(terminalreporter, config):
    """Print where the time went."""
    tiers.summarize(terminalreporter, config)


def names_of_parameters(item):
    """The names that a test has parameters for."""
    return getattr(getattr(item, "callspec", None), "params", {})
