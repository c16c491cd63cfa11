"""Variables, which hold a value of any type, and scopes, which give them names."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from ...errors import ArgumentError, ClosedError, DTypeError, FeedError
from ...op_graph.core.source_info import user_call
from ...op_graph.values.dtypes import named_dtype
from .program import Operator


class ScopeTensor:
    """An array of a scope whose memory is allocated when it is first read.

    ``bind`` moves it to the ``storage`` of an executor, which holds a parameter on its device and
    has ``get``, ``set`` and ``release``.
    """

    def __init__(self, shape: Sequence[int] = (), dtype: Any = "float32") -> None:
        self.shape = tuple(shape)
        self.dtype = named_dtype(dtype) if isinstance(dtype, str) else np.dtype(dtype)
        self.storage: Any = None
        self._array: np.ndarray[Any, Any] | None = None

    @property
    def is_allocated(self) -> bool:
        """True if it has memory: its own, or that of an executor."""
        return self._array is not None or self.storage is not None

    @property
    def array(self) -> np.ndarray[Any, Any]:
        """The elements; zeros are allocated if nothing was written."""
        if not self.is_allocated:
            self._array = np.zeros(self.shape, self.dtype)
        found: Any = self._array if self.storage is None else self.storage.get()
        return found

    def set(self, value: Any) -> None:
        """Write a copy of an array; it changes the shape, and the dtype if it is not allocated."""
        array = np.asarray(value)
        if self.storage is not None:
            self.storage.set(array)
            return
        dtype = self.dtype if self.is_allocated else array.dtype
        if not np.can_cast(array.dtype, dtype, "same_kind"):
            raise FeedError(
                f"{user_call('set')}: an array of {array.dtype} for a tensor of {dtype}; cast it"
            )
        self._array = np.array(array, dtype)
        self.shape, self.dtype = self._array.shape, dtype

    def bind(self, storage: Any) -> None:
        """Move the value to the storage of an executor, which has it."""
        self._array, self.storage = None, storage

    def release(self) -> None:
        """Free the memory."""
        if self.storage is not None:
            self.storage.release()
        self._array = self.storage = None

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.asarray(self.array, dtype)


class Variable:
    """A value of one type: int, bool, float, half, string, tensor, operator or scope.

    It has no name. Its first ``set`` or ``get_mutable`` fixes the ``type``, a name or None.
    ``estimated`` marks a parameter whose value is known.
    """

    def __init__(self) -> None:
        self.type: str | None = None
        self.estimated = False
        self._value: Any = None
        self._lock = threading.RLock()

    def is_type(self, type: Any) -> bool:
        """Return True if it holds a value of this type, given as a Python type or by its name."""
        return self.type == type_name(type)

    def get(self, type: Any = None) -> Any:
        """Return the value; raise ``DTypeError`` if it is of another type than the one given."""
        if self.type is None:
            what = user_call("get")
            raise FeedError(f"{what}: the variable holds nothing; set it first, or get_mutable")
        value = self._held("get", self.type if type is None else type_name(type))
        if self.type == "half":
            return value[()]
        return value.item() if isinstance(value, np.ndarray) else value

    def get_mutable(self, type: Any) -> Any:
        """Return what can be changed in place, made now if the variable holds nothing.

        A number, bool or string is an array without dimensions: ``variable.get_mutable(int)[...] =
        3``. A tensor is a ``ScopeTensor``, whose memory is allocated when it is first read.
        """
        name = type_name(type)
        with self._lock:
            if self._held("get_mutable", name) is None:
                self._value = TYPES[name][1]()
            return self._value

    def set(self, value: Any) -> None:
        """Write a value, whose type must be that of the variable if it has one."""
        name = type_name(value.__class__)
        if (self.type, name) == ("float", "int") or (self.type == "tensor" and name in NUMBERS):
            name = str(self.type)
        with self._lock:
            self._held("set", name)
            if name in ("operator", "scope"):
                self._value = value
            elif name == "tensor":
                self.get_mutable(name).set(value)
            else:
                self.get_mutable(name)[...] = value

    def _held(self, what: str, wanted: str) -> Any:
        """Return the value; raise ``DTypeError`` if the variable holds another type."""
        self.type = self.type or wanted
        if self.type != wanted:
            raise DTypeError(
                f"{user_call(what)}: the variable holds a {self.type}, not a {wanted}; use another"
            )
        return self._value

    def clear(self) -> None:
        """Free the value; the variable holds nothing then."""
        with self._lock:
            if isinstance(self._value, (ScopeTensor, Scope)):
                self._value.release()
            self.type = self._value = None


class Scope:
    """Names of variables. A name that it lacks is looked up in the scope around it.

    Methods may be called from several threads. A scope owns the scopes made by ``create_scope``.
    """

    def __init__(self, parent: Scope | None = None) -> None:
        self.parent = parent
        self._variables: dict[str, Variable] = {}
        self._inner: list[Scope] = []
        self._lock = threading.RLock()
        self._is_deleted = False
        self.home: Any = None  # of an executor: where values are kept, and what was compiled

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
            if name not in self._variables:
                self._variables[name] = Variable()
            return self._variables[name]

    create_var = var

    def bind(self, name: str, variable: Variable) -> None:
        """Give a variable, perhaps of a scope around, a name here."""
        with self._lock:
            self._check(f"bind({name!r})")
            self._variables[name] = variable

    def create_scope(self) -> Scope:
        """Return a new scope inside of this one."""
        with self._lock:
            self._check("create_scope")
            self._inner.append(Scope(self))
            return self._inner[-1]

    def delete_scope(self, inner: Scope) -> None:
        """Delete a scope made by ``create_scope``: free its variables, and the scopes inside."""
        with self._lock:
            self._check("delete_scope")
            if inner not in self._inner:
                raise ArgumentError(
                    f"{user_call('delete_scope')}: {inner!r} was not made by create_scope of this "
                    "scope; delete it from its own parent"
                )
            self._inner.remove(inner)
        inner.release()

    def release(self) -> None:
        """Delete this scope and those inside; free variables that no scope around names."""
        with self._lock:
            self._is_deleted = True
            inner, self._inner = self._inner, []
            variables, self._variables = [*self._variables.values()], {}
        for scope in inner:
            scope.release()
        around, kept = self.parent, set[Variable]()
        while around is not None:
            kept |= {*around._variables.values()}
            around = around.parent
        for variable in variables:
            if variable not in kept:
                variable.clear()

    def erase(self, names: Sequence[str]) -> None:
        """Remove names of this scope."""
        with self._lock:
            self._check("erase")
            for name in names:
                self._variables.pop(name, None)

    def local_names(self) -> list[str]:
        """Return the names of this scope, without those around it."""
        return list(self._variables)

    def _check(self, what: str) -> None:
        if self._is_deleted:
            raise ClosedError(f"{user_call(what)}: the scope was deleted; use another one")

    def __repr__(self) -> str:
        return f"<scope of {', '.join(self.local_names()) or 'nothing'}>"


# Each type of a variable: its Python types, and what ``get_mutable`` makes.
TYPES: dict[str, tuple[tuple[type, ...], Callable[[], Any]]] = {
    "bool": ((bool, np.bool_), partial(np.zeros, (), np.bool_)),
    "int": ((int, np.integer), partial(np.zeros, (), np.int64)),
    "half": ((np.float16,), partial(np.zeros, (), np.float16)),
    "float": ((float, np.floating), partial(np.zeros, (), np.float64)),
    "string": ((str,), partial(np.array, "", object)),
    "tensor": ((ScopeTensor, np.ndarray, list, tuple), ScopeTensor),
    "operator": ((Operator,), lambda: None),
    "scope": ((Scope,), Scope),
}
NUMBERS = ("bool", "int", "half", "float")


def type_name(given: Any) -> str:
    """Return the name of a type of variables, given by name or as a Python type."""
    for name, (classes, _) in TYPES.items():
        if given == name or (isinstance(given, type) and issubclass(given, classes)):
            return name
    raise DTypeError(
        f"{user_call('type')}: {given!r} is no type of a variable; the types are {', '.join(TYPES)}"
    )


_global = Scope()
_current = threading.local()


def global_scope() -> Scope:
    """Return the scope that lives as long as the process."""
    return _global


def current_scope() -> Scope:
    """Return the scope of the innermost ``scope_guard`` of this thread, or the global scope."""
    found: Scope = getattr(_current, "scope", _global)
    return found


@contextmanager
def scope_guard(scope: Scope) -> Iterator[Scope]:
    """Context in which ``scope`` is the current one of the thread."""
    before = current_scope()
    _current.scope = scope
    try:
        yield scope
    finally:
        _current.scope = before
