"""Variables, which hold a value of any type, and scopes, which give them names."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...errors import ArgumentError, ClosedError, DTypeError, FeedError
from ...op_graph.core.source_info import user_call
from .program import Operator


class ScopeTensor:
    """An array of a scope whose memory is allocated when it is first read.

    ``bind`` gives it the storage of an executor, which holds the value of a parameter on its
    device; ``array`` then reads from there.
    """

    def __init__(self, shape: Sequence[int] = (), dtype: Any = "float32") -> None:
        self.shape, self.dtype = tuple(shape), np.dtype(dtype)
        self._array: np.ndarray[Any, Any] | None = None
        self._storage: Any = None

    @property
    def is_allocated(self) -> bool:
        """True if it has memory: its own, or that of an executor."""
        return self._array is not None or self._storage is not None

    @property
    def storage(self) -> Any:
        """The storage of an executor that holds the value; None if the tensor has its own."""
        return self._storage

    @property
    def array(self) -> np.ndarray[Any, Any]:
        """The elements; zeros are allocated if nothing was written."""
        if self._storage is not None:
            found: np.ndarray[Any, Any] = self._storage.get()
            return found
        if self._array is None:
            self._array = np.zeros(self.shape, self.dtype)
        return self._array

    def set(self, value: Any) -> None:
        """Write a copy of an array; it changes the shape, and the dtype if it is not allocated."""
        array = np.asarray(value)
        if self._storage is not None:
            self._storage.set(array)
            return
        if self.is_allocated and not np.can_cast(array.dtype, self.dtype, "same_kind"):
            raise FeedError(
                f"{user_call('set')}: an array of {array.dtype} for a tensor of {self.dtype}; cast "
                "it first"
            )
        self._array = np.array(array, self.dtype if self.is_allocated else array.dtype)
        self.shape, self.dtype = self._array.shape, self._array.dtype

    def resize(self, shape: Sequence[int]) -> None:
        """Set the shape; the elements are zeros again, allocated when they are read."""
        self.shape, self._array = tuple(shape), None

    def bind(self, storage: Any) -> None:
        """Move the value to ``storage``, which has ``get``, ``set`` and ``release``."""
        self._array, self._storage = None, storage

    def release(self) -> None:
        """Free the memory."""
        if self._storage is not None:
            self._storage.release()
        self._array = self._storage = None

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.asarray(self.array, dtype)

    def __repr__(self) -> str:
        return f"<tensor {self.shape} {self.dtype}>"


class Variable:
    """A value of one type: int, bool, float, half, string, tensor, operator or scope.

    It has no name. Its first ``set`` or ``get_mutable`` fixes the type. ``estimated`` marks a
    parameter whose value is known, so that no initialiser overwrites it.
    """

    def __init__(self) -> None:
        self._type: str | None = None
        self._value: Any = None
        self._lock = threading.RLock()
        self.estimated = False

    @property
    def type(self) -> str | None:
        """The name of the type; None if nothing was written."""
        return self._type

    def is_type(self, type: Any) -> bool:
        """Return True if it holds a value of this type, given as a Python type or by its name."""
        return self._type == type_name(type)

    def get(self, type: Any = None) -> Any:
        """Return the value; raise ``DTypeError`` if it is of another type than the one given."""
        what = user_call("get")
        if self._type is None:
            raise FeedError(f"{what}: the variable holds nothing; set it first, or get_mutable")
        wanted = self._type if type is None else type_name(type)
        if wanted != self._type:
            raise DTypeError(f"{what}: the variable holds a {self._type}, not a {wanted}")
        return TYPES[wanted][1](self._value)

    def get_mutable(self, type: Any) -> Any:
        """Return what can be changed in place, made now if the variable holds nothing.

        A number, bool or string is an array without dimensions: ``variable.get_mutable(int)[...] =
        3``. A tensor is a ``ScopeTensor``, whose memory is allocated when it is first read.
        """
        wanted = type_name(type)
        with self._lock:
            if self._type is None:
                self._type, self._value = wanted, TYPES[wanted][0]()
        if wanted != self._type:
            raise DTypeError(
                f"{user_call('get_mutable')}: the variable holds a {self._type}, not a {wanted}"
            )
        return self._value

    def set(self, value: Any) -> None:
        """Write a value, whose type must be that of the variable if it has one."""
        wanted = type_name(value.__class__)
        held = self._type or wanted
        if held == "float" and wanted == "int":
            wanted = "float"
        with self._lock:
            if held == "tensor" and wanted not in ("operator", "scope", "string"):
                self.get_mutable("tensor").set(value)
            elif wanted != held:
                raise DTypeError(
                    f"{user_call('set')}: the variable holds a {held}; {value!r} is a {wanted}"
                )
            elif wanted in ("operator", "scope"):
                self._type, self._value = wanted, value
            else:
                self.get_mutable(wanted)[...] = value

    def clear(self) -> None:
        """Free the value; the variable holds nothing then."""
        with self._lock:
            if isinstance(self._value, (ScopeTensor, Scope)):
                self._value.release()
            self._type = self._value = None

    def __repr__(self) -> str:
        return f"<variable of {self._type or 'nothing'}>"


class Scope:
    """Names of variables. A name that it lacks is looked up in the scope around it.

    Methods may be called from several threads. A scope owns the scopes made by ``create_scope``.
    """

    def __init__(self, parent: Scope | None = None) -> None:
        self.parent = parent
        self.is_deleted = False
        self._variables: dict[str, Variable] = {}
        self._inner: list[Scope] = []
        self._lock = threading.RLock()

    def find_var(self, name: str) -> Variable | None:
        """Return the variable of a name here or in the nearest scope around, or None."""
        scope: Scope | None = self
        while scope is not None:
            with scope._lock:
                scope._check(f"find_var({name!r})")
                if name in scope._variables:
                    return scope._variables[name]
            scope = scope.parent
        return None

    def var(self, name: str) -> Variable:
        """Return the variable of a name of this scope, made if it is new."""
        with self._lock:
            self._check(f"var({name!r})")
            return self._variables.setdefault(name, Variable())

    create_var = var

    def bind(self, name: str, variable: Variable) -> None:
        """Give a variable, perhaps of another scope, a name here; the old owner of the name goes.

        A variable is freed when the last scope that names it drops it.
        """
        with self._lock:
            self._check(f"bind({name!r})")
            self._variables[name] = variable

    def create_scope(self) -> Scope:
        """Return a new scope inside of this one."""
        with self._lock:
            self._check("create_scope")
            made = Scope(self)
            self._inner.append(made)
            return made

    def delete_scope(self, inner: Scope) -> None:
        """Delete a scope made by ``create_scope``: free its variables, and the scopes inside."""
        with self._lock:
            if inner not in self._inner:
                raise ArgumentError(
                    f"{user_call('delete_scope')}: {inner!r} was not made by create_scope of this "
                    "scope; delete it from its own parent"
                )
            self._inner.remove(inner)
        inner.release()

    def release(self) -> None:
        """Free all variables that no other scope names, and delete the scopes inside."""
        with self._lock:
            inner, self._inner = self._inner, []
            variables, self._variables = self._variables, {}
            self.is_deleted = True
        for scope in inner:
            scope.release()
        kept = self._named_around()
        for variable in variables.values():
            if variable not in kept:
                variable.clear()

    def _named_around(self) -> set[Variable]:
        found: set[Variable] = set()
        scope = self.parent
        while scope is not None:
            found.update(scope._variables.values())
            scope = scope.parent
        return found

    def erase(self, names: Sequence[str]) -> None:
        """Remove names of this scope."""
        with self._lock:
            for name in names:
                self._variables.pop(name, None)

    def local_names(self) -> list[str]:
        """Return the names of this scope, without those around it."""
        with self._lock:
            return list(self._variables)

    def _check(self, what: str) -> None:
        if self.is_deleted:
            raise ClosedError(f"{user_call(what)}: the scope was deleted; use another one")

    def __repr__(self) -> str:
        return f"<scope of {', '.join(self.local_names()) or 'nothing'}>"


def _number(dtype: Any) -> Callable[[], Any]:
    return lambda: np.zeros((), dtype)


def _nothing() -> None:
    return None


def _same(value: Any) -> Any:
    return value


# Each type: what get_mutable makes, and what get returns of it.
TYPES: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "int": (_number(np.int64), lambda v: v.item()),
    "bool": (_number(np.bool_), lambda v: v.item()),
    "float": (_number(np.float64), lambda v: v.item()),
    "half": (_number(np.float16), lambda v: v[()]),
    "string": (lambda: np.array("", object), lambda v: v.item()),
    "tensor": (ScopeTensor, _same),
    "operator": (_nothing, _same),
    "scope": (Scope, _same),
}
PYTHON_TYPES: dict[type, str] = {
    bool: "bool",
    int: "int",
    float: "float",
    np.float16: "half",
    str: "string",
    Operator: "operator",
    Scope: "scope",
    ScopeTensor: "tensor",
    np.ndarray: "tensor",
    list: "tensor",
    tuple: "tensor",
    np.bool_: "bool",
    np.integer: "int",
    np.floating: "float",
}


def type_name(given: Any) -> str:
    """Return the name of a type of variables, given by name or as a Python type."""
    if isinstance(given, str) and given in TYPES:
        return given
    for cls, name in PYTHON_TYPES.items():
        if isinstance(given, type) and issubclass(given, cls):
            return name
    raise DTypeError(
        f"{user_call('type')}: {given!r} is no type of a variable; the types are {', '.join(TYPES)}"
    )


_global = Scope()
_stack = threading.local()


def global_scope() -> Scope:
    """Return the scope that lives as long as the process."""
    return _global


def current_scope() -> Scope:
    """Return the scope of the innermost ``scope_guard`` of this thread, or the global scope."""
    found: Scope = getattr(_stack, "scope", _global)
    return found


@contextmanager
def scope_guard(scope: Scope) -> Iterator[Scope]:
    """Context in which ``scope`` is the current one of the thread."""
    before = current_scope()
    _stack.scope = scope
    try:
        yield scope
    finally:
        _stack.scope = before
