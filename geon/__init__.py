"""geon: tensor expressions with named axes, their derivatives, and the programs made of them.

The order of axes of a result:

- operators, elementwise functions, `dot`, `outer`, `contract` with `over`: those of the first
  tensor, then the new ones of the next, and so on
- reductions: the remaining axes in their order; `out_axes` in the order given
- indexing: the remaining axes in their order
- `gather`: the index's axes in the place of the axis that they pick from
- `reorder`, `broadcast`, `cast_axes`: the order given
- `flatten`: the merged axis in the place of the first of its parts
- `unflatten`: the parts in the place of the whole
- `pad`, `flip`, `concat`, `update`, `scatter`, `sort`, `cumsum`, `softmax` and similar functions:
  the order of the first tensor
- `expand`, `stack`: the new axis at `position`, first by default
- `onehot`: the new axis last
- `segment_sum` and similar functions: the axis of segments in the place of the divided axis
- `bincount`, `histogram`, `quantile`: the remaining axes, then the bins, or the axes of `q`
- `compress`: the bound first, then the remaining axes
- `scan`: its own axis first in stacked values; carries keep their order
- `window`: the positions inside of a window last
- `convolution`: the remaining axes of the first tensor, then of the filter
- `deriv`: the axes of y that are kept, then those of x
"""

from __future__ import annotations

