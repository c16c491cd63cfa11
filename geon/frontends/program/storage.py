"""Places, and where the persistable variables of a scope are kept: in variables of transformers."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np

import geon

from ...op_graph.names import DEFAULT_NAME
from ...op_graph.op_graph import Leaf
from ..positional.values import axes_for
from .scope import Scope, ScopeTensor
from .values import Spec


@dataclass(frozen=True)
class Place:
    """A device and the transformer that compiles for it."""

    def options(self) -> dict[str, Any]:
        """Return the arguments of ``geon.make_transformer``."""
        raise NotImplementedError


@dataclass(frozen=True)
class CPUPlace(Place):
    """The processor. ``transformer`` is "native" or "numpy"; None takes what the machine has."""

    transformer: str | None = None
    threads: int | None = None

    def options(self) -> dict[str, Any]:
        """Return the arguments of ``geon.make_transformer``."""
        threads = {} if self.threads is None else {"threads": self.threads}
        return {"name": self.transformer, **threads}


@dataclass(frozen=True)
class CUDAPlace(Place):
    """The GPU of this number."""

    device: int = 0

    def options(self) -> dict[str, Any]:
        """Return the arguments of ``geon.make_transformer``."""
        return {"name": "pycuda", "device": self.device}


class Home:
    """The transformers of a scope, one for each place, and what executors compiled with them."""

    def __init__(self) -> None:
        self.transformers: dict[Place, geon.Transformer] = {}
        self.compiled: weakref.WeakKeyDictionary[Any, dict[Any, Any]] = weakref.WeakKeyDictionary()
        self.held = 0  # storages
        self.released = 0  # storages that were given up

    def transformer(self, place: Place) -> geon.Transformer:
        """Return the transformer of a place, made when first asked for."""
        if place not in self.transformers:
            self.transformers[place] = geon.make_transformer(**place.options())
        return self.transformers[place]

    def close(self) -> None:
        """Free all memory of the transformers."""
        self.compiled.clear()
        for transformer in self.transformers.values():
            transformer.close()
        self.transformers.clear()


def home_of(scope: Scope) -> Home:
    """Return the home of the variables of a scope."""
    if scope.home is None:
        scope.home = Home()
    found: Home = scope.home
    return found


class Storage:
    """The value of a tensor of a scope in a variable of a transformer.

    The last storage of a home that is released closes its transformers.
    """

    def __init__(self, home: Home, place: Place, name: str, spec: Spec) -> None:
        self.home, self.place, self.spec = home, place, spec
        self.transformer = home.transformer(place)
        self.leaf: Leaf = geon.Variable(
            axes_for(spec.shape), spec.dtype, initial_value=0, name=name, tags=DEFAULT_NAME
        )
        home.held += 1

    def get(self) -> np.ndarray[Any, Any]:
        """Return a copy of the value."""
        return self.transformer.get(self.leaf)

    def set(self, array: Any) -> None:
        """Write the value; raise ``FeedError`` if the array does not fit."""
        self.transformer.set(self.leaf, array)

    def release(self) -> None:
        """Give up the value."""
        self.home.held -= 1
        self.home.released += 1
        if not self.home.held:
            self.home.close()


def stored(tensor: ScopeTensor, home: Home, place: Place, name: str, spec: Spec) -> Storage:
    """Return the storage of a tensor at a place; its value is moved there if it has one."""
    found = tensor.storage
    if isinstance(found, Storage) and (found.home, found.place) == (home, place):
        if found.spec == spec:
            return found
    value = tensor.array if tensor.is_allocated else None
    made = Storage(home, place, name, spec)
    if value is not None:
        made.set(value)
    tensor.release()
    tensor.bind(made)
    return made
