"""Loading of NVIDIA's libraries through Python bindings, their plans, and memory they work in."""

from __future__ import annotations

import contextlib
import importlib.util
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from typing import Any, Generic, TypeVar

from ....errors import DeviceError

MAX_CACHED_PLANS = 128  # max. cached plans of a library, by lengths and strides
Call = TypeVar("Call", bound=Hashable)
Plan = TypeVar("Plan")


def package(library: str) -> str:
    """Return the command that installs a library with its binding."""
    return f"pip install 'geon[{library.lower()}]'"


def is_installed(module: str) -> bool:
    """Return True if the module of a binding is installed."""
    return importlib.util.find_spec(module) is not None


@contextlib.contextmanager
def starting(
    option: str, library: str, device: str, module: str = "nvmath", binding: str = "nvmath-python"
) -> Iterator[None]:
    """Return a ``with`` block that imports bindings and starts a library.

    ``option`` is the argument of a transformer that selects the library. Raises ``DeviceError`` if
    the package ``binding``, which has the ``module``, is not installed, or for any error in the
    block.
    """
    selected = f'{option}="{library.lower()}" on {device}'
    cure = f'{package(library)}, or {option}="generated"'
    if not is_installed(module):
        raise DeviceError(f"{selected} needs {binding}, which is not installed: {cure}")
    try:
        yield
    except Exception as error:  # without the library, the binding raises different errors
        raise DeviceError(f"{selected}: {library} does not start ({error}): {cure}") from None


class PlanCache(Generic[Call, Plan]):
    """A library's plans by call; the oldest ones are dropped beyond ``MAX_CACHED_PLANS``.

    ``make`` returns the plan of a call, None if the library has none, and ``drop`` frees one.
    """

    def __init__(
        self, make: Callable[[Call], Plan], drop: Callable[[Any], object] | None = None
    ) -> None:
        self.make, self.drop = make, drop
        self.plans: OrderedDict[Call, Plan] = OrderedDict()

    def plan(self, call: Call) -> Plan:
        """Return the plan of a call, from the cache or newly made."""
        found = self.plans.pop(call) if call in self.plans else self.make(call)
        self.plans[call] = found
        while len(self.plans) > MAX_CACHED_PLANS:
            _, oldest = self.plans.popitem(last=False)
            if self.drop is not None and oldest is not None:
                self.drop(oldest)
        return found


class SharedWorkspace:
    """Device memory that all calls of a library work in, one after another; it only grows.

    Calls run in the order of submission, and memory that is freed is used by later work only, so a
    larger block may replace one that submitted calls still use.
    """

    def __init__(self, allocate: Callable[[int], int], free: Callable[[int], None]) -> None:
        self.allocate, self.free = allocate, free
        self.address = self.size = 0

    def at_least(self, size: int) -> int:
        """Return the address of at least ``size`` bytes; raise ``DeviceError`` if there are none.

        The address changes when the block grows.
        """
        if size > self.size:
            made = self.allocate(size)
            if self.address:
                self.free(self.address)
            self.address, self.size = made, size
        return self.address