import importlib as _importlib
import logging as _logging
import sys as _sys
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from . import fft, linalg
from .errors import (
    ArgumentError,
    AssignError,
    AxisError,
    CheckpointError,
    ClosedError,
    ConvergenceError,
    DerivativeError,
    DeviceError,
    DeviceMemoryError,
    DTypeError,
    DumpError,
    FeedError,
    GeonError,
    GradientError,
    GuardError,
    IncompleteError,
    IndexRangeError,
    LinearAlgebraError,
    NonFiniteError,
    OrderError,
    PlanError,
    RewriteError,
    SizeError,
    SymbolicError,
    UnavailableError,
)
from .op_graph.axes.axes import Axes, Axis
from .op_graph.axes.length_defaults import lengths
from .op_graph.building.constants import constant
from .op_graph.building.constants import shown_number as _shown_number
from .op_graph.functions.arithmetic import (
    allclose,
    cbrt,
    deg2rad,
    exp2,
    float_power,
    fmax,
    fmin,
    fmod,
    frac,
    heaviside,
    hypot,
    isclose,
    lcm,
    logaddexp,
    logaddexp2,
    logit,
    nan_to_num,
    rad2deg,
    round,
    sinc,
    spherical_j0,
    trunc_divide,
    xlog1py,
    xlogy,
)
from .op_graph.functions.bits import copysign, frexp, ldexp, log2, log10, nextafter, signbit
from .op_graph.functions.composites import (
    L2_norm,
    clip,
    elu,
    gelu,
    interpolation,
    leaky_relu,
    log_softmax,
    logsumexp,
    mean,
    onehot,
    outer,
    relu,
    renorm,
    silu,
    softmax,
    squared_L2,
    std,
    variance,
)
from .op_graph.functions.convolutions import convolution, transposed_convolution
from .op_graph.functions.losses import cross_entropy_binary, cross_entropy_multi
from .op_graph.functions.pooling import average_pool, lp_pool, max_pool
from .op_graph.functions.resizing import diagonal, resize, roll
from .op_graph.op_graph import ComputationOp, Op, Tensor, VoidOp, find
from .op_graph.random.streams import RANDOM_BITS as _RANDOM_BITS  # dumps name its row
from .op_graph.regions.associative_scan import associative_scan
from .op_graph.regions.associative_scan import linear_recurrence as _linear_recurrence
from .op_graph.regions.cases import case_of, cond
from .op_graph.regions.fixed_point import fixed_point
from .op_graph.regions.scan import scan
from .op_graph.regions.while_loop import while_loop
from .op_graph.rows.complex_numbers import angle, as_complex, conj, imag, real
from .op_graph.rows.concatenation import concat, pad, stack
from .op_graph.rows.contraction import contract, dot
from .op_graph.rows.contraction import matmul as _matmul
from .op_graph.rows.effects import SetItem, assign, doall, print, sequential
from .op_graph.rows.effects import run_after as _after
from .op_graph.rows.elementwise import (
    absolute,
    add,
    cast,
    ceil,
    divide,
    equal,
    exp,
    expm1,
    floor,
    floordivide,
    greater,
    greater_equal,
    isfinite,
    isinf,
    isnan,
    less,
    less_equal,
    log,
    log1p,
    maximum,
    minimum,
    mod,
    multiply,
    negative,
    not_equal,
    power,
    reciprocal,
    rsqrt,
    sigmoid,
    sign,
    softplus,
    sqrt,
    square,
    stop_gradient,
    subtract,
    trunc,
    where,
)
from .op_graph.rows.indexing import gather, scatter, take_along
from .op_graph.rows.leaves import (
    Variable,
    iota,
    persistent_tensor,
    placeholder,
    temporary_tensor,
    variable,
)
from .op_graph.rows.logic import (
    bitcast,
    bitwise_and,
    bitwise_not,
    bitwise_or,
    bitwise_xor,
    gcd,
    left_shift,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    right_shift,
)
from .op_graph.rows.movement import (
    broadcast,
    cast_axes,
    expand,
    flatten,
    flip,
    rename,
    reorder,
    unflatten,
)
from .op_graph.rows.reductions import all, any, argmax, argmin, max, min, prod, sum, tensor_size
from .op_graph.rows.slicing import take as _take
from .op_graph.rows.slicing import update
from .op_graph.rows.sort_and_cumulative import (
    argcummax,
    argcummin,
    argsort,
    cummax,
    cummin,
    cumprod,
    cumsum,
    sort,
    top_k,
)
from .op_graph.rows.trigonometry import (
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    cos,
    cosh,
    sin,
    sinh,
    tan,
    tanh,
)
from .op_graph.rows.windows import Window, window
from .op_graph.special.bessel import (
    airy_ai,
    airy_aip,
    airy_bi,
    airy_bip,
    i0,
    i0e,
    i1,
    i1e,
    j0,
    j1,
    k0,
    k0e,
    k1,
    k1e,
    ndtri,
    y0,
    y1,
)
from .op_graph.special.incomplete import betainc, gammainc, gammaincc
from .op_graph.special.series import orthogonal_polynomial, zeta
from .op_graph.special.special_functions import (
    digamma,
    erf,
    erfc,
    erfcx,
    erfinv,
    lgamma,
    log_ndtr,
    ndtr,
    polygamma,
)
from .op_graph.syntax.foreign_names import FUNCTIONS as _FUNCTIONS
from .op_graph.syntax.foreign_names import missing_function as _missing
from .op_graph.syntax.foreign_names import name_missing as _name_missing
from .op_graph.syntax.operators import LATE_BOUND as _LATE_BOUND
from .version import __version__

