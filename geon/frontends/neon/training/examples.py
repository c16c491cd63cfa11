"""``Examples``: access to the examples of an array-like, along one dimension."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ....errors import ArgumentError, FeedError
from ....op_graph.core.source_info import user_call
from ....op_graph.values.arrays import is_masked
from ....op_graph.values.labels import dim_names, refuse_list
from ..axis import N


class Examples:
    """An array whose examples lie along dimension ``dim``.

    Those of labelled data lie along the dimension N, wherever that is; without one, along the only
    dimension without a name, and else along ``dim``. Tables are indexed by position and not by the
    labels of their rows. Lists are converted to arrays. Raises ``ArgumentError``, which begins with
    ``what``, for data without such a dimension, and for ragged lists.
    """

    def __init__(self, what: str, array: Any, dim: int = 0) -> None:
        if isinstance(array, (list, tuple)):
            array = made_array(what, array)
        self.array, self.dim = array, self._place(array, dim)
        if not hasattr(array, "__len__") or len(getattr(array, "shape", (1,))) <= self.dim:
            raise ArgumentError(f"{user_call(what)}: {array!r} has no rows; give arrays")

    def _place(self, array: Any, dim: int) -> int:
        names = dim_names(array)
        if names is None:
            return dim
        if N.name in names:
            return names.index(N.name)
        return names.index(None) if names.count(None) == 1 else dim

    def __len__(self) -> int:
        """The number of examples."""
        return int(self.array.shape[self.dim]) if self.dim else len(self.array)

    def at(self, place: Any) -> Any:
        """Return the examples of a slice, read-only for a NumPy array, or of numbers.

        Other arrays than NumPy's are read at increasing numbers, as HDF5 requires and disks prefer.
        """
        array = self.array
        if hasattr(array, "iloc"):
            return array.iloc[self.index(place)]
        if isinstance(place, slice):
            found = array[self.index(place)]
            if isinstance(array, np.ndarray):
                found.flags.writeable = False
            return found
        if type(array) is np.ndarray or is_masked(array):
            return array[self.index(place)]
        increasing = np.argsort(place)
        back = np.empty_like(increasing)
        back[increasing] = np.arange(len(place))
        found = array[self.index(place[increasing])]
        if dim_names(found) is None:
            found = np.asarray(found)
        return found[self.index(back)]

    def index(self, place: Any) -> Any:
        """Return the index that applies ``place`` to the dimension of the examples."""
        return (*(slice(None),) * self.dim, place) if self.dim else place


def count_of_examples(what: str, parts: Iterable[Examples]) -> int:
    """Return the number of examples; raise ``ArgumentError`` unless arrays have equally many."""
    lengths = {len(part) for part in parts}
    if len(lengths) != 1:
        raise ArgumentError(
            f"{user_call(what)}: arrays of lengths {sorted(lengths)}; give at least one, all with "
            "a row for "
            "each example"
        )
    return lengths.pop()


def made_array(what: str, values: Any) -> Any:
    """Return a list as an array; raise ``FeedError`` for lists of labelled or masked arrays."""
    refuse_list(values, f"{what}: an array", FeedError)
    try:
        return np.array(values)
    except ValueError as failed:
        raise ArgumentError(
            f"{user_call(what)}: a list whose elements are no array together ({failed}); "
            "neon.Buckets makes "
            "batches of sequences of several lengths"
        ) from None
