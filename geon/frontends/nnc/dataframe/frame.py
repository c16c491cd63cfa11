"""``DataFrame``: named columns, each a function of row numbers or of other columns."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from ....errors import ArgumentError, FeedError, IndexRangeError, UnavailableError
from ....op_graph.values.dtypes import as_dtype
from ...neon.checks import at_least_one, at_least_zero
from ...neon.training.data import checked_division
from ..checks import checked
from .images import Jitter, read_image
from .iterators import DataIterator, check_names

Rows = np.ndarray[Any, Any]


@checked
class DataFrame:
    """Columns over ``rows`` rows, whose values are computed when rows are pulled.

    A column is a function of row numbers (``add``) or of other columns (``map`` and the methods
    named after their function). The values of several rows are an array along its first
    dimension, or a list where their shapes differ. Methods that make columns return the frame.
    ``turn`` counts passes over the data, so that random columns differ between them.
    """

    def __init__(self, rows: int) -> None:
        at_least_zero("DataFrame", "rows", rows)
        self.rows, self.order, self.turn = int(rows), np.arange(rows), 0
        # By name: a function (rows, turn, *values), and the columns whose values it takes.
        self.columns: dict[Any, tuple[Callable[..., Any], tuple[Any, ...]]] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its columns."""
        return tuple([name for name in self.columns if isinstance(name, str)])

    # Sources ------------------------------------------------------------------------------------

    @classmethod
    def from_array(cls, arrays: Mapping[str, Any]) -> DataFrame:
        """Return a frame of arrays or lists by name, each with a row per element.

        Raises ``ArgumentError`` if their lengths differ.
        """
        wrong = [name for name, values in arrays.items() if not np.iterable(values)]
        if wrong:
            raise ArgumentError(
                f"the column {wrong[0]!r} is {arrays[wrong[0]]!r:.80}; give an array or a list "
                "with an element for each row"
            )
        lengths = {name: len(values) for name, values in arrays.items()}
        if len(set(lengths.values())) != 1:
            raise ArgumentError(
                f"columns need one number of rows, and these have {lengths or 'none'}; give "
                "columns of equal lengths"
            )
        made = cls(next(iter(lengths.values())))
        for name, values in arrays.items():
            held = values if isinstance(values, np.ndarray) else joined(list(values))
            made.add(name, partial(take, held))
        return made

    @classmethod
    def from_csv(
        cls, path: str | os.PathLike[str], columns: Sequence[str] | None = None, **options: Any
    ) -> DataFrame:
        """Return a frame of the columns of a CSV file, which pandas reads with these options.

        Raises ``UnavailableError`` without pandas, ``FeedError`` for a file that it cannot read,
        and ``ArgumentError`` for a column that the file lacks.
        """
        try:
            import pandas
        except ImportError:
            raise UnavailableError(
                "DataFrame.from_csv needs the package pandas; pip install pandas"
            ) from None
        try:
            table = pandas.read_csv(path, **options)
        except (OSError, ValueError, TypeError) as error:  # of parsers and of wrong options
            raise FeedError(
                f"{path} cannot be read as CSV ({error}); check the path and the file, or give "
                "pandas' options, such as sep="
            ) from None
        known = [str(name) for name in table]
        chosen = list(columns or known)
        check_names(chosen, known, f"the file {path}")
        return cls.from_array({name: table[name].to_numpy() for name in chosen})

    # Columns ------------------------------------------------------------------------------------

    def _put(self, name: str, pull: Callable[..., Any], *columns: str) -> DataFrame:
        check_names(columns, self.names)
        self.columns[name] = pull, columns
        return self

    def _each(
        self, name: str, function: Callable[..., Any], *columns: str, needs: str = ""
    ) -> DataFrame:
        """Add a column ``function(*values)`` of the values of single rows.

        ``needs`` says what these must be, for a function of this class.
        """

        def pull(rows: Rows, turn: int, *values: Any) -> Any:
            made = []
            for row in zip(*values, strict=True):
                try:
                    made.append(function(*row))
                except (LookupError, AttributeError, TypeError) as error:
                    if not needs:
                        raise
                    raise FeedError(
                        f"the column {name!r} needs {needs} in {', '.join(columns)}, and a value "
                        f"is {row[0]!r:.80} ({error})"
                    ) from None
            return joined(made)

        return self._put(name, pull, *columns)

    def add(self, name: str, function: Callable[[Rows], Any]) -> DataFrame:
        """Add a column whose values are ``function(rows)`` for an array of row numbers."""
        return self._put(name, lambda rows, turn: function(rows))

    def map(self, name: str, function: Callable[..., Any], *columns: str) -> DataFrame:
        """Add a column ``function(*values)`` of the values of columns for some rows.

        Values are arrays or lists of several rows; the result has as many.
        """
        return self._put(name, lambda rows, turn, *values: function(*values), *columns)

    def make_tuple(self, name: str, *columns: str) -> DataFrame:
        """Add a column with a tuple of the values of columns."""
        return self.map(name, lambda *values: list(zip(*values, strict=True)), *columns)

    def extract_tuple(self, name: str, column: str, index: int) -> DataFrame:
        """Add a column with element ``index`` of a column of tuples."""
        needs = f"tuples with an element {index}"
        return self._each(name, lambda value: value[index], column, needs=needs)

    def extract_value(self, name: str, column: str, key: str) -> DataFrame:
        """Add a column with the item or attribute ``key`` of a column of objects."""
        return self._each(
            name, lambda v: v[key] if isinstance(v, Mapping) else getattr(v, key), column,
            needs=f"objects with an item or attribute {key!r}",
        )  # fmt: skip

    def one_hot(
        self, name: str, column: str, range: int, on: float = 1, off: float = 0,
        dtype: Any = "float32",
    ) -> DataFrame:  # fmt: skip
        """Add a column of vectors of length ``range``: ``on`` at an integer's place, else ``off``.

        Raises ``IndexRangeError`` for another number than 0 to ``range`` - 1 when it is pulled.
        """
        at_least_one("DataFrame.one_hot", "range", range)
        kind = as_dtype(dtype)

        def pull(rows: Rows, turn: int, values: Any) -> Any:
            labels = np.asarray(values)
            wrong = (labels < 0) | (labels >= range) | (labels != np.floor(labels))
            wrong = wrong.reshape(len(rows), -1)
            if wrong.any():
                raise IndexRangeError(
                    f"one_hot of the column {column!r}: {labels.reshape(wrong.shape)[wrong][0]} in "
                    f"row {rows[wrong.any(1)][0]}, and range={range} has 0 to {range - 1}; give "
                    "integers, or a larger range="
                )
            return np.where(labels[..., None] == np.arange(range), on, off).astype(kind)

        return self._put(name, pull, column)

    def copy_scalar(self, name: str, column: str, dtype: Any = "float32") -> DataFrame:
        """Add a column of arrays of shape (1,) with the numbers of a column."""
        kind = as_dtype(dtype)
        return self.map(name, lambda values: np.asarray(values).astype(kind)[:, None], column)

    def truncate(self, name: str, column: str, lengths: str) -> DataFrame:
        """Add a column of arrays cut to the largest of their ``lengths``, along dimension 0.

        In a frame of batches, where dimension 0 is the batch, they are cut along dimension 1.
        """

        def cut(value: Any, length: Any) -> Any:
            along = (slice(None), slice(int(np.max(length))))
            return value[along[np.ndim(length) == 0 :]]

        return self._each(name, cut, column, lengths, needs="arrays")

    def one_squared(self, name: str, lengths: str, size: int, dtype: Any = "float32") -> DataFrame:
        """Add a column of masks (..., size, size): 1 where both indices are less than a length."""
        at_least_one("DataFrame.one_squared", "size", size)
        kind = as_dtype(dtype)

        def mask(length: Any) -> Any:
            inside = np.arange(size) < np.asarray(length)[..., None]
            return (inside[..., :, None] & inside[..., None, :]).astype(kind)

        return self._each(name, mask, lengths)

    def read_image(self, name: str, column: str) -> DataFrame:
        """Add a column of the images (height, width, channels) of uint8 at a column of paths."""
        return self._each(name, read_image, column)

    def image_random_jitter(
        self, name: str, column: str, jitter: Jitter, seed: int = 0
    ) -> DataFrame:
        """Add a column of randomly changed images; draws depend on seed, turn and row alone."""

        def pull(rows: Rows, turn: int, images: Any) -> Any:
            draws = [np.random.default_rng([seed, turn, row]) for row in rows]
            return joined([jitter(r, image) for r, image in zip(draws, images, strict=True)])

        return self._put(name, pull, column)

    # Frames of frames -----------------------------------------------------------------------------

    def sample(self, name: str, function: Callable[..., Any], column: str, size: int) -> DataFrame:
        """Return a frame whose row k is ``function`` of the rows k size to (k + 1) size.

        The last row is of the remaining ones.
        """
        return self.combine(column, size=size)._each(name, function, column)

    def combine(self, *columns: str, size: int, last: str = "keep") -> DataFrame:
        """Return a frame of batches: row k has the rows k size to (k + 1) size of each column.

        ``last="drop"`` omits a last batch that is shorter.
        """
        names = columns or self.names
        checked_division("DataFrame.combine", size, last, (0, 1))
        check_names(names, self.names)
        frame = DataFrame(-(-self.rows // size) if last == "keep" else self.rows // size)

        def groups(rows: Rows, turn: int) -> Any:
            bounds = [(row * size, min((row + 1) * size, self.rows)) for row in rows]
            at = np.concatenate([np.arange(*each) for each in bounds] or [np.arange(0)])
            values = self._values(names, at, turn)
            ends = np.cumsum([0, *[end - begin for begin, end in bounds]])
            found = {n: [v[i:j] for i, j in pairwise(ends)] for n, v in values.items()}
            return [{n: v[k] for n, v in found.items()} for k in range(len(rows))]

        key = ("rows", *names)  # a column without a name: one pull of this frame for all columns
        frame.columns[key] = groups, ()
        for name in names:
            frame.columns[name] = (lambda rows, turn, g, n=name: [each[n] for each in g]), (key,)
        return frame

    def shuffle(self, seed: int = 0) -> DataFrame:
        """Put the rows into a random order, another one at each call; it begins a new turn."""
        at_least_zero("DataFrame.shuffle", "seed", seed)
        self.turn += 1
        self.order = np.random.default_rng([seed, self.turn]).permutation(self.rows)
        return self

    # Values -------------------------------------------------------------------------------------

    def pull(self, *columns: str, rows: slice | Sequence[int] | Rows = slice(None)) -> Any:
        """Return the values of columns for some rows: one for one column, else a tuple.

        No other column is computed than those and what they take.
        """
        check_names(columns, self.names)
        at = np.atleast_1d(np.arange(self.rows)[rows] if isinstance(rows, slice) else rows)
        if at.dtype == bool:
            at = np.flatnonzero(at)
        if at.size and at.dtype.kind not in "iu":
            raise IndexRangeError(f"rows={rows!r:.80}; give a slice, or integers")
        if at.size and not (0 <= at.min() and at.max() < self.rows):
            raise IndexRangeError(
                f"rows {at.min()} to {at.max()} of a frame of {self.rows} rows; give rows from 0 "
                f"to {self.rows - 1}"
            )
        found = self._values(columns, at.astype(int))
        return found[columns[0]] if len(columns) == 1 else tuple([found[c] for c in columns])

    def _values(self, names: Sequence[str], at: Rows, later: int = 0) -> dict[str, Any]:
        """Return the values of columns at places of the order, in a turn ``later`` than now."""
        rows, turn, found = self.order[at], self.turn + later, dict[Any, Any]()

        def value(name: Any) -> Any:
            if name not in found:
                pull, takes = self.columns[name]
                found[name] = made = pull(rows, turn, *[value(each) for each in takes])
                count = len(made) if hasattr(made, "__len__") else "no list of"
                if count != len(rows):
                    raise FeedError(
                        f"the column {name!r} has {count} values for {len(rows)} rows; let its "
                        "function return one for each row"
                    )
            return found[name]

        return {name: value(name) for name in names}

    def iterate(self, *columns: str, prefetch: int = 0) -> DataIterator:
        """Return an iterator over the rows of columns, by default all."""
        check_names(columns, self.names)
        return DataIterator(self, columns or self.names, prefetch)

    def __len__(self) -> int:
        return self.rows

    def __repr__(self) -> str:
        return f"DataFrame({self.rows} rows; {', '.join(self.names)})"


def take(values: Any, rows: Rows) -> Any:
    """Return the elements of an array or list at these positions."""
    return values[rows] if isinstance(values, np.ndarray) else [values[row] for row in rows]


def joined(values: list[Any]) -> Any:
    """Return the values of rows as an array; the list if they are no arrays of one shape."""
    if values and all(isinstance(v, (bool, int, float, np.number, np.bool)) for v in values):
        return np.array(values)
    kinds = {(v.shape, v.dtype) if isinstance(v, np.ndarray) else None for v in values}
    return np.stack(values) if len(kinds) == 1 and None not in kinds else values