if _TYPE_CHECKING:
    from . import distributions
    from .frontends.sympy.reader import from_sympy
    from .frontends.sympy.writer import to_sympy
    from .op_graph.autodiff.custom_deriv import custom_deriv
    from .op_graph.autodiff.deriv import deriv, hvp, jvp, vjp
    from .op_graph.autodiff.gradient_check import check_gradients
    from .op_graph.autodiff.jacobians import hessian, jacobian
    from .op_graph.autodiff.remat import checkpoint, remat
    from .op_graph.draws.stream import Random
    from .op_graph.functions.construction import (
        cross,
        diag_embed,
        eye,
        kron,
        linspace,
        logspace,
        repeat,
        tile,
        trace,
        tril,
        triu,
        vander,
    )
    from .op_graph.functions.cumulative import logcumsumexp
    from .op_graph.functions.differences import (
        cdist,
        corrcoef,
        cov,
        cumulative_trapezoid,
        diff,
        trapezoid,
    )
    from .op_graph.functions.missing_values import nanmean, nansum
    from .op_graph.functions.quantiles import (
        aminmax,
        kthvalue,
        lexsort,
        median,
        mode,
        nanmedian,
        nanquantile,
        percentile,
        quantile,
    )
    from .op_graph.functions.searching import bucketize, interp, isin, searchsorted
    from .op_graph.functions.segments import (
        bincount,
        count_nonzero,
        histogram,
        segment_max,
        segment_mean,
        segment_min,
        segment_prod,
        segment_sum,
    )
    from .op_graph.functions.selecting import (
        compress,
        masked_scatter,
        nonzero,
        unique,
        unique_consecutive,
    )
    from .op_graph.text.display import text
    from .op_graph.text.dumps import dumps, loads
    from .transformers.base import Transformer, make_transformer
    from .transformers.computation import Computation
    from .transformers.native.transformer import NativeTransformer
    from .transformers.numpy.transformer import NumPyTransformer

    # For type checkers, which take no other name to be public; a test holds it to the imports.
    __all__ = [
        "ArgumentError", "AssignError", "Axes", "Axis", "AxisError", "CheckpointError",
        "ClosedError", "Computation", "ComputationOp", "ConvergenceError", "DTypeError",
        "DerivativeError", "DeviceError", "DeviceMemoryError", "DumpError", "FeedError",
        "GeonError", "GradientError", "GuardError", "IncompleteError", "IndexRangeError", "L2_norm",
        "LinearAlgebraError", "NativeTransformer", "NonFiniteError", "NumPyTransformer", "Op",
        "OrderError", "PlanError", "Random", "RewriteError", "SetItem", "SizeError",
        "SymbolicError", "Tensor", "Transformer", "UnavailableError", "Variable", "VoidOp",
        "Window", "absolute", "acos", "acosh", "add", "airy_ai", "airy_aip", "airy_bi", "airy_bip",
        "all", "allclose", "aminmax", "angle", "any", "argcummax", "argcummin", "argmax", "argmin",
        "argsort", "as_complex", "asin", "asinh", "assign", "associative_scan", "atan", "atan2",
        "atanh", "average_pool", "betainc", "bincount", "bitcast", "bitwise_and", "bitwise_not",
        "bitwise_or", "bitwise_xor", "broadcast", "bucketize", "case_of", "cast", "cast_axes",
        "cbrt", "cdist", "ceil", "check_gradients", "checkpoint", "clip", "compress", "concat",
        "cond", "conj", "constant", "contract", "convolution", "copysign", "corrcoef", "cos",
        "cosh", "count_nonzero", "cov", "cross", "cross_entropy_binary", "cross_entropy_multi",
        "cummax", "cummin", "cumprod", "cumsum", "cumulative_trapezoid", "custom_deriv", "deg2rad",
        "deriv", "diag_embed", "diagonal", "diff", "digamma", "divide", "doall", "dot", "dumps",
        "elu", "equal", "erf", "erfc", "erfcx", "erfinv", "exp", "exp2", "expand", "expm1", "eye",
        "find", "fixed_point", "flatten", "flip", "float_power", "floor", "floordivide", "fmax",
        "fmin", "fmod", "frac", "frexp", "from_sympy", "gammainc", "gammaincc", "gather", "gcd",
        "gelu", "greater", "greater_equal", "heaviside", "hessian", "histogram", "hvp", "hypot",
        "i0", "i0e", "i1", "i1e", "imag", "interp", "interpolation", "iota", "isclose", "isfinite",
        "isin", "isinf", "isnan", "j0", "j1", "jacobian", "jvp", "k0", "k0e", "k1", "k1e", "kron",
        "kthvalue", "lcm", "ldexp", "leaky_relu", "left_shift", "lengths", "less", "less_equal",
        "lexsort", "lgamma", "linspace", "loads", "log", "log10", "log1p", "log2", "log_ndtr",
        "log_softmax", "logaddexp", "logaddexp2", "logcumsumexp", "logical_and", "logical_not",
        "logical_or", "logical_xor", "logit", "logspace", "logsumexp", "lp_pool",
        "make_transformer", "masked_scatter", "max", "max_pool", "maximum", "mean", "median",
        "min", "minimum", "mod", "mode", "multiply", "nan_to_num", "nanmean", "nanmedian",
        "nanquantile", "nansum", "ndtr", "ndtri", "negative", "nextafter", "nonzero", "not_equal",
        "onehot", "orthogonal_polynomial", "outer", "pad", "percentile", "persistent_tensor",
        "placeholder", "polygamma", "power", "print", "prod", "quantile", "rad2deg", "real",
        "reciprocal", "relu", "remat", "rename", "renorm", "reorder", "repeat", "resize",
        "right_shift", "roll", "round", "rsqrt", "scan", "scatter", "searchsorted", "segment_max",
        "segment_mean", "segment_min", "segment_prod", "segment_sum", "sequential", "sigmoid",
        "sign", "signbit", "silu", "sin", "sinc", "sinh", "softmax", "softplus", "sort",
        "spherical_j0", "sqrt", "square", "squared_L2", "stack", "std", "stop_gradient",
        "subtract", "sum", "take_along", "tan", "tanh", "temporary_tensor", "tensor_size", "text",
        "tile", "to_sympy", "top_k", "trace", "transposed_convolution", "trapezoid", "tril",
        "triu", "trunc", "trunc_divide", "unflatten", "unique", "unique_consecutive", "update",
        "vander", "variable", "variance", "vjp", "where", "while_loop", "window", "xlog1py",
        "xlogy", "y0", "y1", "zeta",
    ]  # fmt: skip

