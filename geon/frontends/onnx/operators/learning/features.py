"""Linear models, support vectors, and encoders of features (ai.onnx.ml)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np

import geon

from .....errors import ArgumentError, AxisError
from ....positional.elementwise import elementwise
from ....positional.indexing import gather
from ....positional.movement import Part, concat, pad, slices
from ....positional.products import matmul
from ....positional.programs import cast
from ....positional.reductions import reduce
from ....positional.reshaping import reshape, unsqueeze
from ....positional.values import HostArray, Value, array, as_array, host, known, new_axis
from ...table import ML, row
from ..reductions import absolute_sum
from .scores import classified, labelled, transformed


def features(x: Value) -> Value:
    """Return rows of features as floats; raise ``AxisError`` if they are no matrix."""
    if len(x.shape) != 2 or not isinstance(x.shape[1], int):
        raise AxisError(f"{x}: a model needs the dimensions row and feature, the second one known")
    return x if x.dtype.kind == "f" else cast(x, "float32")


def _linear(x: Value, coefficients: Sequence[float], intercepts: Sequence[float]) -> Value:
    given = features(x)
    matrix = np.reshape(coefficients, (-1, given.shape[1])).T
    result = matmul(given, host(matrix, given.dtype))
    return elementwise(geon.add, result, host(intercepts, given.dtype)) if intercepts else result


def linear_classifier(
    x: Value,
    /,
    *,
    classlabels_ints: Sequence[int] = (),
    classlabels_strings: Sequence[str] = (),
    coefficients: Sequence[float],
    intercepts: Sequence[float] = (),
    post_transform: str = "NONE",
) -> tuple[Value, Value]:
    """Return the classes of rows with the largest linear function, and these scores."""
    labels: list[Any] = [*classlabels_strings] or [*classlabels_ints]
    scores = _linear(x, coefficients, intercepts)
    return classified(scores, labels, post_transform, positive=False)


def linear_regressor(
    x: Value,
    /,
    *,
    coefficients: Sequence[float],
    intercepts: Sequence[float] = (),
    post_transform: str = "NONE",
) -> Value:
    """Return linear functions of rows."""
    return transformed(_linear(x, coefficients, intercepts), post_transform)


KERNELS: dict[str, Callable[..., geon.Tensor]] = {
    "LINEAR": lambda dot, gamma, start, degree: dot,
    "POLY": lambda dot, gamma, start, degree: (dot * gamma + start) ** degree,
    "SIGMOID": lambda dot, gamma, start, degree: geon.tanh(dot * gamma + start),
}


def kernel(
    x: Value,
    count: int,
    kernel_params: Sequence[float] = (),
    kernel_type: str = "LINEAR",
    support_vectors: Sequence[float] = (),
) -> Value:
    """Return the kernel of rows and ``count`` vectors; parameters are gamma, start and degree."""
    gamma, start, degree = [*kernel_params] or [0.0, 0.0, 0.0]
    vectors = np.reshape(support_vectors, (count, -1))
    known_vectors = host(vectors, x.dtype)
    if kernel_type == "RBF":
        squares = elementwise(lambda a, b: geon.square(a - b), unsqueeze(x, [1]), known_vectors)
        distances = reduce(geon.sum, squares, [2], keep=False)
        return elementwise(lambda d: geon.exp(-gamma * d), distances)
    products = matmul(x, host(vectors.T, x.dtype))
    return elementwise(lambda d: KERNELS[kernel_type](d, gamma, start, degree), products)


def svm_regressor(
    x: Value,
    /,
    *,
    coefficients: Sequence[float] = (),
    n_supports: int = 0,
    one_class: int = 0,
    post_transform: str = "NONE",
    rho: Sequence[float] = (),
    **vectors: Any,
) -> Value:
    """Return the regression by support vectors, or by a linear function without them."""
    given = features(x)
    if n_supports:
        given = kernel(given, n_supports, **vectors)
    result = _linear(given, coefficients, rho[:1])
    if one_class:
        result = elementwise(lambda s: geon.cast(geon.where(s > 0, 1, -1), s.dtype), result)
    return transformed(result, post_transform)


def svm_classifier(
    x: Value,
    /,
    *,
    classlabels_ints: Sequence[int] = (),
    classlabels_strings: Sequence[str] = (),
    coefficients: Sequence[float] = (),
    post_transform: str = "NONE",
    prob_a: Sequence[float] = (),
    prob_b: Sequence[float] = (),
    rho: Sequence[float] = (),
    vectors_per_class: Sequence[int] = (),
    **vectors: Any,
) -> tuple[Value, Value]:
    """Return the classes of rows with the most votes of pairs of classes, and the scores.

    Scores are those of the pairs, or for two classes with ``prob_a`` probabilities.
    """
    labels: list[Any] = [*classlabels_strings] or [*classlabels_ints]
    given = features(x)
    if not vectors_per_class:
        scores = _linear(given, coefficients, rho[:1])
        return classified(scores, labels, post_transform, min(coefficients) >= 0)
    count, total = len(vectors_per_class), sum(vectors_per_class)
    weights = np.reshape(coefficients, (count - 1, total))
    owner = np.repeat(np.arange(count), vectors_per_class)
    pairs = list(combinations(range(count), 2))
    columns = [
        np.where(owner == i, weights[j - 1], 0) + np.where(owner == j, weights[i], 0)
        for i, j in pairs
    ]
    values = kernel(given, total, **vectors)
    scores = elementwise(
        geon.add, matmul(values, host(np.transpose(columns), given.dtype)), host(rho, given.dtype)
    )
    first, second = (np.eye(count)[[pair[k] for pair in pairs]] for k in (0, 1))
    wins = elementwise(lambda s: geon.cast(s > 0, s.dtype), scores)
    losses = elementwise(lambda w: 1 - w, wins)
    votes = elementwise(
        geon.add,
        matmul(wins, host(first, given.dtype)),
        matmul(losses, host(second, given.dtype)),
    )
    if prob_a:
        if count != 2:
            raise ArgumentError(
                f"probabilities of {count} classes by coupling of pairs are not supported; only "
                "those of two classes are"
            )
        second_share = elementwise(
            lambda s: geon.clip(geon.sigmoid(s * prob_a[0] + prob_b[0]), 1e-7, 1 - 1e-7), scores
        )
        scores = concat([elementwise(lambda p: 1 - p, second_share), second_share], 1)
    elif count == 2:
        scores = concat([elementwise(geon.negative, scores), scores], 1)
    number = reduce(geon.argmax, votes, [1], keep=False)
    return labelled(number, labels), transformed(scores, post_transform)


def scaler(x: Value, /, *, offset: Sequence[float] = (), scale: Sequence[float] = ()) -> Value:
    """Return features less an offset, times a scale, in float32."""
    moved = elementwise(geon.subtract, cast(x, "float32"), host(offset or [0.0], "float32"))
    return elementwise(geon.multiply, moved, host(scale or [1.0], "float32"))


NORMS: dict[str, Callable[..., geon.Tensor]] = {
    "MAX": lambda t, axes: geon.max(geon.absolute(t), axes),
    "L1": absolute_sum,
    "L2": geon.L2_norm,
}


def normalizer(x: Value, /, *, norm: str = "MAX") -> Value:
    """Return rows over their norm, in float32."""
    given = cast(x, "float32")
    sizes = reduce(NORMS[norm], given, [len(x.shape) - 1])
    return elementwise(lambda t, n: t / geon.maximum(n, 1e-30), given, sizes)


def binarizer(x: Value, /, *, threshold: float = 0.0) -> Value:
    """Return 1 for features above the threshold, else 0."""
    return elementwise(lambda t: geon.cast(t > threshold, t.dtype), x)


def imputer(
    x: Value,
    /,
    *,
    imputed_value_floats: Sequence[float] = (),
    imputed_value_int64s: Sequence[int] = (),
    replaced_value_float: float = 0.0,
    replaced_value_int64: int = 0,
) -> Value:
    """Return features in which one value, or NaN, is replaced."""
    floats = x.dtype.kind == "f"
    values = imputed_value_floats if floats else imputed_value_int64s
    old = replaced_value_float if floats else replaced_value_int64

    def replace(t: geon.Tensor, new: geon.Tensor) -> geon.Tensor:
        return geon.where(geon.isnan(t) if old != old else geon.equal(t, old), new, t)

    return elementwise(replace, x, host(values, x.dtype))


def extract_features(x: Value, index: Value, /) -> Value:
    """Return elements at indices along the last position, a matrix also of a vector."""
    found = gather(x, reshape(index, [-1]), len(x.shape) - 1)
    return unsqueeze(found, [0]) if len(x.shape) == 1 else found


def join_features(*values: Value, inputdimensions: Sequence[int] = ()) -> Value:
    """Return matrices side by side, each cut or filled with zeros to a number of columns."""
    parts = []
    for value, count in zip(values, inputdimensions, strict=True):
        matrix = unsqueeze(value, [1]) if len(value.shape) == 1 else value
        cut = slices(matrix, {1: Part(0, count)})
        parts.append(cast(pad(cut, [(0, 0), (0, count - cut.shape[1])], "constant", 0), "float32"))
    return concat(parts, 1)


def one_hot_encoder(
    x: Value,
    /,
    *,
    cats_int64s: Sequence[int] = (),
    cats_strings: Sequence[str] = (),
) -> Value:
    """Return 1 for the category of each element along a new position, else 0; texts are known."""
    if cats_strings:
        kinds = np.array(cats_strings, object)
        return host(known(x, "a text")[..., None] == kinds, "float32")
    kinds_of = host(cats_int64s, x.dtype)
    wide = unsqueeze(x, [len(x.shape)])
    return elementwise(lambda t, c: geon.cast(geon.equal(t, c), "float32"), wide, kinds_of)


def lookup(x: Value, keys: Any, values: Any, default: Any) -> Value:
    """Return the value of the key that each element equals; texts must be known."""
    keys, values = np.asarray(keys), np.asarray(values)
    if keys.dtype.kind in "OU" or values.dtype.kind in "OU":
        pairs = dict(zip(keys.tolist(), values.tolist(), strict=True))
        data = known(x, "a label that is a text, or has one,")
        kind = object if values.dtype.kind in "OU" else values.dtype
        found = np.array([pairs.get(each, default) for each in data.reshape(-1).tolist()], kind)
        return host(found.reshape(data.shape))
    line = new_axis(len(keys), "key", ())
    row_of = array(geon.constant(keys.astype(x.dtype), [line], x.dtype), [line])

    def same(t: geon.Tensor, k: geon.Tensor) -> geon.Tensor:
        both = geon.equal(t, k)
        if t.dtype.kind != "f":
            return both
        return geon.logical_or(both, geon.logical_and(geon.isnan(t), geon.isnan(k)))

    hits = elementwise(same, unsqueeze(x, [len(x.shape)]), row_of)
    number = reduce(geon.argmax, cast(hits, "int32"), [len(x.shape)], keep=False)
    any_hit = reduce(geon.any, hits, [len(x.shape)], keep=False)
    found_values = gather(as_array(host(values)), number, 0)
    return elementwise(
        lambda h, v, d: geon.where(h, v, d), any_hit, found_values, host(default, values.dtype)
    )


def label_encoder(x: Value, /, **attributes: Any) -> Value:
    """Return the value of the key that each element equals, else the default."""
    given = {k: v.array if isinstance(v, HostArray) else v for k, v in attributes.items()}
    kinds = ("tensor", "strings", "int64s", "floats")
    keys, values = (
        next((k, given[f"{what}_{k}"]) for k in kinds if f"{what}_{k}" in given)
        for what in ("keys", "values")
    )
    table: Any = values[1]
    if values[0] in ("int64s", "floats"):
        table = np.asarray(table, {"int64s": np.int64, "floats": np.float32}[values[0]])
    default = given.get("default_" + values[0].removesuffix("s"))
    if isinstance(default, np.ndarray):
        default = default.reshape(-1)[0]
    return lookup(x, keys[1], table, default)


def two_way(keys: str, values: str | None) -> Callable[..., Value]:
    """Return the builder of a map between texts and integers, in the direction of the input."""

    def build(
        x: Value, /, *, default_int64: int = -1, default_string: str = "_Unused", **of: Any
    ) -> Value:
        texts = of[keys]
        numbers = np.arange(len(texts)) if values is None else np.asarray(of[values], np.int64)
        if x.dtype == object:
            return lookup(x, np.array(texts, object), numbers, default_int64)
        return lookup(x, numbers, np.array(texts, object), default_string)

    return build


def cast_map(
    x: Any, /, *, cast_to: str = "TO_FLOAT", map_form: str = "DENSE", max_map: int = 1
) -> Value:
    """Return the values of a known map as a row, by their keys."""
    keys = sorted(x)
    numbers = [x[k] for k in keys]
    if map_form == "SPARSE":
        numbers = [x.get(k, 0) for k in range(max_map)]
    if cast_to == "TO_STRING":
        return host(np.array([[str(n) for n in numbers]], object))
    return host(np.array([numbers]), {"TO_FLOAT": "float32", "TO_INT64": "int64"}[cast_to])


def vectorize(
    x: Any, /, *, int64_vocabulary: Sequence[int] = (), string_vocabulary: Sequence[str] = ()
) -> Value:
    """Return the values of a known map as a row, in the order of a vocabulary; 0 if missing."""
    words: list[Any] = [*string_vocabulary] or [*int64_vocabulary]
    return host(np.array([[x.get(word, 0) for word in words]], np.float32))


def zip_map(x: Value, /) -> Value:
    """Return scores (N, class) as they are; the file's maps would have the labels as keys."""
    return x


ROWS = [
    row("LinearClassifier", linear_classifier, domain=ML),
    row("LinearRegressor", linear_regressor, domain=ML),
    row("SVMRegressor", svm_regressor, domain=ML),
    row("SVMClassifier", svm_classifier, domain=ML),
    row("Scaler", scaler, domain=ML),
    row("Normalizer", normalizer, domain=ML),
    row("Binarizer", binarizer, domain=ML),
    row("Imputer", imputer, domain=ML),
    row("ArrayFeatureExtractor", extract_features, domain=ML),
    row("FeatureVectorizer", join_features, domain=ML),
    row("OneHotEncoder", one_hot_encoder, domain=ML),
    row("LabelEncoder", label_encoder, 2, domain=ML),
    row("LabelEncoder", two_way("classes_strings", None), 1, 1, domain=ML),
    row("CategoryMapper", two_way("cats_strings", "cats_int64s"), domain=ML),
    row("CastMap", cast_map, domain=ML),
    row("DictVectorizer", vectorize, domain=ML),
    row("ZipMap", zip_map, domain=ML),
]
