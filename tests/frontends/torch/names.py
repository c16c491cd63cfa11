"""How each operator of PyTorch's database of operators is written in geon, or the reason why not.

``ELEMENTWISE`` are expressions in x, y, z, run on PyTorch's own samples. ``EXAMPLES`` are pairs of
expressions on the same data, PyTorch's and geon's, whose results are equal. ``REASONS`` are why
others have no expression. ``docs/pytorch-names.md`` is made of them by
``python -m tests.frontends.torch.names_page``.
"""

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

# Expressions in the operands x, y and z of PyTorch's samples, which are matched from the right.
ELEMENTWISE: dict[str, str] = {
    **{
        name: f"geon.{name}({'x' if name in _UNARY.split() else 'x, y, z' if name == 'where' else 'x, y'})"
        for name in _SAME.split()
    },
    **_OPERATORS,
    **{
        f"special.{name}": f"geon.{name}(x)"
        for name in ("i0e", "i1", "i1e", "ndtr", "ndtri", "log_ndtr", "erfcx")
    },
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

# Torch's expression and geon's, separated by |, after the names. Both are of the same data:
# x, u (A, B), y (B, C), v (A), w (B), s (A, A'), p (A, A') positive definite, b (K, A, B),
# d (K, B, C), t (A, B) between 0 and 1, i (A) positions along B, n (A, B) integers, m (A, B) truth
# values, e (E), g (N, D, H, W), k (O, D, R, S), c (N, D, L), h (O, D, R), z complex (A, B).
_LINES = """
addcmul | torch.addcmul(x, u, t, value=2) | x + 2 * u * t
addcdiv | torch.addcdiv(x, u, t, value=2) | x + 2 * u / t
lerp | torch.lerp(x, u, t) | geon.interpolation(x, u, t)
clamp | torch.clamp(x, -1, 0.5) | geon.clip(x, -1, 0.5)
round.decimals_3 | torch.round(x, decimals=3) | geon.round(x, decimals=3)
round.decimals_neg_3 | torch.round(1e4 * x, decimals=-3) | geon.round(1e4 * x, decimals=-3)
logit | torch.logit(t) | geon.logit(t)
isclose | torch.isclose(x, u, atol=1.0) | geon.isclose(x, u, atol=1.0)
allclose | torch.tensor(torch.allclose(x, u)) | geon.allclose(x, u)
equal | torch.tensor(torch.equal(x, u)) | geon.all(x == u)
frexp | torch.frexp(x) | geon.frexp(x)
polygamma.polygamma_n_0, special.polygamma.special_polygamma_n_0 | torch.polygamma(0, t) | geon.polygamma(0, t)
polygamma.polygamma_n_1 | torch.polygamma(1, t) | geon.polygamma(1, t)
polygamma.polygamma_n_2 | torch.polygamma(2, t) | geon.polygamma(2, t)
polygamma.polygamma_n_3 | torch.polygamma(3, t) | geon.polygamma(3, t)
polygamma.polygamma_n_4 | torch.polygamma(4, t) | geon.polygamma(4, t)
mvlgamma.mvlgamma_p_1 | torch.mvlgamma(t + 3, 1) | geon.lgamma(t + 3)
mvlgamma.mvlgamma_p_3 | torch.mvlgamma(t + 3, 3) | 1.5 * math.log(math.pi) + geon.lgamma(t + 3) + geon.lgamma(t + 2.5) + geon.lgamma(t + 2)
mvlgamma.mvlgamma_p_5 | torch.mvlgamma(t + 3, 5) | 5 * math.log(math.pi) + geon.sum(geon.lgamma(geon.outer(geon.subtract, t + 3, geon.iota(E) / 2)), E)
special.chebyshev_polynomial_t | torch.special.chebyshev_polynomial_t(t, 3) | geon.orthogonal_polynomial("chebyshev_t", 3, t)
special.chebyshev_polynomial_u | torch.special.chebyshev_polynomial_u(t, 3) | geon.orthogonal_polynomial("chebyshev_u", 3, t)
special.chebyshev_polynomial_v | torch.special.chebyshev_polynomial_v(t, 3) | geon.orthogonal_polynomial("chebyshev_v", 3, t)
special.chebyshev_polynomial_w | torch.special.chebyshev_polynomial_w(t, 3) | geon.orthogonal_polynomial("chebyshev_w", 3, t)
special.shifted_chebyshev_polynomial_t | torch.special.shifted_chebyshev_polynomial_t(t, 3) | geon.orthogonal_polynomial("chebyshev_t", 3, 2 * t - 1)
special.shifted_chebyshev_polynomial_u | torch.special.shifted_chebyshev_polynomial_u(t, 3) | geon.orthogonal_polynomial("chebyshev_u", 3, 2 * t - 1)
special.shifted_chebyshev_polynomial_v | torch.special.shifted_chebyshev_polynomial_v(t, 3) | geon.orthogonal_polynomial("chebyshev_v", 3, 2 * t - 1)
special.shifted_chebyshev_polynomial_w | torch.special.shifted_chebyshev_polynomial_w(t, 3) | geon.orthogonal_polynomial("chebyshev_w", 3, 2 * t - 1)
special.hermite_polynomial_h | torch.special.hermite_polynomial_h(t, 3) | geon.orthogonal_polynomial("hermite_h", 3, t)
special.hermite_polynomial_he | torch.special.hermite_polynomial_he(t, 3) | geon.orthogonal_polynomial("hermite_he", 3, t)
special.laguerre_polynomial_l | torch.special.laguerre_polynomial_l(t, 3) | geon.orthogonal_polynomial("laguerre", 3, t)
special.legendre_polynomial_p | torch.special.legendre_polynomial_p(t, 3) | geon.orthogonal_polynomial("legendre", 3, t)

nn.functional.gelu | F.gelu(x) | geon.gelu(x)
nn.functional.elu | F.elu(x, 0.5) | geon.elu(x, 0.5)
nn.functional.celu | F.celu(x, 0.5) | geon.where(x > 0, x, 0.5 * geon.expm1(geon.minimum(x, 0) / 0.5))
nn.functional.selu | F.selu(x) | 1.0507009873554805 * geon.elu(x, 1.6732632423543772)
nn.functional.leaky_relu | F.leaky_relu(x, 0.1) | geon.leaky_relu(x, 0.1)
nn.functional.prelu | F.prelu(x, w) | geon.leaky_relu(x, w)
nn.functional.hardtanh | F.hardtanh(x) | geon.clip(x, -1, 1)
nn.functional.hardshrink | F.hardshrink(x, 0.3) | geon.where(abs(x) > 0.3, x, 0)
nn.functional.softshrink | F.softshrink(x, 0.3) | geon.sign(x) * geon.maximum(abs(x) - 0.3, 0)
nn.functional.softplus | F.softplus(x, 2.0) | geon.softplus(2.0 * x) / 2.0
nn.functional.threshold | F.threshold(x, 0.1, 7.0) | geon.where(x > 0.1, x, 7.0)
nn.functional.glu | F.glu(x, 1) | x[:, :2] * geon.sigmoid(x[:, 2:])
nn.functional.silu.complex | F.silu(z) | z / (1 + geon.exp(-z))
softmax, nn.functional.softmin | torch.softmax(x, 1) | geon.softmax(x, B)
softmax.with_dtype, nn.functional.softmin.with_dtype | torch.softmax(x, 1, dtype=torch.float32) | geon.softmax(x.cast("float32"), B)
log_softmax | torch.log_softmax(x, 1) | geon.log_softmax(x, B)
log_softmax.with_dtype | torch.log_softmax(x, 1, dtype=torch.float32) | geon.log_softmax(x.cast("float32"), B)
_softmax_backward_data | torch._softmax_backward_data(u, torch.softmax(x, 1), 1, x.dtype) | geon.vjp(geon.softmax(x, B), x, u)
torch.ops.aten._safe_softmax.default | torch.ops.aten._safe_softmax.default(x, 1) | geon.softmax(x, B)
logsumexp | torch.logsumexp(x, 1) | geon.logsumexp(x, B)
logcumsumexp | torch.logcumsumexp(x, 1) | geon.logcumsumexp(x, B)

nn.functional.mse_loss | F.mse_loss(x, u) | geon.mean(geon.square(x - u))
nn.functional.l1_loss | F.l1_loss(x, u) | geon.mean(abs(x - u))
nn.functional.smooth_l1_loss | F.smooth_l1_loss(x, u) | geon.mean(geon.where(abs(x - u) < 1, geon.square(x - u) / 2, abs(x - u) - 0.5))
nn.functional.huber_loss | F.huber_loss(x, u, delta=0.5) | geon.mean(geon.where(abs(x - u) < 0.5, geon.square(x - u) / 2, 0.5 * (abs(x - u) - 0.25)))
nn.functional.soft_margin_loss | F.soft_margin_loss(x, u.sign()) | geon.mean(geon.softplus(-x * geon.sign(u)))
nn.functional.margin_ranking_loss | F.margin_ranking_loss(x, u, t.sign(), 0.1) | geon.mean(geon.relu(u - x + 0.1))
nn.functional.hinge_embedding_loss | F.hinge_embedding_loss(x, u.sign()) | geon.mean(geon.where(u > 0, x, geon.relu(1 - x)))
nn.functional.poisson_nll_loss | F.poisson_nll_loss(x, t) | geon.mean(geon.exp(x) - t * x)
nn.functional.gaussian_nll_loss | F.gaussian_nll_loss(x, u, t) | geon.mean(geon.log(t) + geon.square(x - u) / t) / 2
nn.functional.kl_div | F.kl_div(x, t) | geon.mean(geon.xlogy(t, t) - t * x)
nn.functional.binary_cross_entropy | F.binary_cross_entropy(t, m.double()) | geon.cross_entropy_binary(t, m.cast("float64")) / 12
nn.functional.binary_cross_entropy_with_logits | F.binary_cross_entropy_with_logits(x, t) | geon.mean(geon.softplus(x) - t * x)
nn.functional.cross_entropy | F.cross_entropy(x, i) | geon.mean(geon.cross_entropy_multi(geon.softmax(x, B), geon.onehot(i, B), out_axes=A))
nn.functional.nll_loss | F.nll_loss(x, i) | -geon.mean(geon.take_along(x, i, B))
nn.functional.multilabel_soft_margin_loss | F.multilabel_soft_margin_loss(x, m.double()) | geon.mean(geon.softplus(x) - geon.where(m, x, 0))
nn.functional.multi_margin_loss | F.multi_margin_loss(x, i) | geon.mean(geon.sum(geon.where(geon.onehot(i, B, "bool"), 0, geon.relu(1 - geon.take_along(x, i, B) + x)), B) / 4)
nn.functional.cosine_similarity | F.cosine_similarity(x, u) | geon.contract([x, u], [A]) / (geon.L2_norm(x, B) * geon.L2_norm(u, B))
nn.functional.cosine_embedding_loss | F.cosine_embedding_loss(x, u, torch.ones(3)) | 1 - geon.mean(geon.contract([x, u], [A]) / (geon.L2_norm(x, B) * geon.L2_norm(u, B)))
nn.functional.pairwise_distance | F.pairwise_distance(x, u, eps=0) | geon.L2_norm(x - u, B)
nn.functional.triplet_margin_loss, nn.functional.triplet_margin_with_distance_loss | F.triplet_margin_loss(x, u, t, eps=0) | geon.mean(geon.relu(geon.L2_norm(x - u, B) - geon.L2_norm(x - t, B) + 1))
nn.functional.normalize | F.normalize(x) | x / geon.L2_norm(x, B)
nn.functional.linear | F.linear(x, y.T, e[:2]) | geon.dot(x, y) + e[:2].rename({"E": "C"})
nn.functional.bilinear | F.bilinear(x, u, l) | geon.contract([x, l, u.rename({B: B.prime})], [A, C])
nn.functional.one_hot | F.one_hot(i, 4) | geon.onehot(i, B, "int64")
nn.functional.embedding | F.embedding(i, y) | geon.gather(y, i, B)
nn.functional.layer_norm | F.layer_norm(x, (4,)) | (x - geon.mean(x, B)) * geon.rsqrt(geon.variance(x, B) + 1e-5)
native_layer_norm | torch.native_layer_norm(x, (4,), None, None, 1e-5)[0] | (x - geon.mean(x, B)) * geon.rsqrt(geon.variance(x, B) + 1e-5)
nn.functional.rms_norm | F.rms_norm(x, (4,), eps=1e-5) | x * geon.rsqrt(geon.mean(geon.square(x), B) + 1e-5)
nn.functional.batch_norm, nn.functional.batch_norm.without_cudnn | F.batch_norm(c, None, None, training=True) | (c - geon.mean(c, [N, L])) * geon.rsqrt(geon.variance(c, [N, L]) + 1e-5)
native_batch_norm, _native_batch_norm_legit, _batch_norm_with_update | torch.native_batch_norm(c, None, None, None, None, True, 0.1, 1e-5)[0] | (c - geon.mean(c, [N, L])) * geon.rsqrt(geon.variance(c, [N, L]) + 1e-5)
nn.functional.instance_norm | F.instance_norm(c) | (c - geon.mean(c, L)) * geon.rsqrt(geon.variance(c, L) + 1e-5)
nn.functional.group_norm | F.group_norm(c, 1) | (c - geon.mean(c, [D, L])) * geon.rsqrt(geon.variance(c, [D, L]) + 1e-5)
native_group_norm | torch.native_group_norm(c, None, None, 2, 3, 6, 1, 1e-5)[0] | (c - geon.mean(c, [D, L])) * geon.rsqrt(geon.variance(c, [D, L]) + 1e-5)
nn.functional.local_response_norm | F.local_response_norm(c, 3, 1.0, 0.75, 1.0) | c / (1 + geon.average_pool(geon.pad(geon.square(c), {D: 1}), {D: 3})) ** 0.75
nn.functional.conv1d | F.conv1d(c, h) | geon.convolution(c, h, {L: R}).reorder([N, O, L])
nn.functional.conv2d | F.conv2d(g, k) | geon.convolution(g, k, {H: R, W: S}).reorder([N, O, H, W])
nn.functional.conv3d | F.conv3d(g[:, None], k[:, None, :2]) | geon.convolution(g, k[{D: slice(0, 2)}].rename({D: "Q"}), {D: geon.Axis("Q", 2), H: R, W: S}).reorder([N, O, D, H, W])
nn.functional.conv_transpose1d | F.conv_transpose1d(c, h.transpose(0, 1)) | geon.transposed_convolution(c, h, {L: R}).reorder([N, O, L])
nn.functional.conv_transpose3d | F.conv_transpose3d(g[:, None], k[None, :, :2]) | geon.transposed_convolution(g, k[{D: slice(0, 2)}].rename({D: "Q"}), {D: geon.Axis("Q", 2), H: R, W: S}).reorder([N, O, D, H, W])
nn.functional.conv_transpose2d | F.conv_transpose2d(g, k.transpose(0, 1)) | geon.transposed_convolution(g, k, {H: R, W: S}).reorder([N, O, H, W])
nn.functional.avg_pool1d | F.avg_pool1d(c, 2) | geon.average_pool(c, {L: geon.Window(2, stride=2)})
nn.functional.avg_pool2d | F.avg_pool2d(g, 2) | geon.average_pool(g, {H: geon.Window(2, stride=2), W: geon.Window(2, stride=2)})
nn.functional.avg_pool3d | F.avg_pool3d(g, 2) | geon.average_pool(g, {D: geon.Window(2, stride=2), H: geon.Window(2, stride=2), W: geon.Window(2, stride=2)})
nn.functional.max_pool1d | F.max_pool1d(c, 2) | geon.max_pool(c, {L: geon.Window(2, stride=2)})
nn.functional.max_pool2d | F.max_pool2d(g, 2) | geon.max_pool(g, {H: geon.Window(2, stride=2), W: geon.Window(2, stride=2)})
nn.functional.max_pool3d | F.max_pool3d(g, 2) | geon.max_pool(g, {D: geon.Window(2, stride=2), H: geon.Window(2, stride=2), W: geon.Window(2, stride=2)})
nn.functional.adaptive_avg_pool1d | F.adaptive_avg_pool1d(c, 3) | geon.average_pool(c, {L: geon.Window(2, stride=2)})
nn.functional.adaptive_avg_pool2d | F.adaptive_avg_pool2d(g, 2) | geon.average_pool(g, {H: geon.Window(2, stride=2), W: geon.Window(2, stride=2)})
nn.functional.adaptive_avg_pool3d | F.adaptive_avg_pool3d(g, (3, 2, 2)) | geon.average_pool(g, {H: geon.Window(2, stride=2), W: geon.Window(2, stride=2)})
nn.functional.adaptive_max_pool1d | F.adaptive_max_pool1d(c, 3) | geon.max_pool(c, {L: geon.Window(2, stride=2)})
nn.functional.adaptive_max_pool2d | F.adaptive_max_pool2d(g, 2) | geon.max_pool(g, {H: geon.Window(2, stride=2), W: geon.Window(2, stride=2)})
nn.functional.adaptive_max_pool3d | F.adaptive_max_pool3d(g, (3, 2, 2)) | geon.max_pool(g, {H: geon.Window(2, stride=2), W: geon.Window(2, stride=2)})
nn.functional.interpolate.nearest, nn.functional.upsample_nearest | F.interpolate(c, 9) | geon.resize(c, {L: 9}, "nearest", align="starts")
nn.functional.interpolate.nearest-exact | F.interpolate(c, 9, mode="nearest-exact") | geon.resize(c, {L: 9}, "nearest")
nn.functional.interpolate.linear | F.interpolate(c, 9, mode="linear") | geon.resize(c, {L: 9})
nn.functional.interpolate.bilinear | F.interpolate(g, (5, 6), mode="bilinear") | geon.resize(g, {H: 5, W: 6})
nn.functional.upsample_bilinear | F.interpolate(g, (5, 6), mode="bilinear", align_corners=True) | geon.resize(g, {H: 5, W: 6}, align="corners")
nn.functional.interpolate.trilinear | F.interpolate(g[None], (5, 6, 3), mode="trilinear")[0] | geon.resize(g, {D: 5, H: 6, W: 3})
nn.functional.interpolate.area | F.interpolate(c, 3, mode="area") | geon.average_pool(c, {L: geon.Window(2, stride=2)})
nn.functional.pixel_shuffle | F.pixel_shuffle(k.transpose(0, 1), 2)[:, 0] | geon.flatten(geon.flatten(geon.unflatten(k, O, [P, Q]).reorder([D, R, P, S, Q]), [R, P], H6), [S, Q], W.with_length(6))
nn.functional.pixel_unshuffle | F.pixel_unshuffle(g, 2) | geon.flatten(geon.unflatten(geon.unflatten(g, H, [H.with_length(2), P]), W, [W.with_length(2), Q]).reorder([N, D, P, Q, H, W]), [D, P, Q], geon.Axis("DPQ"))
nn.functional.channel_shuffle | F.channel_shuffle(k.transpose(0, 1), 2) | geon.flatten(geon.unflatten(k, O, [P, Q]).reorder([D, Q, P, R, S]), [Q, P], O)
nn.functional.unfold | F.unfold(g, (3, 3)).reshape(2, 3, 3, 3, 2, 2) | geon.window(geon.window(g, {H: R}), {W: S}).reorder([N, D, R, S, H, W])
unfold, unfold_copy | x.unfold(1, 2, 1) | geon.window(x, {B: geon.Axis("R", 2)})
nn.functional.pad.constant, constant_pad_nd | F.pad(x, (1, 2), value=7.0) | geon.pad(x, {B: (1, 2)}, value=7.0)
nn.functional.pad.reflect | F.pad(x, (1, 2), mode="reflect") | geon.pad(x, {B: (1, 2)}, "reflect")
nn.functional.pad.replicate | F.pad(x, (1, 2), mode="replicate") | geon.pad(x, {B: (1, 2)}, "edge")
nn.functional.pad.replicate_negative | F.pad(x, (-1, -2)) | x[:, 1:2]
nn.functional.pad.circular | F.pad(x, (1, 2), mode="circular") | geon.concat([x[:, -1:], x, x[:, :2]], B)
nn.functional.scaled_dot_product_attention, torch.ops.aten._flash_attention_forward, torch.ops.aten._efficient_attention_forward | F.scaled_dot_product_attention(x, u, t) | geon.dot(geon.softmax(geon.contract([x, u.rename({A: "Z"})], [A, "Z"]) / 2, "Z"), t.rename({A: "Z"}))

sum | torch.sum(x, 1) | geon.sum(x, B)
prod | torch.prod(x, 1) | geon.prod(x, B)
mean | torch.mean(x, 1) | geon.mean(x, B)
nansum | torch.nansum(x, 1) | geon.nansum(x, B)
nanmean | torch.nanmean(x, 1) | geon.nanmean(x, B)
nanmedian | torch.nanmedian(e) | geon.nanmedian(e)
std, std.unbiased | torch.std(x, 1) | geon.std(x, B, correction=1)
var, var.unbiased | torch.var(x, 1) | geon.variance(x, B, correction=1)
std_mean, std_mean.unbiased | torch.std_mean(x, 1) | (geon.std(x, B, correction=1), geon.mean(x, B))
var_mean, var_mean.unbiased | torch.var_mean(x, 1) | (geon.variance(x, B, correction=1), geon.mean(x, B))
amax | torch.amax(x, 1) | geon.max(x, B)
amin | torch.amin(x, 1) | geon.min(x, B)
max.reduction_no_dim | torch.max(x) | geon.max(x)
min.reduction_no_dim | torch.min(x) | geon.min(x)
max.reduction_with_dim | torch.max(x, 1) | (geon.max(x, B), geon.argmax(x, B))
min.reduction_with_dim | torch.min(x, 1) | (geon.min(x, B), geon.argmin(x, B))
aminmax | torch.aminmax(x, dim=1) | geon.aminmax(x, B)
argmax | torch.argmax(x, 1) | geon.argmax(x, B)
argmin | torch.argmin(x, 1) | geon.argmin(x, B)
all | torch.all(m, 1) | geon.all(m, B)
any | torch.any(m, 1) | geon.any(m, B)
count_nonzero | torch.count_nonzero(n, 1) | geon.count_nonzero(n, B)
cumsum | torch.cumsum(x, 1) | geon.cumsum(x, B)
cumprod | torch.cumprod(x, 1) | geon.cumprod(x, B)
cummax | torch.cummax(x, 1) | (geon.cummax(x, B), geon.argcummax(x, B))
cummin | torch.cummin(x, 1) | (geon.cummin(x, B), geon.argcummin(x, B))
sort | torch.sort(x, 1) | (geon.sort(x, B), geon.argsort(x, B))
argsort | torch.argsort(x, 1) | geon.argsort(x, B)
msort | torch.msort(x) | geon.sort(x, A)
topk | torch.topk(x, 2, 1) | geon.top_k(x, 2, B)
kthvalue | torch.kthvalue(x, 2, 1) | geon.kthvalue(x, 2, B)
median | torch.median(e) | geon.median(e)
mode | torch.mode(x, 1)[0] | geon.mode(x, B)[0]
quantile | torch.quantile(x, 0.3, dim=1) | geon.quantile(x, 0.3, B)
nanquantile | torch.nanquantile(x, 0.3, dim=1) | geon.nanquantile(x, 0.3, B)
searchsorted | torch.searchsorted(e.sort()[0], x) | geon.searchsorted(geon.sort(e, E), x, E)
bucketize | torch.bucketize(x, e.sort()[0]) | geon.bucketize(x, geon.sort(e, E))
bincount | torch.bincount(n.flatten(), minlength=10) | geon.bincount(n, geon.Axis("bins", 10))
histc | torch.histc(x, 5, -2, 2) | geon.histogram(x, geon.Axis("bins", 5), -2, 2).cast("float64")
isin | torch.isin(n, torch.tensor([1, 2])) | geon.isin(n, geon.constant([1, 2], [C]))
norm, norm.fro, linalg.norm, linalg.vector_norm | torch.linalg.vector_norm(x, dim=1) | geon.L2_norm(x, B)
norm.inf | torch.norm(x, math.inf, 1) | geon.max(abs(x), B)
linalg.norm.subgradients_at_zero | torch.linalg.norm(x) | geon.L2_norm(x)
linalg.matrix_norm | torch.linalg.matrix_norm(x) | geon.L2_norm(x, [A, B])
renorm | torch.renorm(x, 2, 0, 1.0) | geon.renorm(x, B, 1.0)
dist | torch.dist(x, u) | geon.L2_norm(x - u)
cdist | torch.cdist(x, u) | geon.cdist(x, u.rename({A: "Z"}), B)
nn.functional.pdist | F.pdist(x) | geon.compress(geon.cdist(x, x.rename({A: "Z"}), B), geon.outer(geon.less, geon.iota(A), geon.iota(A.named("Z"))), geon.Axis("M", 3)).values
cov | torch.cov(x) | geon.cov(x, A, B)
corrcoef | torch.corrcoef(x) | geon.corrcoef(x, A, B)
trapezoid, trapz | torch.trapezoid(x, dx=0.5, dim=1) | geon.trapezoid(x, B, dx=0.5)
cumulative_trapezoid | torch.cumulative_trapezoid(x, dx=0.5, dim=1) | geon.cumulative_trapezoid(x, B, dx=0.5)
diff | torch.diff(x) | geon.diff(x, B)
gradient | torch.gradient(e)[0] | geon.concat([e[1:2] - e[:1], (e[2:] - e[:-2]) / 2, e[-1:] - e[-2:-1]], E)
masked.sum | torch.masked.sum(x, 1, mask=m) | geon.sum(geon.where(m, x, 0), B)
masked.prod | torch.masked.prod(x, 1, mask=m) | geon.prod(geon.where(m, x, 1), B)
masked.cumsum | torch.masked.cumsum(x, 1, mask=m) | geon.cumsum(geon.where(m, x, 0), B)
masked.cumprod | torch.masked.cumprod(x, 1, mask=m) | geon.cumprod(geon.where(m, x, 1), B)
masked.amax | torch.masked.amax(x, 1, mask=m) | geon.max(geon.where(m, x, -math.inf), B)
masked.amin | torch.masked.amin(x, 1, mask=m) | geon.min(geon.where(m, x, math.inf), B)
masked.argmax | torch.masked.argmax(x, 1, mask=m) | geon.argmax(geon.where(m, x, -math.inf), B)
masked.argmin | torch.masked.argmin(x, 1, mask=m) | geon.argmin(geon.where(m, x, math.inf), B)
masked.mean | torch.masked.mean(x, 1, mask=m) | geon.nanmean(geon.where(m, x, math.nan), B)
masked.norm | torch.masked.norm(x, 2, 1, mask=m) | geon.L2_norm(geon.where(m, x, 0), B)
masked.softmax | torch.masked.softmax(x, 1, mask=m) | geon.softmax(geon.where(m, x, -math.inf), B)
masked.softmin | torch.masked.softmin(x, 1, mask=m) | geon.softmax(geon.where(m, -x, -math.inf), B)
masked.log_softmax | torch.masked.log_softmax(x, 1, mask=m) | geon.log_softmax(geon.where(m, x, -math.inf), B)
masked.logsumexp | torch.masked.logsumexp(x, 1, mask=m) | geon.logsumexp(geon.where(m, x, -math.inf), B)
masked.logaddexp | torch.where(m, torch.masked.logaddexp(x, u, input_mask=m, other_mask=m), 0) | geon.where(m, geon.logaddexp(x, u), 0)
masked.var | torch.masked.var(x, 1, mask=m) | geon.sum(geon.where(m, geon.square(x - geon.nanmean(geon.where(m, x, math.nan), B)), 0), B) / (geon.sum(m, B) - 1)
masked.std | torch.masked.std(x, 1, mask=m) | geon.sqrt(geon.sum(geon.where(m, geon.square(x - geon.nanmean(geon.where(m, x, math.nan), B)), 0), B) / (geon.sum(m, B) - 1))
masked.normalize | torch.masked.normalize(x, 2, 1, mask=m) | geon.where(m, x, 0) / geon.L2_norm(geon.where(m, x, 0), B)

mm, matmul, __rmatmul__ | x @ y | x @ y
dot, vdot, inner, linalg.vecdot | torch.inner(v, v) | geon.dot(v, v)
mv | torch.mv(x, w) | geon.dot(x, w)
bmm, bmm.triton_optimized | torch.bmm(b, d) | geon.dot(b, d, over=B)
addmm, addmm.decomposed | torch.addmm(v[:, None], x, y, beta=2) | 2 * v + x @ y
addmv | torch.addmv(v, x, w) | v + geon.dot(x, w)
addbmm | torch.addbmm(v[:, None], b, d) | v + geon.contract([b, d], [A, C])
baddbmm | torch.baddbmm(v[:, None], b, d) | (v + geon.dot(b, d, over=B)).reorder([K, A, C])
addr | torch.addr(x, v, w) | x + geon.outer(geon.multiply, v, w)
outer | torch.outer(v, w) | geon.outer(geon.multiply, v, w)
einsum, tensordot | torch.einsum("ab,bc->ca", x, y) | geon.contract([x, y], [C, A])
linalg.multi_dot | torch.linalg.multi_dot([x, y, y.T]) | geon.contract([x, y, y.rename({B: "Z"})], [A, "Z"])
kron | torch.kron(v, v) | geon.kron(v, v)
cross, linalg.cross | torch.linalg.cross(x, u, dim=0) | geon.cross(x, u, A)
trace | torch.trace(s) | geon.trace(s, A, A.prime)
linalg.vander | torch.linalg.vander(v) | geon.vander(v, geon.Axis("P", 3))
tril | torch.tril(x, 1) | geon.tril(x, A, B, 1)
triu | torch.triu(x, 1) | geon.triu(x, A, B, 1)
diag, diagflat | torch.diag(v) | geon.diag_embed(v, A, A.prime)
diag_embed | torch.diag_embed(x) | geon.diag_embed(x, B, B.prime)
diagonal, diagonal_copy, linalg.diagonal | torch.diagonal(s) | geon.diagonal(s, [A, A.prime])
diagonal_scatter | torch.diagonal_scatter(s, v) | geon.where(geon.eye(A, A.prime, "bool"), v, s)
block_diag | torch.block_diag(s, p) | geon.pad(s, {A: (0, 3), A.prime: (0, 3)}) + geon.pad(p, {A: (3, 0), A.prime: (3, 0)})
eye | torch.eye(3, 4, dtype=torch.double) | geon.eye(A, B, "float64")
linspace, linspace.tensor_overload | torch.linspace(0, 1, 4, dtype=torch.double) | geon.linspace(0, 1, B, "float64")
logspace, logspace.tensor_overload | torch.logspace(0, 1, 4, dtype=torch.double) | geon.logspace(0, 1, B, dtype="float64")
arange | torch.arange(4) | geon.iota(B)
zeros, new_zeros | torch.zeros(3, 4) | geon.constant(0.0, [A, B])
ones, new_ones | torch.ones(3, 4) | geon.constant(1.0, [A, B])
full, new_full, fill | torch.full((3, 4), 7.0) | geon.constant(7.0, [A, B])
full_like | torch.full_like(x, 7.0) | geon.constant(7.0, x.axes, "float64")
scalar_tensor | torch.scalar_tensor(7.0) | geon.constant(7.0)
tril_indices | torch.tril_indices(3, 4) | geon.stack(list(geon.nonzero(geon.outer(geon.greater_equal, geon.iota(A), geon.iota(B)), geon.Axis("M", 6)).positions.values()), C)
triu_indices | torch.triu_indices(3, 4) | geon.stack(list(geon.nonzero(geon.outer(geon.less_equal, geon.iota(A), geon.iota(B)), geon.Axis("M", 9)).positions.values()), C)
meshgrid.variadic_tensors, meshgrid.list_of_tensors | torch.meshgrid(v, w, indexing="ij") | (geon.broadcast(v, [A, B]), geon.broadcast(w, [A, B]))
cartesian_prod | torch.cartesian_prod(v, w) | geon.stack([geon.flatten(geon.broadcast(each, [A, B])) for each in (v, w)], C, 1)
signal.windows.hann | torch.signal.windows.hann(6, dtype=torch.double) | 0.5 - 0.5 * geon.cos(2 * math.pi * geon.iota(H6) / constant(5))
signal.windows.hamming | torch.signal.windows.hamming(6, dtype=torch.double) | 0.54 - 0.46 * geon.cos(2 * math.pi * geon.iota(H6) / constant(5))
signal.windows.general_hamming | torch.signal.windows.general_hamming(6, alpha=0.6, dtype=torch.double) | 0.6 - 0.4 * geon.cos(2 * math.pi * geon.iota(H6) / constant(5))
signal.windows.blackman | torch.signal.windows.blackman(6, dtype=torch.double) | 0.42 - 0.5 * geon.cos(2 * math.pi * geon.iota(H6) / constant(5)) + 0.08 * geon.cos(4 * math.pi * geon.iota(H6) / constant(5))
signal.windows.nuttall | torch.signal.windows.nuttall(6, dtype=torch.double) | sum((-1) ** j * a * geon.cos(2 * j * math.pi * geon.iota(H6) / constant(5)) for j, a in enumerate([0.3635819, 0.4891775, 0.1365995, 0.0106411]))
signal.windows.general_cosine | torch.signal.windows.general_cosine(6, a=[0.6, 0.4], dtype=torch.double) | 0.6 - 0.4 * geon.cos(2 * math.pi * geon.iota(H6) / constant(5))
signal.windows.bartlett | torch.signal.windows.bartlett(6, dtype=torch.double) | 1 - abs(2 * geon.iota(H6) / constant(5) - 1)
signal.windows.cosine | torch.signal.windows.cosine(6, dtype=torch.double) | geon.sin(math.pi * (geon.iota(H6) + constant(0.5)) / 6)
signal.windows.exponential | torch.signal.windows.exponential(6, dtype=torch.double) | geon.exp(-abs(geon.iota(H6) - constant(2.5)))
signal.windows.gaussian | torch.signal.windows.gaussian(6, std=1.5, dtype=torch.double) | geon.exp(-geon.square((geon.iota(H6) - constant(2.5)) / 1.5) / 2)
signal.windows.kaiser | torch.signal.windows.kaiser(6, beta=3.0, dtype=torch.double) | geon.i0(3 * geon.sqrt(1 - geon.square(2 * geon.iota(H6) / constant(5) - 1))) / geon.i0(constant(3))

cat | torch.cat([x, u], 1) | geon.concat([x, u], B)
hstack, column_stack | torch.hstack([x, u]) | geon.concat([x, u], B)
vstack | torch.vstack([x, u]) | geon.concat([x, u], A)
stack, dstack | torch.stack([x, u]) | geon.stack([x, u], K)
split, split.list_args, chunk, unsafe_split, unsafe_chunk, split_with_sizes, split_with_sizes_copy, tensor_split, hsplit | torch.split(x, 2, 1) | (x[:, :2], x[:, 2:])
vsplit | torch.vsplit(x, [1]) | (x[:1], x[1:])
dsplit | torch.dsplit(b, [1]) | (b[..., :1], b[..., 1:])
unbind, unbind_copy | torch.unbind(x) | (x[0], x[1], x[2])
select | torch.select(x, 1, 2) | x[:, 2]
slice, narrow, narrow_copy | torch.narrow(x, 1, 1, 2) | x[:, 1:3]
__getitem__ | x[1, ::2] | x[1, ::2]
select_scatter | torch.select_scatter(x, v, 1, 2) | geon.update(x, v, {B: 2})
slice_scatter | torch.slice_scatter(x, u[:, :2], 1, 1, 3) | geon.update(x, u[:, :2], {B: slice(1, 3)})
squeeze, squeeze.multiple, squeeze_copy | x[:, :1].squeeze(1) | x[:, :1][:, 0]
unsqueeze, unsqueeze_copy | x.unsqueeze(0) | geon.expand(x, geon.Axis("one", 1))
atleast_1d | torch.atleast_1d(x) | x
atleast_2d | torch.atleast_2d(v) | geon.expand(v, geon.Axis("one", 1))
atleast_3d | torch.atleast_3d(x) | geon.expand(x, geon.Axis("one", 1), 2)
permute, permute_copy, transpose, transpose_copy, t, t_copy, T, H, mT, mH, movedim | x.T | x.reorder([B, A])
flatten, ravel, reshape, reshape_as, view, view_as, view_copy | torch.flatten(x) | geon.flatten(x)
unflatten | torch.unflatten(x, 1, (2, 2)) | geon.unflatten(x, B, [geon.Axis("P", 2), geon.Axis("Q", 2)])
broadcast_to, expand, expand_as, expand_copy | v[:, None].expand(3, 4) | v.broadcast([A, B])
broadcast_tensors | torch.broadcast_tensors(v[:, None], w) | (v.broadcast([A, B]), w.broadcast([A, B]))
sum_to_size | x.sum_to_size(1, 4)[0] | geon.sum(x, A)
repeat, tile | x.tile(2, 1) | geon.tile(x, {A: 2})
repeat_interleave | x.repeat_interleave(2, 0) | geon.repeat(x, {A: 2})
flip | torch.flip(x, [0, 1]) | geon.flip(x, [A, B])
fliplr | torch.fliplr(x) | geon.flip(x, B)
flipud | torch.flipud(x) | geon.flip(x, A)
roll | torch.roll(x, 1, 0) | geon.roll(x, {A: 1})
rot90 | torch.rot90(x) | geon.flip(x, B).reorder([B, A])
gather, take_along_dim | torch.gather(x, 1, i[:, None])[:, 0] | geon.take_along(x, i, B)
index_select | torch.index_select(y, 0, i) | geon.gather(y, i, B)
take | torch.take(x, i) | geon.gather(geon.flatten(x, [A, B], geon.Axis("F")), i, "F")
index_fill | torch.index_fill(y, 0, i, 7.0) | geon.scatter(y, i, 7.0, B)
index_copy | w.index_copy(0, torch.tensor([2, 0]), e[:2]) | geon.scatter(w, geon.constant([2, 0], [C]), e[:2].rename({"E": "C"}), B)
index_add, scatter_add, scatter_reduce.sum | torch.index_add(w, 0, i, v) | geon.scatter(w, i, v, B, mode="add")
index_reduce.prod, scatter_reduce.prod | torch.index_reduce(w, 0, i, v, "prod") | geon.scatter(w, i, v, B, mode="multiply")
index_reduce.amin, scatter_reduce.amin | torch.index_reduce(w, 0, i, v, "amin") | geon.scatter(w, i, v, B, mode="min")
index_reduce.amax, scatter_reduce.amax | torch.index_reduce(w, 0, i, v, "amax") | geon.scatter(w, i, v, B, mode="max")
index_reduce.mean, scatter_reduce.mean | torch.index_reduce(w, 0, i, v, "mean") | geon.scatter(w, i, v, B, mode="mean")
scatter, index_put, put | w.scatter(0, torch.tensor([2, 0]), e[:2]) | geon.scatter(w, geon.constant([2, 0], [C]), e[:2].rename({"E": "C"}), B)
masked_fill | x.masked_fill(m, 7.0) | geon.where(m, 7.0, x)
masked_scatter | x.masked_scatter(m, u) | geon.masked_scatter(x, m, geon.flatten(u, [A, B], geon.Axis("F")))
masked_select | torch.masked_select(x, m) | geon.compress(x, m, geon.Axis("M", 6)).values
nonzero, nonzero_static, argwhere | torch.nonzero_static(e > 0, size=5, fill_value=-1)[:, 0] | geon.nonzero(e > 0, geon.Axis("M", 5))[0]["E"]
_segment_reduce.lengths, _segment_reduce.offsets | torch.segment_reduce(v, "sum", lengths=torch.tensor([2, 1])) | geon.segment_sum(v, geon.constant([0, 0, 1], [A]), C)
unravel_index | torch.unravel_index(i, (2, 2)) | (i // 2, i % 2)
to | x.to(torch.float32) | x.cast("float32")
item | torch.tensor(v.sum().item()) | geon.sum(v).cast("float32")
ones_like | torch.ones_like(x) | geon.constant(1.0, x.axes, "float64")

cholesky, linalg.cholesky, linalg.cholesky_ex | torch.linalg.cholesky(p) | geon.linalg.cholesky(p, [A, A.prime])
cholesky_solve | torch.cholesky_solve(v[:, None], torch.linalg.cholesky(p))[:, 0] | geon.linalg.solve(p, v, [A, A.prime])
cholesky_inverse | torch.cholesky_inverse(torch.linalg.cholesky(p)) | geon.linalg.inv(p, [A, A.prime])
linalg.det | torch.linalg.det(p) | geon.linalg.det(p, [A, A.prime])
logdet | torch.logdet(p) | geon.linalg.slogdet(p, [A, A.prime])[1]
linalg.slogdet | torch.linalg.slogdet(p) | geon.linalg.slogdet(p, [A, A.prime])
linalg.inv, linalg.inv_ex | torch.linalg.inv(p) | geon.linalg.inv(p, [A, A.prime])
linalg.solve, linalg.solve_ex | torch.linalg.solve(p, v) | geon.linalg.solve(p, v, [A, A.prime])
triangular_solve, linalg.solve_triangular | torch.linalg.solve_triangular(p.tril(), v[:, None], upper=False)[:, 0] | geon.linalg.triangular_solve(p, v, [A, A.prime])
linalg.matrix_power | torch.linalg.matrix_power(s, 2) | geon.contract([s, s.rename({A.prime: "Z", A: "A'"})], [A, "Z"])

fft.fft | torch.fft.fft(z) | geon.fft.fft(z, B)
fft.ifft | torch.fft.ifft(z) | geon.fft.ifft(z, B)
fft.fft2, fft.fftn | torch.fft.fft2(z) | geon.fft.fftn(z, [A, B])
fft.ifft2, fft.ifftn | torch.fft.ifft2(z) | geon.fft.ifftn(z, [A, B])
fft.rfft | torch.fft.rfft(x) | geon.fft.rfft(x, B)
fft.irfft | torch.fft.irfft(z, 6) | geon.fft.irfft(z, B, 6)
fft.rfft2, fft.rfftn | torch.fft.rfft2(x) | geon.fft.rfftn(x, [A, B])
fft.irfft2, fft.irfftn | torch.fft.irfft2(z, (3, 6)) | geon.fft.irfftn(z, [A, B], 6)
fft.hfft | torch.fft.hfft(z, 6) | 6 * geon.fft.irfft(geon.conj(z), B, 6)
fft.ihfft | torch.fft.ihfft(x) | geon.conj(geon.fft.rfft(x, B)) / 4
fft.hfft2, fft.hfftn | torch.fft.hfft2(z, (3, 6)) | 18 * geon.fft.irfftn(geon.conj(z), [A, B], 6)
fft.ihfft2, fft.ihfftn | torch.fft.ihfft2(x) | geon.conj(geon.fft.rfftn(x, [A, B])) / 12
fft.fftshift | torch.fft.fftshift(x) | geon.fft.fftshift(x, [A, B])
fft.ifftshift | torch.fft.ifftshift(x) | geon.fft.ifftshift(x, [A, B])
real | torch.real(z) | geon.real(z)
imag | torch.imag(z) | geon.imag(z)
angle | torch.angle(z) | geon.angle(z)
complex | torch.complex(x, u) | geon.as_complex(x, u)
isreal | torch.isreal(z) | geon.imag(z) == 0
polar | torch.polar(t, x) | geon.as_complex(t * geon.cos(x), t * geon.sin(x))
view_as_real | torch.view_as_real(z) | geon.stack([geon.real(z), geon.imag(z)], C, 2)
view_as_complex | torch.view_as_complex(torch.stack([x, u], -1)) | geon.as_complex(x, u)
cdouble | x.cdouble() | x.cast("complex128")
cfloat | x.cfloat() | x.cast("complex64")
"""

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
    **dict.fromkeys("torch._scaled_mm torch._scaled_mm_v2".split(), "there are no float8 dtypes"),
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
    "special.airy_ai": "no formula for Airy functions yet",
}