_logging.getLogger(__name__).addHandler(_logging.NullHandler())


def _is_function(name: str, value: _Any) -> bool:
    return name[0] != "_" and callable(value) and not isinstance(value, type)


def _later(module: str, function: str) -> _Any:
    """A function whose module is imported when it is first called."""

    def call(*args: _Any, **named: _Any) -> _Any:
        return getattr(_importlib.import_module(module, __name__), function)(*args, **named)

    return call


# What is not needed by all programs is imported when it is asked for: `import geon` stays cheap.
_LATER = {
    "Random": "op_graph.draws.stream",
    "dumps": "op_graph.text.dumps",
    "loads": "op_graph.text.dumps",
    "check_gradients": "op_graph.autodiff.gradient_check",
    "checkpoint": "op_graph.autodiff.remat",
    "custom_deriv": "op_graph.autodiff.custom_deriv",
    "deriv": "op_graph.autodiff.deriv",
    "hessian": "op_graph.autodiff.jacobians",
    "hvp": "op_graph.autodiff.deriv",
    "jacobian": "op_graph.autodiff.jacobians",
    "jvp": "op_graph.autodiff.deriv",
    "remat": "op_graph.autodiff.remat",
    "vjp": "op_graph.autodiff.deriv",
    "cross": "op_graph.functions.construction",
    "diag_embed": "op_graph.functions.construction",
    "eye": "op_graph.functions.construction",
    "kron": "op_graph.functions.construction",
    "linspace": "op_graph.functions.construction",
    "logspace": "op_graph.functions.construction",
    "repeat": "op_graph.functions.construction",
    "tile": "op_graph.functions.construction",
    "trace": "op_graph.functions.construction",
    "tril": "op_graph.functions.construction",
    "triu": "op_graph.functions.construction",
    "vander": "op_graph.functions.construction",
    "cdist": "op_graph.functions.differences",
    "corrcoef": "op_graph.functions.differences",
    "cov": "op_graph.functions.differences",
    "cumulative_trapezoid": "op_graph.functions.differences",
    "diff": "op_graph.functions.differences",
    "trapezoid": "op_graph.functions.differences",
    "logcumsumexp": "op_graph.functions.cumulative",
    "nanmean": "op_graph.functions.missing_values",
    "nansum": "op_graph.functions.missing_values",
    "aminmax": "op_graph.functions.quantiles",
    "kthvalue": "op_graph.functions.quantiles",
    "lexsort": "op_graph.functions.quantiles",
    "median": "op_graph.functions.quantiles",
    "mode": "op_graph.functions.quantiles",
    "nanmedian": "op_graph.functions.quantiles",
    "nanquantile": "op_graph.functions.quantiles",
    "percentile": "op_graph.functions.quantiles",
    "quantile": "op_graph.functions.quantiles",
    "bucketize": "op_graph.functions.searching",
    "interp": "op_graph.functions.searching",
    "isin": "op_graph.functions.searching",
    "searchsorted": "op_graph.functions.searching",
    "bincount": "op_graph.functions.segments",
    "count_nonzero": "op_graph.functions.segments",
    "histogram": "op_graph.functions.segments",
    "segment_max": "op_graph.functions.segments",
    "segment_mean": "op_graph.functions.segments",
    "segment_min": "op_graph.functions.segments",
    "segment_prod": "op_graph.functions.segments",
    "segment_sum": "op_graph.functions.segments",
    "compress": "op_graph.functions.selecting",
    "masked_scatter": "op_graph.functions.selecting",
    "nonzero": "op_graph.functions.selecting",
    "unique": "op_graph.functions.selecting",
    "unique_consecutive": "op_graph.functions.selecting",
    "text": "op_graph.text.display",
    "from_sympy": "frontends.sympy.reader",
    "to_sympy": "frontends.sympy.writer",
    "Transformer": "transformers.base",
    "make_transformer": "transformers.base",
    "Computation": "transformers.computation",
    "NativeTransformer": "transformers.native.transformer",
    "NumPyTransformer": "transformers.numpy.transformer",
}

