"""``compile``: call a function written with geon's ops on xarray arrays."""

from __future__ import annotations

import functools
import inspect
import struct
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from ...errors import ArgumentError, AxisError, FeedError
from ...op_graph.axes.axes import Axes, Axis, as_axes
from ...op_graph.building.weak import weak_input
from ...op_graph.op_graph import Leaf
from ...op_graph.rows.leaves import placeholder
from ...op_graph.syntax.operators import is_function
from ...op_graph.values.arrays import CURES, refuse_kind
from ...op_graph.values.labels import dim_names
from ...transformers.base import Transformer, make_transformer
from ..base.growth import Growth


def compile(
    f: Callable[..., Any],
    *,
    transformer: Transformer | None = None,
    axes: Any = (),
    **options: Any,
) -> Compiled:
    """A function of xarray arrays that computes what ``f`` builds from tensors.

    ``f`` is called once for each combination of dims and dtypes, with a tensor for each
    ``DataArray`` and a dictionary of tensors for each ``Dataset``, and returns an op or a structure
    of ops; the results have dims and coordinates, as with ``labels=True``. Dims are open axes, so
    one program serves all their lengths; ``axes`` are those that have fixed lengths in ``f``. A
    float is an input without dims, so one program serves all its values; a Python float takes the
    dtype of the other operand. If ``f`` cannot be built with a tensor instead of the float, for
    example because it branches on it, the float is a setting. Other arguments are settings, passed
    to ``f`` unchanged and part of the program: each new value makes a new program, and the tenth
    gives a warning. They must be hashable, such as integers, texts and axes, or tuples, lists,
    dictionaries and slices of these; arrays without dims raise ``ArgumentError``. ``options`` are
    those of ``transformer.computation``.
    """
    return Compiled(f, transformer, as_axes(axes), options)


class Compiled:
    """Result of ``compile``; ``computations`` are those made so far."""

    def __init__(
        self,
        f: Callable[..., Any],
        transformer: Transformer | None,
        axes: Axes,
        options: Mapping[str, Any],
    ) -> None:
        if not is_function(f):
            raise ArgumentError(f"compile takes a function of tensors, not {f!r}")
        functools.update_wrapper(self, f)
        self.f, self.options = f, {"labels": True, **options}
        self.transformer = make_transformer() if transformer is None else transformer
        self.axes = {axis.name: axis for axis in axes}
        self.names = _positional(f)
        # Keyed by forms of arguments; None if floats of that form must be settings.
        self._made: dict[Any, Any] = {}
        self._lock = threading.Lock()
        self._growth = Growth(
            f"geon.frontends.xarray.compile({getattr(f, '__qualname__', repr(f))})",
            "give what changes as an array, such as xarray.DataArray(value), or as a float that "
            "is an argument itself and by which the function chooses no branch",
        )

    @property
    def computations(self) -> list[Any]:
        """The computations made so far, one for each combination of dims and dtypes."""
        return [made for made in self._made.values() if made is not None]

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """The results for these arrays; raises what building and calling them raise."""
        given: dict[Any, Any] = {**dict(enumerate(args)), **keywords}
        with self._lock:
            made, numbers = self._found(given)
        return made(*[array for value in given.values() for array in _fed(value, numbers)])

    def _found(self, given: Mapping[Any, Any]) -> tuple[Any, bool]:
        """Return the computation for these arguments, and True if floats are among its inputs."""
        forms = {place: _form(place, value, True) for place, value in given.items()}
        key = tuple(forms.items())
        if key not in self._made:
            numbers = any(_is_number(value) for value in given.values())
            try:
                made = self._computation(given, True)
            except Exception:
                if not numbers:
                    raise
                # f needs their values; if the error has another cause, the second try raises it
                made = None
            self._keep(key, made, given, forms)
        if self._made[key] is not None:
            return self._made[key], True
        forms = {place: _form(place, value, False) for place, value in given.items()}
        key = tuple(forms.items())
        if key not in self._made:
            self._keep(key, self._computation(given, False), given, forms)
        return self._made[key], False

    def _keep(
        self, key: Any, made: Any, given: Mapping[Any, Any], forms: Mapping[Any, Any]
    ) -> None:
        """Store a computation, and count it among those with arrays of this form."""
        self._made[key] = made
        settings = {
            str(self._name(place) or place): form
            for place, form in forms.items()
            if form[0] not in INPUTS
        }
        if made is not None and settings:
            inputs = tuple((place, form) for place, form in key if form[0] in INPUTS)
            self._growth.add((inputs, tuple(settings)), settings)

    def _computation(self, given: Mapping[Any, Any], numbers: bool) -> Any:
        """Return the computation of ``f``, with an input for each float if ``numbers``."""
        leaves: list[Leaf] = []
        tensors: dict[Any, Any] = {}
        for place, value in given.items():
            if numbers and _is_number(value):
                leaf = placeholder((), np.asarray(value).dtype, name=self._name(place))
                leaves.append(leaf)
                tensors[place] = weak_input(leaf) if type(value) is float else leaf
            elif _is_dataset(value):
                tensors[place] = {key: self._leaf(value[key], str(key)) for key in value.data_vars}
                leaves += tensors[place].values()
            elif dim_names(value) is not None:
                tensors[place] = self._leaf(value, self._name(place))
                leaves.append(tensors[place])
            else:
                tensors[place] = value
        args = [tensor for place, tensor in tensors.items() if isinstance(place, int)]
        keywords = {place: t for place, t in tensors.items() if isinstance(place, str)}
        return self.transformer.computation(self.f(*args, **keywords), *leaves, **self.options)

    def _name(self, place: Any) -> str | None:
        """Return the parameter name of an argument, or None."""
        if isinstance(place, str):
            return place
        return self.names[place] if place < len(self.names) else None

    def _leaf(self, data: Any, name: str | None) -> Leaf:
        """Return a placeholder for an array, with an axis for each of its dims."""
        dims = dim_names(data) or ()
        wrong = [dim for dim in dims if not isinstance(dim, str)]
        if wrong:
            raise AxisError(
                f"the dim {wrong[0]!r} of an argument of {self.f!r} is no text, as names of axes "
                "are; give it a name with .rename({...}), or .rename_axis(...) of a table"
            )
        axes = [self.axes.get(dim) or Axis(dim) for dim in dims]
        dtype = _dtype(data)
        if dtype.kind in CURES:
            what = f"the argument {name!r} of {self.f!r}"
            refuse_kind(np.asarray(data), what, None, FeedError)
        return placeholder(axes, dtype, name=name)


