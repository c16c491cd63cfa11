"""``labels=True``: results as xarray arrays, with the coordinates of the inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import ArgumentError, FeedError, UnavailableError
from ...op_graph.building.coordinates import coordinates_of, same_coordinate
from ...op_graph.evaluation.axis_provenance import AxisSlice
from ...op_graph.op_graph import Leaf, Op, Tensor
from ...op_graph.values.labels import dim_names
from ...op_graph.values.tree import Structure, Table
from ..binding.coordinate_origins import Kept, Origins
from ..binding.futures import Started
from ..computation import Computation

Source = tuple[Tensor, Any]  # an op, and data with its coordinates

MAX_SHOWN_COORDINATES = 4  # max. coordinates in messages


class LabelledComputation(Computation):
    """A computation whose results are xarray arrays; a dictionary of results is a ``Dataset``.

    A result has the dims of its axes, the name of its op, and the coordinates of those inputs whose
    axes it preserves: position i of the result is computed from position i of the input. A slice
    with constant bounds has the corresponding part of the coordinates, and so has a constant index
    along an axis that is removed. Unless xarray's option ``keep_attrs`` is False, a result has the
    attrs that are equal in all labelled inputs that it depends on and that have them. Variables and
    constants made from labelled data count as inputs. After a call, a variable has the coordinates
    that a result of its new value would have. Effects are None, or omitted from a dataset. Raises
    ``FeedError`` if two inputs have different coordinates along one dim, since geon matches
    positions within an axis, and if a dataset would have a result and a coordinate of one name.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.xarray = loaded_xarray()
        self.origins = Origins(self.request)
        pure = self.request.pure.outputs[: len(self.results)]
        self.keeping = [{} if op is None else self.origins.of(op) for op in pure]
        self.cuts = [
            {} if op is None else self.origins.cut(op, kept)
            for op, kept in zip(pure, self.keeping, strict=True)
        ]
        self.below = [set() if op is None else self.origins.below(op) for op in pure]
        self.datasets: list[tuple[Sequence[Any], list[int]]] = []
        if self.layout is not None:
            self.layout.filled(iter(self.results), make=_checked)
            self.layout.filled(iter(range(len(self.results))), make=self._noted)

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Return the results for these values of the placeholders, with dims and coordinates."""
        sources = self._sources(args, keywords)
        return self._with_labels(super().__call__(*args, **keywords), sources)

    def start(self, *args: Any, **keywords: Any) -> Started:
        """Start a call whose result has dims and coordinates."""
        sources = self._sources(args, keywords)
        return super().start(*args, **keywords).then(lambda it: self._with_labels(it, sources))

    def _with_labels(self, found: Any, sources: Sequence[Source]) -> Any:
        """Return the labelled results of a call; set coordinates of assigned variables."""
        for leaf, kept in self.moved.kept.items():
            before = self.transformer.coordinates_of(leaf)
            after = self.xarray.Dataset() if before is None else before
            for data, names in _taken(leaf, {k: v for k, v in kept.items() if v}, sources):
                new = [name for name in names if name not in after.coords]
                after = after.assign_coords(coordinates_of(data)[new].coords)
            if before is not None or len(after.coords):
                self.transformer.keep_coordinates(leaf, after)
        if self.single:
            return self._labelled(0, found, sources)
        values = found if self.layout is None else self.layout.flat(found, "results")
        made = [self._labelled(k, value, sources) for k, value in enumerate(values)]
        if self.layout is None:
            return tuple(made)
        return self.layout.filled(iter(made), make=self._joined)

    def _sources(self, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> list[Source]:
        """Return data with coordinates: inputs, then labelled variables and constants."""
        named = {k: v for k, v in keywords.items() if k != "out" or k in self.names}
        values = self.arranged(args, named)
        found: list[Source] = []
        for leaf, value in zip(self.placeholders, values, strict=True):
            names = dim_names(value)
            if names is not None and None not in names:
                data = value if hasattr(value, "coords") else self.xarray.DataArray(value)
                found.append((leaf, data))
        for op in self.origins.holding:
            if isinstance(op, Leaf):
                data = self.transformer.coordinates_of(op)
            else:
                data = op.notes().coordinates
            if data is not None:
                found.append((op, data))
        agreeing = _agreeing(found)
        for keys, numbers in self.datasets:
            self._refuse_keys(keys, numbers, agreeing)
        return agreeing

    def _labelled(self, number: int, value: Any, sources: Sequence[Source]) -> Any:
        """Return the value of one result as an xarray array."""
        op = self.results[number]
        if not isinstance(op, Tensor):
            return None
        made = self.xarray.DataArray(value, dims=op.axes.names, name=op.name)
        for data, names in _taken(op, self.keeping[number], sources):
            kept = coordinates_of(data)[names].transpose(*made.dims, missing_dims="ignore")
            made = made.assign_coords(kept.coords)
        for data, names, cuts in _sliced(op, self.keeping[number], self.cuts[number], sources):
            part = coordinates_of(data)[names]
            if any(cut.start >= part.sizes.get(n, cut.start + 1) for n, cut in cuts.items()):
                continue
            part = part.isel(
                {n: slice(c.start, None, c.step) if c.step else c.start for n, c in cuts.items()},
                missing_dims="ignore",
            )
            part = part.isel({n: slice(made.sizes[n]) for n in made.dims}, missing_dims="ignore")
            if all(made.sizes[n] == size for n, size in part.sizes.items()):
                new = part.drop_vars([name for name in names if name in made.coords])
                made = made.assign_coords(new.transpose(*made.dims, missing_dims="ignore").coords)
        if self.xarray.get_options().get("keep_attrs") is not False:
            made.attrs.update(_attrs(self.below[number], sources))
        return made

    def _joined(self, layout: Structure, found: list[Any]) -> Any:
        """Return the results of a part of the structure; a dictionary becomes a dataset."""
        if isinstance(layout, Table) and layout.shallow:
            pairs = zip(layout.keys, found, strict=True)
            results = {key: made for key, made in pairs if made is not None}
            return self.xarray.Dataset(_without_other_parts(results))
        return layout.build(found)

    def _noted(self, layout: Structure, numbers: list[Any]) -> Any:
        """Record the keys of a dataset and the numbers of its results."""
        if isinstance(layout, Table) and layout.shallow:
            self.datasets.append((list(layout.keys), numbers))
        return layout.build(numbers)

    def _refuse_keys(
        self, keys: Sequence[Any], numbers: Sequence[int], sources: Sequence[Source]
    ) -> None:
        """Raise ``FeedError`` if a result has the name of a coordinate in the same dataset."""
        for number in numbers:
            op = self.results[number]
            if isinstance(op, Tensor):
                kept, cuts = self.keeping[number], self.cuts[number]
                every = [names for _, names in _taken(op, kept, sources)]
                every += [names for _, names, _ in _sliced(op, kept, cuts, sources)]
                for names in every:
                    for key in keys:
                        if key in names:
                            raise FeedError(
                                f"the result {key!r} has the name of a coordinate that {op} (made "
                                f"at {op.line_info}) has of the data, and a dataset has one thing "
                                "of a name; give the result another key, or take the coordinate "
                                f"away with .drop_vars({key!r})"
                            )


def _taken(op: Tensor, kept: Kept, sources: Sequence[Source]) -> Iterator[tuple[Any, list[Any]]]:
    """Yield, for each source, the names of coordinates that a tensor preserving these axes has."""
    known: set[Any] = set()
    for leaf, data in sources:
        same = {
            axis.name
            for axis in leaf.axes
            if axis.name in kept
            and (not kept[axis.name] or leaf in kept[axis.name])
            and op.axes[axis.name].expression == axis.expression
        }
        coords = data.coords.items()
        names = [name for name, it in coords if same.issuperset(it.dims) and name not in known]
        known.update(names)
        if names:
            yield data, names


def _sliced(
    op: Tensor, kept: Kept, cuts: Mapping[str, AxisSlice], sources: Sequence[Source]
) -> Iterator[tuple[Any, list[Any], dict[str, AxisSlice]]]:
    """Yield, for each source, the names of coordinates that are sliced, and the slices."""
    for leaf, data in sources if cuts else ():
        own = {name: cut for name, cut in cuts.items() if leaf in cut.leaves}
        same = {name for name in leaf.axes.names if name in kept and leaf in kept[name]}
        names = [
            name
            for name, it in data.coords.items()
            if not own.keys().isdisjoint(it.dims) and (same | own.keys()).issuperset(it.dims)
        ]
        if names:
            yield data, names, own


def _without_other_parts(results: dict[Any, Any]) -> dict[Any, Any]:
    """Return arrays for one dataset, without coordinates that differ along a dim.

    A dataset would align these, which moves elements.
    """
    first: dict[Any, Any] = {}
    wrong = {
        dim
        for made in results.values()
        for dim, index in made.indexes.items()
        if not first.setdefault(dim, index).equals(index)
    }
    if not wrong:
        return results
    return {
        key: made.drop_vars(
            [name for name, it in made.coords.items() if not wrong.isdisjoint(it.dims)]
        )
        for key, made in results.items()
    }


def _attrs(below: set[Op], sources: Sequence[Source]) -> dict[Any, Any]:
    """Return the attrs that are equal in all sources among ``below`` that have them."""
    found: dict[Any, Any] = {}
    wrong: set[Any] = set()
    for leaf, data in sources:
        for key, value in getattr(data, "attrs", {}).items() if leaf in below else ():
            if key in found and not _equal(found[key], value):
                wrong.add(key)
            found.setdefault(key, value)
    return {key: value for key, value in found.items() if key not in wrong}


def _equal(one: Any, other: Any) -> bool:
    """Return True if two attrs are equal; they may be arrays."""
    same = one == other
    return (
        bool(same.all() if hasattr(same, "all") else same)
        if np.shape(one) == np.shape(other)
        else False
    )


def loaded_xarray() -> Any:
    """Return the package xarray; raise ``UnavailableError`` if it is missing."""
    try:
        import xarray
    except ImportError as error:
        raise UnavailableError(
            f"labelled results are arrays of xarray, which cannot be loaded ({error}); run "
            "`pip install xarray`, or leave labels=True out"
        ) from error
    return xarray


def _agreeing(found: list[Source]) -> list[Source]:
    """Return sources without differing coordinates; raise ``FeedError`` for differing indexes."""
    for number, (leaf, data) in enumerate(found):
        for other, before in found[:number]:
            for dim in data.indexes.keys() & before.indexes.keys():
                if not data.indexes[dim].equals(before.indexes[dim]):
                    raise FeedError(_contradiction(dim, (other, before), (leaf, data)))
    return [(leaf, data.drop_vars(_different(data, found))) for leaf, data in found]


def _different(data: Any, found: Sequence[Source]) -> list[Any]:
    """Return the coordinates without an index that differ in another input."""
    return [
        name
        for name in data.coords
        if name not in data.indexes
        and any(
            name in other.coords and not same_coordinate(name, data, other) for _, other in found
        )
    ]


def _contradiction(dim: Any, one: Source, two: Source) -> str:
    ours, theirs = one[1].indexes[dim], two[1].indexes[dim]
    pairs = zip(ours, theirs, strict=False)
    # NaN is not equal to itself, but the same coordinate as another NaN.
    differ = [k for k, (a, b) in enumerate(pairs) if a != b and not (a != a and b != b)]
    where = (
        f"; they differ from position {differ[0]} on"
        if differ and differ[0] >= MAX_SHOWN_COORDINATES
        else ""
    )

    def shown(leaf: Tensor, data: Any) -> str:
        values = data.indexes[dim]
        few = ", ".join(map(str, values[:MAX_SHOWN_COORDINATES])) + (
            ", ..." if len(values) > MAX_SHOWN_COORDINATES else ""
        )
        count = f" of length {len(values)}" if len(ours) != len(theirs) else ""
        return f"[{few}]{count} in {leaf} (made at {leaf.line_info})"

    return (
        f"the coordinates along {dim!r} are {shown(*one)} and {shown(*two)}, and positions along "
        f"one axis are taken for the same{where}; align the data with xarray.align, or take the "
        f"coordinates away with .drop_vars({dim!r})"
    )


def _checked(layout: Structure, found: list[Any]) -> Any:
    """Raise ``ArgumentError`` for a dictionary whose results no dataset can hold."""
    if isinstance(layout, Table) and layout.shallow:
        lengths: dict[str, tuple[Any, Op]] = {}
        for op in found:
            for axis in op.axes if isinstance(op, Tensor) else ():
                if axis.name in layout.keys:
                    raise ArgumentError(
                        f"the result {axis.name!r} has the name of an axis of {op} (made at "
                        f"{op.line_info}), and a dataset would take it for the coordinate along "
                        "it; give the result another key, or ask for a list of results"
                    )
                length, other = lengths.setdefault(axis.name, (axis.expression, op))
                if length != axis.expression:
                    raise ArgumentError(
                        f"one dataset has one length along {axis.name!r}: it is {length} in "
                        f"{other} (made at {other.line_info}) and {axis.expression} in {op} (made "
                        f"at {op.line_info}); geon.rename one axis, or ask for a list of results"
                    )
    return layout.build(found)
