"""The tests themselves: none can hang for ever, and Ctrl-C is tested however they were started."""

import subprocess
import sys

import pytest

INTERRUPTED = [
    "tests/test_limits.py::test_ctrl_c_during_a_call_is_deferred_to_its_end",
    "tests/test_limits.py::test_ctrl_c_reaches_a_handler_of_the_users_once_the_call_is_over",
    "tests/transformers/test_threads.py::test_an_interrupt_waits_for_the_end_of_a_block",
    "tests/transformers/test_threads.py::test_a_handler_of_the_users_is_called_after_the_block",
    "tests/transformers/test_threads.py::test_an_interrupted_call",
    "tests/native/test_calls.py::test_interrupts_come_through",
]
HANGING = {
    "python": "import time\ndef test_it():\n    time.sleep(100)\n",
    "c": """
import ctypes
def test_it():
    c, mutex = ctypes.PyDLL(None), ctypes.create_string_buffer(256)
    c.pthread_mutex_lock(mutex), c.pthread_mutex_lock(mutex)
""",
}


def test_every_test_has_a_limit(pytestconfig):
    assert pytestconfig.pluginmanager.hasplugin("timeout")
    limit = float(pytestconfig.getini("timeout"))
    assert 0 < limit <= 600
    assert limit < float(pytestconfig.getini("faulthandler_timeout")) <= 700
    assert pytestconfig.getini("faulthandler_exit_on_timeout")


@pytest.mark.timeout(120)
@pytest.mark.parametrize("where", HANGING)
def test_a_test_that_hangs_ends(where, tmp_path, pytestconfig):
    """Also in C code that holds the interpreter's lock, where no handler of Python's runs."""
    (tmp_path / "test_hanging.py").write_text(HANGING[where])
    limits = ["-o", "timeout=1", "-o", "faulthandler_timeout=4"]
    settings = ["-c", str(pytestconfig.inipath), "--rootdir", str(tmp_path)]
    run = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *settings, *limits]
    done = subprocess.run([*run, str(tmp_path)], capture_output=True, text=True, timeout=100)
    assert done.returncode, done.stdout
    assert "test_it" in done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
def test_interrupts_are_tested_where_they_were_ignored():
    """As under ``nohup make test &``, whose shell makes every process below it ignore Ctrl-C."""
    ignoring = "import signal, sys, pytest; signal.signal(signal.SIGINT, signal.SIG_IGN); "
    run = "sys.exit(pytest.main(sys.argv[1:]))"
    command = [sys.executable, "-c", ignoring + run, "-q", "-n0", *INTERRUPTED]
    done = subprocess.run(command, capture_output=True, text=True, timeout=590)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "passed" in done.stdout and "failed" not in done.stdout
