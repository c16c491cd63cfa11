"""What is one step under a lock: the window between its halves is made wide enough to fall into."""

import threading
import time

import geon
from geon.op_graph import op_graph

WIDE = 0.02


def at_once(job, count=4):
    """What ``job`` gives to threads that all begin together."""
    barrier, found = threading.Barrier(count), []

    def run():
        barrier.wait()
        found.append(job())

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def test_looking_up_and_inserting_an_op_is_one_step(monkeypatch):
    table = op_graph._table

    class Slow:
        """The table, which takes its time to say what it has."""

        def get(self, key):
            found = table.get(key)
            time.sleep(WIDE)
            return found

        def __setitem__(self, key, entry):
            table[key] = entry

    x = geon.placeholder(geon.Axis("N"))
    monkeypatch.setattr(op_graph, "_table", Slow())
    made = at_once(lambda: geon.cumsum(x, geon.Axis("N")))
    assert all(op is made[0] for op in made)
    made = at_once(lambda: geon.sin(x))
    assert all(op is made[0] for op in made)


def test_taking_the_number_of_a_draw_is_one_step():
    class Slow(geon.Random):
        """A stream that takes its time to say how much was drawn."""

        __slots__ = ("value",)

        @property
        def _drawn(self):
            found = self.value
            time.sleep(WIDE)
            return found

        @_drawn.setter
        def _drawn(self, value):
            self.value = value

    stream = Slow(0)
    draws = at_once(lambda: stream.bits(geon.Axis("K", 3)))
    assert sorted(op.attrs.draw for op in draws) == [0, 1, 2, 3]
    assert len(set(draws)) == 4


def test_a_stream_has_one_counter():
    stream = geon.Random(0)
    counters = at_once(lambda: stream.counter)
    assert all(counter is counters[0] for counter in counters)