# Functions that operators, methods and derivative rules call, and modules above theirs define.
_LATE_BOUND.update(
    broadcast=broadcast,
    cast=cast,
    conj=conj,
    deriv=_later(".op_graph.autodiff.deriv", "deriv"),
    dot=dot,
    follows=_after,
    linear_recurrence=_linear_recurrence,
    matmul=_matmul,
    max=max,
    mean=mean,
    min=min,
    number=_shown_number,
    real=real,
    rename=rename,
    reorder=reorder,
    scan=scan,
    sum=sum,
    take=_take,
    # HTML's table of names is read for the first notebook that asks.
    html=_later(".op_graph.text.display", "tensor_html"),
    numpy=_later(".op_graph.functions.numpy_api", "numpy_function"),
    ufunc=_later(".op_graph.functions.numpy_api", "ufunc_cure"),
    is_public=lambda name: name in _LATER or callable(globals().get(name)),
)
# Derivative rules of regions and of users; only derivatives import them.
for _module, _rules in {
    "autodiff.custom_deriv": "custom_jvp custom_vjp",
    "regions.cases_deriv": "case_jvp case_vjp",
    "regions.loop_deriv": "fixed_point_jvp fixed_point_vjp loop_jvp",
    "regions.scan_deriv": "scan_vjp",
    "regions.while_deriv": "while_vjp",
}.items():
    for _rule in _rules.split():
        _LATE_BOUND[_rule] = _later(f".op_graph.{_module}", _rule)
# IPython asks errors for it. Not in errors.py, which is part of written modules.
GeonError._render_traceback_ = _later(".op_graph.core.notebook_errors", "render_error")  # type: ignore[attr-defined]  # see above
_METHODS = ("op_graph.functions", "op_graph.autodiff")  # of ops in other libraries
for _cls in (Tensor, VoidOp):
    _name_missing(_cls, [name for name, value in globals().items() if _is_function(name, value)])
    _name_missing(_cls, [name for name, path in _LATER.items() if path.startswith(_METHODS)])


def __getattr__(name: str) -> _Any:
    if name == "distributions":
        return _importlib.import_module(".distributions", __name__)
    if name not in _LATER:
        raise _missing(_sys.modules[__name__], name, _FUNCTIONS)
    value = getattr(_importlib.import_module(f".{_LATER[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER, "distributions"})
