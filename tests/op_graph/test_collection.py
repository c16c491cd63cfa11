"""Garbage collection is paused while any thread asks for it, and as it was afterwards."""

import gc
import threading

import pytest

from geon.op_graph.core.collection import without_collecting


def test_blocks_of_several_threads_overlap():
    inside, leave = threading.Event(), threading.Event()

    def other():
        with without_collecting():
            inside.set()
            leave.wait()

    thread = threading.Thread(target=other)
    with without_collecting():
        thread.start()
        inside.wait()
    assert not gc.isenabled()  # the other thread is in its block
    leave.set()
    thread.join()
    assert gc.isenabled()


def test_an_error_ends_the_pause_and_blocks_nest():
    with pytest.raises(ZeroDivisionError), without_collecting():
        with without_collecting():
            pass
        assert not gc.isenabled()
        1 / 0  # noqa: B018  # for its error
    assert gc.isenabled()


def test_a_process_without_collection_stays_without():
    gc.disable()
    try:
        with without_collecting():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
