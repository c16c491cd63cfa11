"""Ensembles of decision trees.

All nodes are rows of flat tables. A node goes to ``left + 1`` if its feature is at most its
threshold, else to ``left``; a leaf stays, since nothing is at most its threshold NaN. An index for
each row and tree goes down until none moves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import geon

from .....errors import ArgumentError, AxisError
from ....positional.elementwise import elementwise
from ....positional.movement import with_axis
from ....positional.programs import cast
from ....positional.values import HostArray, Value, array, as_array, host
from ...table import ML, row
from .scores import classified, transformed

# Rows up to this number go through all trees at once. More go through one tree after the other,
# whose nodes then stay in the cache: twice as fast for 10,000 rows, 40 times slower for one.
MAX_ROWS_AT_ONCE = 64
Array = np.ndarray[Any, Any]
MODES = ("LEQ", "LT", "GTE", "GT", "EQ", "NEQ", "MEMBER", "LEAF")
MODE_NUMBERS = {start + mode: k for k, mode in enumerate(MODES) for start in ("", "BRANCH_")}
# The reduction over trees, the combination of two, and its identity.
AGGREGATES: dict[str, tuple[Callable[..., Any], Callable[..., Any], float]] = {
    "SUM": (geon.sum, geon.add, 0.0),
    "AVERAGE": (geon.sum, geon.add, 0.0),
    "MIN": (geon.min, geon.minimum, np.inf),
    "MAX": (geon.max, geon.maximum, -np.inf),
}


@dataclass
class TreeNodes:
    """TreeNodes by number: modes, features, thresholds, children, and children for NaN."""

    mode: Array
    feature: Array
    threshold: Array
    yes: Array
    no: Array
    missing: Array  # true where NaN goes to ``yes``

    def append(self, *fields: Any) -> int:
        """Add a node and return its number."""
        for name, value in zip(self.__dataclass_fields__, fields, strict=True):
            column = getattr(self, name)
            setattr(self, name, np.append(column, np.asarray(value, column.dtype)))
        return len(self.mode) - 1

    def compare_once(self, members: dict[int, Array]) -> None:
        """Replace tests for equality and membership by chains of comparisons."""
        modes = [MODES.index(name) for name in ("EQ", "NEQ", "MEMBER", "LEQ", "LT")]
        equal, unequal, member, at_most, less = modes
        todo = np.flatnonzero(np.isin(self.mode, (equal, unequal, member))).tolist()
        for k in todo:
            feature, yes, no = self.feature[k], self.yes[k], self.no[k]
            values = members[k] if self.mode[k] == member else self.threshold[k : k + 1]
            if self.mode[k] == unequal:
                yes, no, self.missing[k] = no, yes, False
            for value in values[:0:-1]:
                inner = self.append(less, feature, value, no, yes, False)
                no = self.append(at_most, feature, value, inner, no, False)
            inner = self.append(less, feature, values[0], no, yes, False)
            self.mode[k], self.threshold[k] = at_most, values[0]
            self.yes[k], self.no[k] = inner, no


@dataclass(frozen=True)
class Forest:
    """Tables of nodes, a row for each; the first rows are the roots of trees.

    ``weights`` are those of leaves (leaf, target), and ``leaf`` has the leaf of a node.
    """

    left: Array
    feature: Array
    threshold: Array
    nan_right: Array
    leaf: Array
    weights: Array
    trees: int
    depth: int


def forest(nodes: TreeNodes, roots: Array, weights: Array) -> Forest:
    """Return the tables of trees, breadth first, so that children of a node are adjacent.

    Leaves have the modes LEAF and their rows of ``weights`` as the feature.
    """
    is_leaf = nodes.mode == MODES.index("LEAF")
    greater = np.isin(nodes.mode, (MODES.index("GT"), MODES.index("GTE")))
    strict = np.isin(nodes.mode, (MODES.index("LT"), MODES.index("GTE")))
    below = np.nextafter(nodes.threshold, nodes.threshold.dtype.type(-np.inf))
    right, left = [
        np.where(greater, *pair) for pair in ((nodes.no, nodes.yes), (nodes.yes, nodes.no))
    ]
    pair = np.full(len(is_leaf), -1)
    rows, count, level, depth = [roots], len(roots), roots, 0
    while len(inner := _distinct(level[~is_leaf[level]])):
        depth += 1
        if depth > len(is_leaf):
            raise ArgumentError("the nodes of a tree form a cycle")
        new = inner[pair[inner] < 0]  # nodes may have several parents
        pair[new] = count + 2 * np.arange(len(new))
        count += 2 * len(new)
        rows.append(np.stack([left[new], right[new]], 1).reshape(-1))
        level = np.concatenate([left[inner], right[inner]])
    node = np.concatenate(rows)
    leaves = is_leaf[node]
    limit = np.where(strict, below, nodes.threshold)[node]
    return Forest(
        np.where(leaves, np.arange(count), pair[node]),
        np.where(leaves, 0, nodes.feature[node]),
        np.where(leaves, np.nan, limit).astype(nodes.threshold.dtype),
        ~leaves & (nodes.missing != greater)[node],
        np.where(leaves, nodes.feature[node], 0),
        weights,
        len(roots),
        depth,
    )


def _distinct(numbers: Array) -> Array:
    """Return the different numbers, sorted. ``np.unique`` imports ``numpy.ma``, which is slow."""
    ordered = np.sort(numbers)
    is_first = np.ones(len(ordered), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    return ordered[is_first]


def evaluate(x: Value, made: Forest, aggregate: str) -> Value:
    """Return the sums, or other aggregates, of the trees' weights for rows (N, feature)."""
    if len(x.shape) != 2:
        raise AxisError(f"trees of {x}: they need the dimensions row and feature")
    over_trees, combine, identity = AGGREGATES[aggregate]
    given = x if x.dtype.kind == "f" else cast(x, "float32")
    used = with_axis(with_axis(as_array(given), 0), 1)
    rows, features = used.dims
    assert rows is not None and features is not None
    width = features.expression
    if not isinstance(width, int) or made.feature.max(initial=0) >= width:
        raise AxisError(f"trees of {x}: they read the feature {made.feature.max(initial=0)}")
    # A row that none leads to is the last one: left + 1 is a row, whatever is compared, so that the
    # nodes of a step need no check.
    node = geon.Axis("node", len(made.left) + 1)
    cells = geon.Axis("cell", rows.expression * width)
    flat = geon.flatten(geon.reorder(used.tensor, [rows, features]), [rows, features], cells)
    first = geon.iota(rows) * width

    def table(values: Array, dtype: Any) -> geon.Tensor:
        return geon.constant(np.append(values, values[:1]).astype(dtype), [node], dtype)

    feature, left = table(made.feature, "int64"), table(made.left, "int64")
    threshold = table(made.threshold, used.dtype)
    goes_right = table(made.nan_right, "bool") if made.nan_right.any() else None

    def step(carry: tuple[geon.Tensor, geon.Tensor]) -> tuple[geon.Tensor, geon.Tensor]:
        at, _ = carry
        value = geon.gather(flat, geon.gather(feature, at, node) + first, cells)
        right = value <= geon.gather(threshold, at, node)
        if goes_right is not None:
            right = geon.logical_or(
                right, geon.logical_and(geon.isnan(value), geon.gather(goes_right, at, node))
            )
        below = geon.gather(left, at, node) + geon.cast(right, "int64")
        return below, geon.any(geon.not_equal(below, at))

    leaf, target = geon.Axis("leaf", len(made.weights)), geon.Axis("target", made.weights.shape[1])
    weights = geon.constant(made.weights, [leaf, target], made.weights.dtype)
    leaves = table(made.leaf, "int64")

    def reached(at: geon.Tensor) -> geon.Tensor:
        last, _ = geon.while_loop(
            lambda carry: carry[1], step, (at, geon.constant(True)), max_steps=max(made.depth, 1)
        )
        return geon.gather(weights, geon.gather(leaves, last, node), leaf)

    tree = geon.Axis("tree", made.trees)

    def at_once() -> geon.Tensor:
        return over_trees(reached(geon.broadcast(geon.iota(tree), [rows, tree])), tree)

    def in_turn() -> geon.Tensor:
        start = geon.broadcast(geon.constant(identity, dtype=weights.dtype), [rows, target])
        total, _ = geon.scan(
            lambda sums, root: (combine(sums, reached(geon.broadcast(root, [rows]))), None),
            start,
            geon.iota(tree),
            over=tree,
        )
        return total

    if isinstance(rows.expression, int):
        result = at_once() if rows.expression <= MAX_ROWS_AT_ONCE else in_turn()
    else:
        few = geon.tensor_size(used.tensor, [rows]) <= MAX_ROWS_AT_ONCE
        result = geon.cond(few, at_once, in_turn)
    if aggregate == "AVERAGE":
        result = result / made.trees
    return array(result, [rows, target])