INPUTS = ("dataset", "array", "number")  # forms of arguments whose values are not part of a program


def _form(place: Any, value: Any, numbers: bool) -> Any:
    """Return all of an argument that a program depends on; floats are inputs if ``numbers``."""
    if numbers and _is_number(value):
        return "number", type(value)
    if _is_dataset(value):
        return "dataset", tuple((key, _form(key, value[key], numbers)) for key in value.data_vars)
    dims = dim_names(value)
    if dims is not None:
        return "array", dims, str(_dtype(value))
    return _setting(place, value)


def _is_number(value: Any) -> bool:
    """Return True for a float of Python or NumPy."""
    return type(value) is float or isinstance(value, np.floating)


def _setting(place: Any, value: Any) -> Any:
    """Return a hashable key of an argument that is no array; floats are keyed by their bits."""
    kind = type(value)
    if isinstance(value, (tuple, list)):
        return kind, tuple([_setting(place, part) for part in value])
    if isinstance(value, dict):
        return kind, tuple([(key, _setting(place, part)) for key, part in value.items()])
    if isinstance(value, slice):
        parts = (value.start, value.stop, value.step)
        return kind, tuple([_setting(place, part) for part in parts])
    if isinstance(value, (float, complex)):
        both = (value.real, value.imag)
        return kind, struct.pack("<2d", *both)
    if isinstance(value, np.generic):
        return kind, value.dtype.str, value.tobytes()
    try:
        hash(value)
    except TypeError:
        raise ArgumentError(
            f"the argument {place!r} is or holds a {kind.__name__}, which {_wrong(value)}"
        ) from None
    return kind, value


def _wrong(value: Any) -> str:
    """Return why a value is no valid argument, and what to give instead."""
    if dim_names(value) is not None or _is_dataset(value):
        return (
            "is no setting of the program, as lists and dictionaries hold; give each array as an "
            "argument of its own, or several as a Dataset"
        )
    neither = "is no array with dims and no setting of the program; give"
    if hasattr(value, "to_dataset"):  # a DataTree
        return f'{neither} one of its datasets, tree["path"].to_dataset()'
    return f"{neither} xarray.DataArray(values, dims=[...])"


def _fed(value: Any, numbers: bool) -> Iterable[Any]:
    """Return the inputs of a computation that an argument supplies."""
    if numbers and _is_number(value):
        return [value]
    if _is_dataset(value):
        return [value[key] for key in value.data_vars]
    return [] if dim_names(value) is None else [value]


def _is_dataset(value: Any) -> bool:
    return hasattr(value, "data_vars") and hasattr(value, "to_dataarray")


def _dtype(data: Any) -> np.dtype[Any]:
    """Return NumPy's dtype of data, which tables and pandas' own dtypes lack."""
    dtype = getattr(data, "dtype", None)
    return dtype if isinstance(dtype, np.dtype) else np.asarray(data).dtype


def _positional(f: Any) -> list[str]:
    """Return the names of positional parameters."""
    try:
        parameters = inspect.signature(f).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
