"""How each operator of PyTorch's database of operators is written in geon, or the reason why not.

``ELEMENTWISE`` are expressions in x, y, z, run on PyTorch's own samples. ``EXAMPLES`` are pairs of
expressions on the same data, PyTorch's and geon's, whose results are equal. ``REASONS`` are why
others have no expression. ``docs/pytorch-names.md`` is made of them by
``python -m tests.frontends.torch.names_page``.
"""

from pathlib import Path

_SAME = """
    acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_not bitwise_or bitwise_xor ceil
    copysign cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1 float_power floor fmax fmin
    fmod frac gcd heaviside hypot i0 isfinite isinf isnan lcm lgamma log log10 log1p log2
    logaddexp logaddexp2 logical_and logical_not logical_or logical_xor maximum minimum nextafter
    rad2deg reciprocal round rsqrt sigmoid sign signbit sin sinc sinh sqrt square tan tanh trunc
    where xlogy
"""
_UNARY = """
    acos acosh asin asinh atan atanh bitwise_not ceil cos cosh deg2rad digamma erf erfc erfinv exp
    exp2 expm1 floor frac i0 isfinite isinf isnan lgamma log log10 log1p log2 logical_not rad2deg
    reciprocal round rsqrt sigmoid sign signbit sin sinc sinh sqrt square tan tanh trunc
"""
_OPERATORS = {
    "sub": "x - y", "mul": "x * y", "true_divide": "x / y", "div.no_rounding_mode": "x / y",
    "floor_divide": "x // y", "div.floor_rounding": "x // y", "remainder": "x % y",
    "pow": "x ** y", "eq": "x == y", "ne": "x != y", "lt": "x < y", "le": "x <= y", "gt": "x > y",
    "ge": "x >= y", "rsub": "y - x", "__radd__": "y + x", "__rdiv__": "y / x", "__rmul__": "y * x",
    "__rand__": "y & x", "__ror__": "y | x", "__rxor__": "y ^ x", "__rmod__": "y % x",
    "__rpow__": "y ** x", "__rsub__": "y - x", "neg": "-x", "abs": "abs(x)", "positive": "x",
    "bitwise_left_shift": "x << y", "bitwise_right_shift": "x >> y",
}  # fmt: skip


def _operands(name: str) -> str:
    return "x" if name in _UNARY.split() else "x, y, z" if name == "where" else "x, y"


# Expressions in the operands x, y and z of PyTorch's samples, which are matched from the right.
ELEMENTWISE: dict[str, str] = {
    **{name: f"geon.{name}({_operands(name)})" for name in _SAME.split()},
    **_OPERATORS,
    **{
        f"special.{name}": f"geon.{name}(x)"
        for name in ("i0e", "i1", "i1e", "ndtr", "ndtri", "log_ndtr", "erfcx")
    },
    "special.airy_ai": "geon.airy_ai(x)",
    **{f"special.bessel_{name}": f"geon.{name}(x)" for name in ("j0", "j1", "y0", "y1")},
    **{f"special.modified_bessel_{name}": f"geon.{name}(x)" for name in ("i0", "i1", "k0", "k1")},
    **{f"special.scaled_modified_bessel_{name}": f"geon.{name}e(x)" for name in ("k0", "k1")},
    "special.spherical_bessel_j0": "geon.spherical_j0(x)",
    "special.xlog1py": "geon.xlog1py(x, y)",
    "special.zeta": "geon.zeta(x, y)",
    "special.entr": "geon.where(x < 0, -math.inf, -geon.xlogy(x, x))",
    "igamma": "geon.gammainc(x, y)",
    "igammac": "geon.gammaincc(x, y)",
    "div.trunc_rounding": "geon.trunc_divide(x, y)",
    "max.binary": "geon.maximum(x, y)",
    "min.binary": "geon.minimum(x, y)",
    "ldexp": "x * geon.exp2(y)",
    "nan_to_num": "geon.nan_to_num(x)",
    "isposinf": "x == math.inf",
    "isneginf": "x == -math.inf",
    "sgn": "geon.sign(x)",
    "conj": "geon.conj(x)",
    "conj_physical": "geon.conj(x)",
    "resolve_conj": "x",
    "resolve_neg": "x",
    "round.decimals_0": "geon.round(x)",
    "nn.functional.relu": "geon.relu(x)",
    "nn.functional.silu": "geon.silu(x)",
    "nn.functional.relu6": "geon.clip(x, 0, 6)",
    "nn.functional.hardsigmoid": "geon.clip(x + 3, 0, 6) / 6",
    "nn.functional.hardswish": "x * geon.clip(x + 3, 0, 6) / 6",
    "nn.functional.softsign": "x / (1 + abs(x))",
    "nn.functional.tanhshrink": "x - geon.tanh(x)",
    "nn.functional.logsigmoid": "-geon.softplus(-x)",
    "nn.functional.mish": "x * geon.tanh(geon.softplus(x))",
    "clamp_min": "geon.maximum(x, y)",
    "clamp_max": "geon.minimum(x, y)",
    "bfloat16": 'x.cast("bfloat16")', "bool": 'x.cast("bool")', "byte": 'x.cast("uint8")',
    "char": 'x.cast("int8")', "double": 'x.cast("float64")', "float": 'x.cast("float32")',
    "half": 'x.cast("float16")', "int": 'x.cast("int32")', "long": 'x.cast("int64")',
    "short": 'x.cast("int16")',
    "clone": "x", "contiguous": "x", "alias_copy": "x",
    "zeros_like": "geon.constant(0.0, x.axes)",
    "zero_": "geon.constant(0.0, x.axes)",
}  # fmt: skip