def _number(trees: Any, nodes: Any, known_trees: Array, size: int) -> Array:
    return np.searchsorted(known_trees, np.asarray(trees)) * size + np.asarray(nodes, np.int64)


def from_lists(lists: dict[str, Any], targets: dict[str, Any], count: int, dtype: Any) -> Forest:
    """Return the trees of attributes ``nodes_...`` and ``target_...``, by (tree, node)."""
    trees, ids = np.asarray(lists["treeids"]), np.asarray(lists["nodeids"], np.int64)
    known_trees, size = _distinct(trees), int(ids.max(initial=0)) + 1
    keys = _number(trees, ids, known_trees, size)
    order = np.argsort(keys)
    sorted_keys = keys[order]
    modes = np.array([MODE_NUMBERS[mode] for mode in lists["modes"]])
    is_leaf = modes == MODES.index("LEAF")

    def find(at_trees: Any, at_nodes: Any) -> Array:
        wanted = _number(at_trees, at_nodes, known_trees, size)
        place = np.minimum(np.searchsorted(sorted_keys, wanted), len(keys) - 1)
        if not np.array_equal(sorted_keys[place], wanted):
            raise ArgumentError("a tree refers to a node that it does not have")
        return order[place]

    yes, no = [
        np.where(is_leaf, 0, find(trees, np.where(is_leaf, ids, np.asarray(lists[name]))))
        for name in ("truenodeids", "falsenodeids")
    ]
    leaves = np.cumsum(is_leaf) - 1
    weights = np.zeros((int(is_leaf.sum()), count), dtype)
    at = leaves[find(targets["treeids"], targets["nodeids"])]
    np.add.at(weights, (at, np.asarray(targets["ids"], np.int64)), targets["weights"])
    missing = lists.get("missing_value_tracks_true") or np.zeros(len(ids))
    nodes = TreeNodes(
        modes, np.where(is_leaf, leaves, lists["featureids"]), np.asarray(lists["values"], dtype),
        yes, no, np.asarray(missing, bool),
    )  # fmt: skip
    nodes.compare_once({})
    children = np.zeros(len(nodes.mode), bool)
    inner = nodes.mode != MODES.index("LEAF")
    children[nodes.yes[inner]] = children[nodes.no[inner]] = True
    roots = np.flatnonzero(~children)
    if len(roots) != len(known_trees):
        raise ArgumentError(f"{len(known_trees)} trees have {len(roots)} roots; each needs one")
    return forest(nodes, roots, weights)


