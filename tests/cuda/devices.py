"""Devices for tests: the host's, with work that is done late, and with failures on demand."""

import ctypes
import dataclasses
import functools
import itertools

import numpy as np

from geon.errors import DeviceError
from geon.transformers.pycuda.runtime import host
from geon.transformers.pycuda.transformer import CudaTransformer

from .queues import Scheduler

numbers = itertools.count()


def transformer_on(device, **options):
    """A transformer of a device of its own: programs of others are not taken for it."""
    made = CudaTransformer(device, **options)
    made.target = dataclasses.replace(made.target, name=f"{type(device).__name__} {next(numbers)}")
    return made


def in_stages(count):
    """The host's device with room for so many stages in the memory that a block shares."""
    made = host.HostDevice()
    compiling, linking = made.flags
    made.flags = (*compiling, f"-DGEON_HOST_STAGES={count}"), linking
    return made


class CountingDevice(host.HostDevice):
    """The host's device; it counts the bytes that are copied from and to the host."""

    def __init__(self):
        super().__init__()
        self.moved = 0

    def copy_in(self, address, array):
        self.moved += array.nbytes
        super().copy_in(address, array)

    def copy_out(self, array, address):
        self.moved += array.nbytes
        super().copy_out(array, address)


class Moved:
    """A copy from or to pinned memory, which must be there until it is done."""

    def __init__(self, target, source, size, pinned):
        self.target, self.source, self.size, self.pinned = target, source, size, pinned

    def __call__(self):
        ctypes.memmove(self.target, self.source, self.size)


class LateDevice(host.HostDevice):
    """Does what was begun when somebody waits, as a GPU may: until then nothing has happened.

    ``begun`` counts calls of what was captured, ``launched`` those of single kernels.
    """

    def __init__(self, seed=0):
        super().__init__()
        self.scheduler = Scheduler(seed)
        self.lock = self.scheduler.lock
        self.queue = self.scheduler.queue()  # of what is begun now
        self.captured, self.replayed, self.launched = 0, 0, 0

    @property
    def waiting(self):
        return self.queue.waiting

    def do(self, begun):
        with self.lock:
            if self.recorded is not None:
                self.recorded.append(begun)
            else:
                self.queue.add(begun)

    def not_captured(self, what):
        if self.queue.capture is not None:
            raise DeviceError(f"{what} is nothing that can be captured")
        super().not_captured(what)

    def run_until(self, number):
        self.scheduler.run_until(lambda: self.queue.done >= number)

    def copy_in(self, address, array):
        if not self.is_pinned(array):  # then the bytes are read at once
            self.not_captured("a copy from memory that is not pinned")
            held = np.array(array)
            self.do(lambda: ctypes.memmove(address, held.ctypes.data, held.nbytes))
        else:
            self.do(Moved(address, array.ctypes.data, array.nbytes, array.ctypes.data))

    def copy_out(self, array, address):
        if not self.is_pinned(array):
            self.not_captured("a copy to memory that is not pinned")
            self.do(lambda: ctypes.memmove(array.ctypes.data, address, array.nbytes))
        else:
            self.do(Moved(array.ctypes.data, address, array.nbytes, array.ctypes.data))

    def launch(self, kernel, blocks, threads, words):
        self.launched += 1
        super().launch(kernel, blocks, threads, words)

    def free(self, address, readers=()):
        done = functools.partial(host.HostDevice.free, self, address)
        if self.waiting:
            self.queue.add(done)  # after what is begun
        else:
            done()

    def unpin(self, address):
        end = address + self.pinned[address].nbytes
        for each in [item for queue in self.scheduler.queues for item in queue.waiting]:
            used = getattr(each, "pinned", 0)
            assert not address <= used < end, "it is given back while a copy is on its way"
        super().unpin(address)

    def synchronise(self):
        self.not_captured("waiting")
        self.run_until(self.queue.begun)

    def mark(self, again=None):
        self.not_captured("a mark")
        return self.queue.begun

    def passed(self, mark):
        return self.queue.done >= mark

    def wait(self, mark):
        self.run_until(mark)

    def wait_for(self, stream):
        self.synchronise()

    def capture(self, run):
        self.captured += 1
        again = super().capture(run)

        def replay():
            self.replayed += 1
            again()

        return replay


class FailingDevice(LateDevice):
    """Fails where it is told to: ``fails`` has the errors of what is begun next, by its name."""

    def __init__(self):
        super().__init__()
        self.fails, self.is_lost = {}, None

    def refuse(self, what):
        if self.is_lost is not None:
            raise lost(f"it failed before: {self.is_lost}")
        error = self.fails.pop(what, None)
        if error is not None and error.lost:
            self.is_lost = str(error)
        if error is not None:
            raise error

    def allocate(self, size):
        self.refuse("allocate")
        return super().allocate(size)

    def free(self, address, readers=()):
        if self.is_lost is None:
            super().free(address)

    def unpin(self, address):
        if self.is_lost is None:
            super().unpin(address)

    def launch(self, kernel, blocks, threads, words):
        self.refuse("launch")
        super().launch(kernel, blocks, threads, words)

    def load(self, source, kernels):
        self.refuse("load")
        return super().load(source, kernels)

    def synchronise(self):
        self.refuse("synchronise")
        super().synchronise()

    def wait(self, mark):
        self.refuse("wait")
        super().wait(mark)

    def clock(self):
        self.refuse("clock")
        return super().clock()


def lost(message):
    """An error after which a device does nothing."""
    error = DeviceError(message)
    error.lost = True
    return error