# Lines of names, PyTorch's expression and geon's, separated by |. Both are of the data that
# ``names_data`` has: x over (A, B), y over (B, C), v over A, and so on.
_LINES = (Path(__file__).parent / "names_examples.txt").read_text()

EXAMPLES: dict[str, tuple[str, str]] = {}
for _line in _LINES.strip().splitlines():
    if _line.strip():
        _names, _torch, _geon = (part.strip() for part in _line.split(" | ", 2))
        EXAMPLES |= dict.fromkeys(_names.split(", "), (_torch, _geon))

# Random tensors: their values are those of geon's generator.
DRAWS: dict[str, str] = {
    "uniform": "stream.uniform([A, B])",
    "rand_like": "stream.uniform(x.axes)",
    "randn": "stream.normal([A, B])",
    "randn_like": "stream.normal(x.axes)",
    "normal": "stream.normal([A, B], 1.0, 2.0)",
    "normal.number_mean": "stream.normal([A, B], 1.0, 2.0)",
    "normal.in_place": "stream.normal([A, B], 1.0, 2.0)",
    "randint": "stream.integers([A, B], 0, 5)",
    "randint_like": "stream.integers(x.axes, 0, 5)",
    "bernoulli": "stream.bernoulli([A, B], 0.3)",
    "cauchy": "stream.cauchy([A, B])",
    "exponential": "stream.exponential([A, B])",
    "geometric": "stream.geometric([A, B], 0.3)",
    "log_normal": "stream.log_normal([A, B])",
    "nn.functional.dropout": "geon.where(stream.bernoulli([A, B], 0.5) > 0, x / 0.5, 0)",
    "nn.functional.dropout2d": "geon.where(stream.bernoulli([N, D], 0.5) > 0, g / 0.5, 0)",
    "nn.functional.dropout3d": "geon.where(stream.bernoulli([N, D], 0.5) > 0, g / 0.5, 0)",
    "native_dropout_backward": "geon.where(stream.bernoulli([A, B], 0.5) > 0, u / 0.5, 0)",
    "nn.functional.rrelu": "geon.leaky_relu(x, stream.uniform([A, B], 0.125, 0.333))",
}

_LATER = "no decomposition of this kind in `geon.linalg` yet"
_PLACES = "gives or takes places in memory, which geon chooses"
_POOL = (
    "takes positions in flattened windows; `geon.scatter` puts elements at positions that you have"
)
_CODE = "compiles code of the user for one device"
_SPARSE = "there are no sparse tensors"