def _split_lists(attributes: dict[str, Any], prefix: str) -> dict[str, Any]:
    """Return attributes with a prefix by the rest of their names; tensors instead of lists."""
    found = {}
    for name, value in attributes.items():
        if name.startswith(prefix):
            key = name.removeprefix(prefix).removesuffix("_as_tensor")
            found[key] = value.array if isinstance(value, HostArray) else value
    return found


def _base(attributes: dict[str, Any]) -> Any:
    found = _split_lists(attributes, "base_").get("values")
    return None if found is None or not len(found) else np.asarray(found)


def tree_regressor(
    x: Value,
    /,
    *,
    aggregate_function: str = "SUM",
    n_targets: int = 1,
    post_transform: str = "NONE",
    **attributes: Any,
) -> Value:
    """Return the aggregated weights of the leaves that rows reach."""
    lists, targets = _split_lists(attributes, "nodes_"), _split_lists(attributes, "target_")
    kind = x.dtype if x.dtype == np.float64 else np.dtype(np.float32)
    made = from_lists(lists, targets, n_targets, kind)
    scores = cast(evaluate(x, made, aggregate_function), "float32")
    base = _base(attributes)
    if base is not None:
        scores = elementwise(geon.add, scores, host(base.astype(np.float32)))
    return transformed(scores, post_transform)


