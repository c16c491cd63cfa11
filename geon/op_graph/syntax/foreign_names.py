"""Names of other libraries' functions and attributes, each with its replacement in geon.

A name that geon lacks is looked up here, and the error says what to write.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from ..op_graph import Op

# Functions of other libraries, used as geon.NAME.
FUNCTIONS = {
    **{name: f'"{name}", a string' for name in ("bool", "bfloat16", "float16", "float32")},
    **{name: f'"{name}", a string' for name in ("float8_e4m3fn", "float8_e5m2")},
    **{name: f'"{name}", a string' for name in ("float64", "int8", "int16", "int32", "int64")},
    **{name: f'"{name}", a string' for name in ("uint8", "uint16", "uint32", "uint64")},
    **{name: f'"{name}", a string' for name in ("complex64", "complex128")},
    **{name: f"geon.fft.{name}(x, A)" for name in ("ifft", "rfft", "irfft", "fftfreq", "rfftfreq")},
    **{name: f"geon.fft.{name}(x, A)" for name in ("fftshift", "ifftshift")},
    **{name: f"geon.fft.{name}(x, [A, B])" for name in ("fftn", "ifftn", "rfftn", "irfftn")},
    "fft2": "geon.fft.fftn(x, [A, B])",
    "fftconvolve": "geon.fft.convolve(x, y, A)",
    "complex": "geon.as_complex(x, y), or x + 1j * y",
    "conjugate": "geon.conj(x)",
    "view_as_real": "geon.stack([geon.real(x), geon.imag(x)], C)",
    **{
        name: f"geon.linalg.{name}(x, [I, J])"
        for name in ("cholesky det eigh eigvalsh expm inv matrix_rank pinv qr slogdet svd").split()
    },
    **{
        name: f"geon.linalg.{name}(a, b, [I, J])" for name in ("lstsq", "solve", "triangular_solve")
    },
    "abs": "geon.absolute(x), or abs(x)",
    "amax": "geon.max(x, A)",
    "amin": "geon.min(x, A)",
    "append": "geon.concat([x, y], A)",
    "arange": "geon.iota(axis), which counts along an axis",
    "arccos": "geon.acos(x)",
    "arccosh": "geon.acosh(x)",
    "arcsin": "geon.asin(x)",
    "arcsinh": "geon.asinh(x)",
    "arctan": "geon.atan(x)",
    "arctan2": "geon.atan2(y, x)",
    "arctanh": "geon.atanh(x)",
    "array": "geon.constant(values, axes=[...])",
    "as_tensor": "geon.constant(values, axes=[...])",
    "asarray": "geon.constant(values, axes=[...])",
    "astype": "geon.cast(x, dtype), or x.cast(dtype)",
    "average": "geon.mean(x, A)",
    "avg_pool2d": (
        "geon.average_pool(x, {H: geon.Window(2, stride=2), W: geon.Window(2, stride=2)})"
    ),
    "avg_pool": "geon.average_pool(x, {T: geon.Window(2, stride=2)})",
    "axes": "x.axes, and geon.Axes(...) for new ones",
    "backward": "geon.deriv(loss, variables), which gives the derivatives as expressions",
    "bmm": "geon.dot(x, y, over=A): other axes that both have stay, as a batch does",
    "broadcast_to": "geon.broadcast(x, axes)",
    "cat": "geon.concat([x, y], A)",
    "clamp": "geon.clip(x, low, high)",
    "compile": "transformer.computation(results, *placeholders)",
    "concatenate": "geon.concat([x, y], A)",
    "conv": "geon.convolution(x, w, {T: geon.Window(R)})",
    "conv1d": "geon.convolution(x, w, {T: geon.Window(R)})",
    "conv2d": "geon.convolution(x, w, {H: geon.Window(R), W: geon.Window(S)})",
    "conv_transpose": "geon.transposed_convolution(x, w, {H: geon.Window(R)})",
    "convolve": "geon.convolution(x, w, {T: geon.Window(R)})",
    "cross_entropy": "geon.cross_entropy_multi(geon.softmax(scores, A), wanted)",
    "detach": "geon.stop_gradient(x)",
    "device_put": "transformer.set(variable, array)",
    "diag": (
        "geon.diagonal(x, [A, B]) for the diagonal of a matrix, and geon.onehot(geon.iota(A), B) "
        "* v for the matrix of a vector over A"
    ),
    "div": "geon.divide(x, y), or x / y",
    "divmod": "divmod(x, y)",
    "dropout": "geon.where(stream.bernoulli(x.axes, p=keep) > 0, x / keep, 0), of a geon.Random",
    "dtype": "x.dtype",
    "einsum": "geon.contract([x, y], [A, B]), whose second argument are the axes to keep, by name",
    "embedding": "geon.gather(table, tokens, axis)",
    "expand_dims": "geon.expand(x, axis)",
    "expit": "geon.sigmoid(x)",
    "fabs": "geon.absolute(x), or abs(x)",
    "floor_divide": "geon.floordivide(x, y), or x // y",
    "fori_loop": "geon.scan(step, init, xs, over=T)",
    "full": "geon.constant(value, axes=[...])",
    "full_like": "geon.constant(value, axes=x.axes)",
    "function": "transformer.computation(results, *placeholders)",
    "grad": "geon.deriv(y, x)",
    "gradcheck": "geon.check_gradients(f, {x: array})",
    "check_grads": "geon.check_gradients(f, {x: array})",
    "gradient": "geon.deriv(y, x)",
    "gradients": "geon.deriv(y, x)",
    "hstack": "geon.concat([x, y], A)",
    "identity": "geon.eye(A, B)",
    "inner": "geon.dot(x, y)",
    "Input": "geon.placeholder(axes)",
    "input": "geon.placeholder(axes)",
    "interpolate": "geon.resize(x, {H: 64, W: 64})",
    "invert": "geon.bitwise_not(x), or ~x",
    "jacfwd": "geon.jacobian(y, x)",
    "jacrev": "geon.jacobian(y, x)",
    "jit": "transformer.computation(results, *placeholders)",
    "layer_norm": "(x - geon.mean(x, A)) / geon.sqrt(geon.variance(x, A) + epsilon)",
    "load": "transformer.restore(path)",
    "log_sum_exp": "geon.logsumexp(x, A)",
    "manual_seed": "geon.Random(seed), whose methods draw",
    "matmul": "geon.dot(x, y, over=A), or x @ y",
    "matrix_transpose": "geon.reorder(x, axes); operations match axes by name",
    "max_pool2d": "geon.max_pool(x, {H: geon.Window(2, stride=2), W: geon.Window(2, stride=2)})",
    "moveaxis": "geon.reorder(x, axes)",
    "mse_loss": "geon.mean(geon.square(y - t))",
    "mul": "geon.multiply(x, y), or x * y",
    "ndim": "len(x.axes)",
    "neg": "geon.negative(x), or -x",
    "newaxis": "geon.expand(x, axis)",
    "nll_loss": "geon.cross_entropy_multi(geon.softmax(scores, A), wanted)",
    "nn": "plain functions of variables: geon.dot(x, w) + b is a layer",
    "no_grad": "geon.stop_gradient(x)",
    "norm": "geon.L2_norm(x, A)",
    "one_hot": "geon.onehot(x, axis)",
    "ones": "geon.constant(1.0, axes=[...])",
    "ones_like": "geon.constant(1.0, axes=x.axes)",
    "optim": "geon.assign(w, w - rate * geon.deriv(loss, w)) is a step",
    "Parameter": "geon.Variable(axes, initial_value=...)",
    "parameter": "geon.Variable(axes, initial_value=...)",
    "permute": "geon.reorder(x, axes)",
    "pow": "geon.power(x, y), or x ** y",
    "rand": "geon.Random(seed).uniform(axes)",
    "randint": "geon.floor(stream.uniform(axes) * n), of a geon.Random",
    "randn": "geon.Random(seed).normal(axes)",
    "random": "geon.Random(seed), whose methods draw",
    "ravel": "geon.flatten(x)",
    "reduce_max": "geon.max(x, A)",
    "reduce_mean": "geon.mean(x, A)",
    "reduce_sum": "geon.sum(x, A)",
    "remainder": "geon.mod(x, y), or x % y",
    "reshape": "geon.flatten(x, axes, axis) and geon.unflatten(x, axis, axes)",
    "save": "transformer.save(path)",
    "scatter_reduce": 'geon.scatter(x, positions, values, A, mode="max"), or one of its modes',
    "select": "geon.where(condition, x, y)",
    "shape": "x.axes, or x.shape for the lengths",
    "size": "geon.tensor_size(x)",
    "split": "slices: x[{A: slice(0, n)}]",
    "squeeze": "x[{A: 0}]",
    "standard_deviation": "geon.std(x, A)",
    "sub": "geon.subtract(x, y), or x - y",
    "swapaxes": "geon.reorder(x, axes)",
    "swish": "geon.silu(x)",
    "take": "geon.gather(x, positions, A)",
    "take_along_axis": "geon.take_along(x, index, A)",
    "tensor": "geon.constant(values, axes=[...])",
    "tensordot": "geon.dot(x, y, over=axes)",
    "transpose": "geon.reorder(x, axes); operations match axes by name and need no transpose",
    "true_divide": "geon.divide(x, y), or x / y",
    "unfold": "geon.window(x, {T: geon.Window(R)})",
    "unsqueeze": "geon.expand(x, axis)",
    "unstack": "slices: [x[{A: i}] for i in range(n)]",
    "value_and_grad": "transformer.computation([loss, *geon.deriv(loss, variables)], ...)",
    "var": "geon.variance(x, A)",
    "vmap": "nothing: give a tensor one more axis, and all that is made of it has that axis",
    "vstack": "geon.concat([x, y], A)",
    "zeros": "geon.constant(0.0, axes=[...])",
    "zeros_like": "geon.constant(0.0, axes=x.axes)",
    "Adam": "neon.Adam, of geon.frontends.neon",
    "argpartition": "geon.top_k(x, k, A)",
    "argwhere": "geon.nonzero(x, bound), whose positions are by the names of axes",
    "array_equal": "geon.all(x == y)",
    "atleast_1d": "geon.expand(x, axis)",
    "crossentropy": "geon.cross_entropy_multi(geon.softmax(scores, A), wanted)",
    "cumlogsumexp": "geon.logcumsumexp(x, A)",
    "custom_gradient": "geon.custom_deriv(rule), a decorator",
    "custom_jvp": "geon.custom_deriv(rule), a decorator; forward mode transposes the rule",
    "custom_vjp": "geon.custom_deriv(rule), a decorator",
    "digitize": 'geon.bucketize(x, boundaries, side="right")',
    "dstack": "geon.concat([x, y], A)",
    "extract": "geon.compress(x, mask, bound)",
    "erf_inv": "geon.erfinv(x)",
    "float": 'geon.cast(x, "float32")',
    "flatnonzero": "geon.nonzero(x, bound)",
    "gammaln": "geon.lgamma(x)",
    "GradientTape": "geon.deriv(y, x), of the expression",
    "histc": "geon.histogram(x, bins, low, high)",
    "index_add": 'geon.scatter(x, index, value, A, mode="add")',
    "index_put": "geon.scatter(x, {A: i, B: j}, value)",
    "index_select": "geon.gather(x, index, A)",
    "int": 'geon.cast(x, "int64")',
    "lax": "geon.scan, geon.while_loop, geon.cond and geon.case_of",
    "Linear": "geon.dot(x, w) + b, or neon.Affine of geon.frontends.neon",
    "log_sigmoid": "-geon.softplus(-x)",
    "logsigmoid": "-geon.softplus(-x)",
    "masked_fill": "geon.where(mask, value, x)",
    "masked_select": "geon.compress(x, mask, bound)",
    "meshgrid": "geon.iota(A) and geon.iota(B), which meet by name",
    "Module": "a class of your own, or neon.Layer of geon.frontends.neon",
    "multi_dot": "geon.contract([x, y, z], [A, B])",
    "normalize": "x / geon.L2_norm(x, A)",
    "pi": "math.pi",
    "ptp": "geon.max(x, A) - geon.min(x, A)",
    "relu6": "geon.clip(x, 0, 6)",
    "rot90": "geon.flip(x, A), and geon.reorder for the order of axes",
    "select_n": "geon.where(condition, x, y)",
    "Session": "geon.make_transformer()",
    "switch": "geon.case_of(index, branches)",
    "tensor_scatter_nd_update": "geon.scatter(x, index, value, A)",
    "topk": "geon.top_k(x, k, A)",
    "vdot": "geon.dot(x, y)",
    "vectorize": "nothing: give a tensor one more axis, and all that is made of it has that axis",
}

# Functions that geon lacks, with workarounds.
_NUMPY = "compute it with NumPy from results of a computation"
LACKING = {
    "eig": _NUMPY,
}

_LABELS = (
    'x[{"dim": position}]: tensors have positions along their axes, and no labels; look these up '
    "outside of the function"
)
# Attributes of tensors of other libraries, used as x.NAME, besides the functions above.
ATTRIBUTES = {
    "T": "geon.reorder(x, axes); operations match axes by name and need no transpose",
    "at": "geon.update(x, value, position), or geon.scatter for an index tensor",
    "assign": "geon.assign(variable, value)",
    "assign_add": "geon.assign(variable, variable + value)",
    "astype": "x.cast(dtype)",
    "backward": "geon.deriv(loss, variables), which gives the derivatives as expressions",
    "clone": "nothing: tensors are values, which no one changes",
    "contiguous": "nothing: geon chooses how values lie in memory",
    "copy": "nothing: tensors are values, which no one changes",
    "cpu": "geon.make_transformer(name), which chooses the device",
    "cuda": "geon.make_transformer(name), which chooses the device",
    "data": "transformer.get(variable), or transformer.computation(x, *placeholders)(*values)",
    "dataset": (
        "geon.where(condition, x, y) for xr.where, or tree[path] + x: a tensor meets one array of "
        "a tree, not all of them"
    ),
    "detach": "geon.stop_gradient(x)",
    "device": "the transformer, which is chosen when a computation is made",
    "dim": "len(x.axes)",
    "dims": "x.axes.names",
    "double": 'x.cast("float64")',
    "eval": "transformer.computation(x, *placeholders)(*values)",
    "fill": "geon.assign(variable, value)",
    "float": 'x.cast("float32")',
    "get": "transformer.get(variable)",
    "grad": "geon.deriv(y, x)",
    "gradcheck": "geon.check_gradients(f, {x: array})",
    "check_grads": "geon.check_gradients(f, {x: array})",
    "half": 'x.cast("float16")',
    "int": 'x.cast("int32")',
    "index": "geon.argmax(x == value)",
    "item": "transformer.computation(x, *placeholders)(*values)",
    "length": "the length of one of its axes: x.axes[name].length",
    "long": 'x.cast("int64")',
    "nbytes": "geon.tensor_size(x) * x.dtype.itemsize",
    "nonzero": "geon.nonzero(x, bound), or geon.where(condition, x, y)",
    "numel": "geon.tensor_size(x)",
    "numpy": "transformer.computation(x, *placeholders)(*values)",
    "ravel": "geon.flatten(x)",
    "requires_grad": "geon.Variable(..., trainable=...)",
    "set": "transformer.set(variable, array)",
    "sizes": "x.shape",
    "sel": _LABELS,
    "isel": 'x[{"dim": position}]: tensors have positions along their axes, and no labels',
    "coords": _LABELS,
    "groupby": "geon.segment_mean(x, groups, axis) and its like, with the number of each group",
    "rolling": "geon.window(x, {T: geon.Window(R)})",
    "resample": "geon.window(x, {T: geon.Window(R, stride=R)})",
    "shift": "geon.roll(x, {T: 1})",
    "fillna": "geon.where(geon.isnan(x), value, x)",
    "interp": _LABELS,
    "drop_vars": _LABELS,
    "assign_coords": _LABELS,
    "to": "x.cast(dtype)",
    "tolist": "transformer.computation(x, *placeholders)(*values)",
    "value": "transformer.get(variable), or transformer.computation(x, *placeholders)(*values)",
    "values": "transformer.get(variable), or transformer.computation(x, *placeholders)(*values)",
    "view": "geon.flatten(x, axes, axis) and geon.unflatten(x, axis, axes)",
}

# Names of torch.nn, keras.layers and optax, used as neon.NAME of geon.frontends.neon.
_NORM = "neon.BatchNorm(), whose axes go by name"
_POOL = "neon.Pooling, an entry for each axis"
NEON = {
    "AdaptiveAvgPool2d": "a function among the layers: lambda x: geon.mean(x, [ax.H, ax.W])",
    "AvgPool2d": _POOL,
    "AveragePooling2D": _POOL,
    "BatchNorm1d": _NORM,
    "BatchNorm2d": _NORM,
    "BatchNormalization": _NORM,
    "Bidirectional": "neon.BiRNN(layer)",
    "CrossEntropyLoss": "neon.costs.cross_entropy",
    "BCELoss": "neon.costs.binary_cross_entropy",
    "Conv1D": "neon.Convolution",
    "Conv1d": "neon.Convolution",
    "Conv2D": "neon.Convolution",
    "Conv2d": "neon.Convolution",
    "Conv3d": "neon.Convolution",
    "ConvTranspose2d": "neon.Deconvolution",
    "Dataset": "neon.Batches or neon.Stream",
    "DataLoader": "neon.Batches or neon.Stream",
    "Dense": "neon.Affine(axes, init, bias, activation)",
    "ELU": "geon.elu, a function among the layers",
    "Embedding": "neon.LookupTable",
    "ExponentialDecay": "neon.schedules",
    "Flatten": "nothing: neon.Affine sums all axes but N and T",
    "GELU": "geon.gelu, a function among the layers",
    "GlorotUniform": "neon.Glorot(random)",
    "HeNormal": "neon.Kaiming(random)",
    "Input": "geon.placeholder(axes)",
    "L1Loss": "neon.costs.absolute_error",
    "LayerNormalization": "neon.LayerNorm()",
    "LeakyReLU": "geon.leaky_relu, a function among the layers",
    "LogSoftmax": "geon.log_softmax, in a function among the layers",
    "MaxPool2d": _POOL,
    "MaxPooling2D": _POOL,
    "Module": "neon.Layer",
    "ModuleList": "a list of layers, an attribute of a neon.Layer",
    "MSELoss": "neon.costs.squared_error",
    "MultiheadAttention": "neon.MultiHeadAttention",
    "NAdam": "neon.Adam",
    "Optimizer": "neon.Optimiser",
    "Parameter": "self.variable(place, axes, first) in the forward of a neon.Layer",
    "RMSprop": "neon.RMSProp",
    "RNN": "neon.Recurrent",
    "ReLU": "geon.relu, a function among the layers",
    "SiLU": "geon.silu, a function among the layers",
    "Sigmoid": "geon.sigmoid, a function among the layers",
    "SimpleRNN": "neon.Recurrent",
    "Softmax": "geon.softmax, in a function among the layers: lambda x: geon.softmax(x, C)",
    "Tanh": "geon.tanh, a function among the layers",
    "ZeroPad2d": "geon.pad, in a function among the layers",
    "adam": "neon.Adam(rate)",
    "adamw": "neon.AdamW(rate, decay=...)",
    "clip_by_global_norm": "clip=neon.ByGlobalNorm(norm) of an optimiser",
    "fit": "neon.Model(...).fit(data, epochs)",
    "functional": "geon's functions, such as geon.relu",
    "grad": "geon.deriv(cost, variables)",
    "initializers": "neon.Glorot, neon.Kaiming, neon.Gaussian and others",
    "losses": "neon.costs",
    "optim": "neon.SGD, neon.Adam and others, which are in neon itself",
    "optimizers": "neon.SGD, neon.Adam and others, which are in neon itself",
    "sgd": "neon.SGD(rate)",
}

# Methods of random generators of other libraries, used on geon.Random.
STREAMS = {
    "chisquare": "stream.chi_square(axes, degrees)",
    "dropout": "geon.where(stream.bernoulli(x.axes, p=keep) > 0, x / keep, 0)",
    "lognormal": "stream.log_normal(axes, mean, std)",
    "permuted": "stream.shuffle(x, axis, independent=others)",
    "rademacher": "2 * stream.bernoulli(axes) - 1",
    "rand": "stream.uniform(axes)",
    "randint": "stream.integers(axes, low, high)",
    "randn": "stream.normal(axes)",
    "random": "stream.uniform(axes)",
    "rayleigh": "stream.weibull(axes, 2, 2 ** 0.5 * scale)",
    "split": "geon.Random(seed) with another seed; each draw of a stream is another already",
    "standard_cauchy": "stream.cauchy(axes)",
    "standard_exponential": "stream.exponential(axes)",
    "standard_gamma": "stream.gamma(axes, shape)",
    "standard_normal": "stream.normal(axes)",
    "standard_t": "stream.student_t(axes, degrees)",
    "t": "stream.student_t(axes, degrees)",
}
# Methods of sessions and models of other libraries, used on a transformer.
TRANSFORMERS = {
    "eval": "f = transformer.computation(results, *placeholders), then f(*values)",
    "fit": "a loop over batches that calls a computation with geon.assign among its results",
    "jit": "f = transformer.computation(results, *placeholders), then f(*values)",
    "load": "transformer.restore(path)",
    "load_state_dict": "transformer.restore(path), or transformer.set(name, value) for each",
    "parameters": "loss.variables()",
    "predict": "f = transformer.computation(results, *placeholders), then f(*values)",
    "run": "f = transformer.computation(results, *placeholders), then f(*values)",
    "state_dict": "transformer.values()",
    "to": "geon.make_transformer(name), which chooses the device",
    "train": "f = transformer.computation([loss, geon.assign(...)], *placeholders)",
}
# Attributes of compiled functions of other libraries, used on a computation.
COMPUTATIONS = {
    "backward": "geon.deriv(loss, variables) among the results",
    "compile": "nothing: the first call compiles",
    "eval": "f(*values)",
    "grad": "geon.deriv(loss, variables) among the results",
    "gradient": "geon.deriv(loss, variables) among the results",
    "inputs": "f.placeholders",
    "lower": 'f.explain("schedule"), or f.source',
    "numpy": "f(*values)",
    "outputs": "f.results",
    "run": "f(*values)",
    "shape": "f.axes",
}


def missing_name(owner: object, what: str, name: str, cures: Mapping[str, str]) -> AttributeError:
    """Return the error for a name that ``owner``, called ``what`` in the message, lacks.

    It gives advice if ``cures`` has the name. Python adds similar names itself; for this it needs
    ``name`` and ``obj``.
    """
    cure = ""
    if name in cures:
        cure = f"; write {cures[name]}"
    elif isinstance(owner, ModuleType) and name in LACKING:
        cure = f"; geon does not have it yet: {LACKING[name]}"
    return AttributeError(f"{what} has no attribute {name!r}{cure}", name=name, obj=owner)


def missing_member(owner: object, name: str, cures: Mapping[str, str]) -> AttributeError:
    """Return the error for a member that an object lacks, with advice if known."""
    return missing_name(owner, f"{type(owner).__name__!r} object", name, cures)


def missing_function(module: ModuleType, name: str, cures: Mapping[str, str]) -> AttributeError:
    """Return the error for a name that a module lacks, with advice if known."""
    return missing_name(module, f"module {module.__name__!r}", name, cures)


class Missing:
    """Descriptor of an attribute that ops lack but users try: reading it raises with advice.

    A method ``__getattr__`` would be simpler, but make every attribute access of every op slower.
    """

    __slots__ = ("cure", "name")

    def __init__(self, name: str, cure: str) -> None:
        self.name, self.cure = name, cure

    def __get__(self, op: Op | None, owner: type) -> NoReturn:
        if op is None:
            raise AttributeError(f"type object {owner.__name__!r} has no attribute {self.name!r}")
        shown = f"the {kind_of(op)} {op} (made at {op.line_info})"
        raise missing_name(op, shown, self.name, {self.name: self.cure})


def name_missing(cls: type[Op], functions: Iterable[str]) -> None:
    """Add ``Missing`` descriptors to a class of ops for known names and for geon's functions."""
    cures = {name: f"geon.{name}(x, ...)" for name in functions} | FUNCTIONS | ATTRIBUTES
    for name, cure in cures.items():
        if not hasattr(cls, name):
            setattr(cls, name, Missing(name, cure))


def is_missing(cls: type, name: str) -> bool:
    """Return True if an attribute is a ``Missing`` descriptor."""
    return any(isinstance(vars(base).get(name), Missing) for base in cls.__mro__)


def kind_of(op: Op) -> str:
    """Return the user's word for an op: variable, placeholder, tensor, or effect."""
    if op.dtype.kind == "V" and op.dtype.itemsize == 0:
        return f"effect {op.primitive.name}"
    return op.primitive.name if op.primitive.name in ("variable", "placeholder") else "tensor"