# Why there is no expression, by name.
REASONS: dict[str, str] = {
    **dict.fromkeys(
        """geqrf lu lu_solve lu_unpack matrix_exp norm.nuc ormqr pca_lowrank pinverse qr svd
        svd_lowrank linalg.cond linalg.eig linalg.eigh linalg.eigvals linalg.eigvalsh
        linalg.householder_product linalg.ldl_factor linalg.ldl_factor_ex linalg.ldl_solve
        linalg.lstsq linalg.lstsq.grad_oriented linalg.lu linalg.lu_factor linalg.lu_factor_ex
        linalg.lu_solve linalg.matrix_rank linalg.matrix_rank.hermitian linalg.pinv
        linalg.pinv.hermitian linalg.pinv.singular linalg.qr linalg.svd linalg.svdvals""".split(),
        _LATER,
    ),
    **dict.fromkeys(
        """as_strided as_strided.partial_views as_strided_copy as_strided_scatter empty empty_like
        empty_permuted empty_strided new_empty new_empty_strided resize_ resize_as_""".split(),
        _PLACES,
    ),
    **dict.fromkeys(
        """max_pool2d_with_indices_backward nn.functional.max_unpool1d
        nn.functional.max_unpool1d.grad nn.functional.max_unpool2d
        nn.functional.max_unpool2d.grad nn.functional.max_unpool3d
        nn.functional.max_unpool3d.grad""".split(),
        _POOL,
    ),
    **dict.fromkeys(
        """jiterator_2inputs_2outputs jiterator_4inputs_with_extra_args jiterator_binary
        jiterator_binary_return_by_ref jiterator_unary""".split(),
        _CODE,
    ),
    **dict.fromkeys("sparse.mm.reduce sparse.sampled_addmm to_sparse".split(), _SPARSE),
    **dict.fromkeys(
        """_unsafe_masked_index _unsafe_masked_index_put_accumulate""".split(),
        "reads outside of a tensor where a mask is false; geon checks positions",
    ),
    **dict.fromkeys(
        "torch._scaled_mm torch._scaled_mm_v2".split(),
        "float8 is only stored: `geon.cast` both to float32, and `geon.dot`",
    ),
    **dict.fromkeys(
        "unique unique_consecutive".split(),
        "the length of the result depends on the data: `geon.unique` has a bound and a count",
    ),
    **dict.fromkeys(
        "linalg.tensorinv linalg.tensorsolve".split(),
        "`geon.flatten` the axes to two, and `geon.linalg.inv` or `solve`",
    ),
    **dict.fromkeys(
        """nn.functional.linear_cross_entropy nn.functional.linear_cross_entropy.chunked
        nn.functional.linear_cross_entropy.chunked_none""".split(),
        "a product and `geon.cross_entropy_multi`; there is no fused form",
    ),
    **dict.fromkeys(
        "nn.functional.fractional_max_pool2d nn.functional.fractional_max_pool3d".split(),
        "windows of random lengths; lengths are known before a call",
    ),
    **dict.fromkeys(
        "nn.functional.grid_sample grid_sampler_2d grid_sampler_3d".split(),
        "interpolation at computed places: four calls of `geon.gather`, with weights",
    ),
    **dict.fromkeys(
        """nn.functional.alpha_dropout nn.functional.feature_alpha_dropout.with_train
        nn.functional.feature_alpha_dropout.without_train""".split(),
        "dropout to another value: `geon.where` of a `bernoulli`, and a scale",
    ),
    **dict.fromkeys(
        "nn.functional.interpolate.bicubic _upsample_bilinear2d_aa".split(),
        "`geon.resize` is linear or nearest",
    ),
    **dict.fromkeys("stft istft".split(), "`geon.fft.rfft` of `geon.window`, with a taper"),
    "_chunk_cat": "pads and joins parts by position",
    "broadcast_shapes": "takes shapes, not tensors; axes meet by name",
    "chalf": "there is no complex dtype of halves",
    "combinations": "the length of the result is a binomial coefficient of the length",
    "hash_tensor": "a checksum of bits: `geon.bitcast` and a loop of exclusive ors",
    "histogram": "returns edges too; `geon.histogram` has the counts",
    "histogramdd": "`geon.histogram` has one dimension",
    "masked.median": "the lower median; `geon.nanmedian` is the mean of both",
    "multinomial": "draws without replacement: `geon.Random.choice`",
    "nn.functional.ctc_loss": "`geon.frontends.neon.ctc`",
    "nn.functional.embedding_bag": "`geon.gather` and `geon.segment_sum`",
    "nn.functional.multi_head_attention_forward": "`geon.frontends.neon.MultiHeadAttention`",
    "nn.functional.multilabel_margin_loss": "reads labels up to the first -1",
}