def tree_classifier(
    x: Value,
    /,
    *,
    classlabels_int64s: Sequence[int] = (),
    classlabels_strings: Sequence[str] = (),
    post_transform: str = "NONE",
    **attributes: Any,
) -> tuple[Value, Value]:
    """Return the classes of rows with the largest sum of weights, and these sums."""
    lists, targets = _split_lists(attributes, "nodes_"), _split_lists(attributes, "class_")
    kind = x.dtype if x.dtype == np.float64 else np.dtype(np.float32)
    labels: list[Any] = [*classlabels_strings] or [*classlabels_int64s]
    single = len(labels) == 2 and not any(targets["ids"])  # one score, of the second class
    made = from_lists(lists, targets, 1 if single else len(labels), kind)
    scores = cast(evaluate(x, made, "SUM"), "float32")
    base = _base(attributes)
    if base is not None:
        scores = elementwise(geon.add, scores, host(base[-1:] if single else base, "float32"))
    positive = bool((made.weights >= 0).all())
    return classified(scores, labels, post_transform, positive)


def tree_ensemble(
    x: Value,
    /,
    *,
    aggregate_function: int = 1,
    membership_values: HostArray | None = None,
    n_targets: int = 1,
    post_transform: int = 0,
    tree_roots: Sequence[int],
    **attributes: Any,
) -> Value:
    """Return the aggregated weights of the leaves that rows reach."""
    lists, targets = _split_lists(attributes, "nodes_"), _split_lists(attributes, "leaf_")
    count, leaves = len(lists["featureids"]), len(targets["targetids"])
    weights = np.zeros((leaves, n_targets), targets["weights"].dtype)
    weights[np.arange(leaves), targets["targetids"]] = targets["weights"]
    modes, splits = lists["modes"].astype(np.int64), lists["splits"]
    padding = np.zeros(leaves, np.int64)

    def children(ids: Sequence[int], is_leaf: Sequence[int]) -> Array:
        return np.concatenate([np.where(is_leaf, count + np.asarray(ids), ids), padding])

    missing = np.asarray(lists.get("missing_value_tracks_true") or [0] * count, bool)
    nodes = TreeNodes(
        np.concatenate([modes, padding + MODES.index("LEAF")]),
        np.concatenate([lists["featureids"], np.arange(leaves)]),
        np.concatenate([splits, padding]).astype(splits.dtype),
        children(lists["truenodeids"], lists["trueleafs"]),
        children(lists["falsenodeids"], lists["falseleafs"]),
        np.concatenate([missing, padding.astype(bool)]),
    )
    members: dict[int, Array] = {}
    if membership_values is not None:
        values = membership_values.array
        ends = np.flatnonzero(np.isnan(values))
        starts = np.append(0, ends[:-1] + 1)
        numbers = np.flatnonzero(modes == MODES.index("MEMBER"))
        members = {int(k): values[a:b] for k, a, b in zip(numbers, starts, ends, strict=True)}
    nodes.compare_once(members)
    made = forest(nodes, np.asarray(tree_roots), weights)
    name = ("AVERAGE", "SUM", "MIN", "MAX")[aggregate_function]
    return transformed(evaluate(x, made, name), SCORES[post_transform])


SCORES = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")

ROWS = [
    row("TreeEnsemble", tree_ensemble, domain=ML),
    row("TreeEnsembleRegressor", tree_regressor, domain=ML),
    row("TreeEnsembleClassifier", tree_classifier, domain=ML),
]
