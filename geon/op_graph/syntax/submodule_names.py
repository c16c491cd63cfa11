"""Foreign names in submodules, each with its replacement in geon.

Users look for them in ``geon.linalg``, ``geon.fft`` and ``geon.distributions``."""

from __future__ import annotations

_SYMMETRIC = (
    "geon.linalg.eigh(x, [I, J]) for a symmetric or Hermitian matrix; geon has no eigenvalues of "
    "other matrices"
)
_LU = "geon.linalg.solve(a, b, [I, J]), which factorises; geon.linalg.det for the determinant"
_NO_INDEFINITE = "geon.linalg.solve(a, b, [I, J]); geon has no LDL factorisation"

LINALG = {
    "cho_solve": "geon.linalg.cholesky_solve(factor, b, [I, J])",
    "cholesky_ex": "geon.linalg.cholesky(x, [I, J], check=False)",
    "cross": "geon.cross(x, y, A)",
    "diagonal": "geon.diagonal(x, [I, J])",
    "eig": _SYMMETRIC,
    "eigvals": _SYMMETRIC,
    "inv_ex": "geon.linalg.inv(a, [I, J])",
    "ldl_factor": _NO_INDEFINITE,
    "ldl_solve": _NO_INDEFINITE,
    "lu": _LU,
    "lu_factor": _LU,
    "lu_solve": _LU,
    "matmul": "geon.dot(x, y, A)",
    "matrix_exp": "geon.linalg.expm(a, [I, J])",
    "matrix_transpose": "nothing: axes have names, so x needs no transpose; or geon.reorder",
    "multi_dot": "geon.dot(geon.dot(x, y, A), z, B)",
    "norm": "geon.L2_norm(x, A) of vectors, or geon.linalg.matrix_norm(x, [I, J])",
    "outer": "x * y, of tensors over different axes",
    "solve_ex": "geon.linalg.solve(a, b, [I, J])",
    "solve_triangular": "geon.linalg.triangular_solve(a, b, [I, J])",
    "svdvals": "geon.linalg.svd(x, [I, J])[1]",
    "tensordot": "geon.dot(x, y, [A, B])",
    "trace": "geon.sum(geon.diagonal(x, [I, J]))",
    "vecdot": "geon.dot(x, y, A)",
    "vector_norm": "geon.L2_norm(x, A)",
}

FFT = {
    "fft2": "geon.fft.fftn(x, [A, B])",
    "ifft2": "geon.fft.ifftn(x, [A, B])",
    "irfft2": "geon.fft.irfftn(x, [A, B])",
    "rfft2": "geon.fft.rfftn(x, [A, B])",
    "fftconvolve": "geon.fft.convolve(x, y, A)",
    "hfft": "geon.fft.irfft(geon.conj(x), A, norm='forward')",
    "ihfft": "geon.conj(geon.fft.rfft(x, A, norm='forward'))",
}

DISTRIBUTIONS = {
    "AffineTransform": "geon.distributions.affine(location, scale)",
    "Chi2": "geon.distributions.ChiSquare(degrees)",
    "ExpTransform": "geon.distributions.EXP",
    "MixtureSameFamily": "geon.distributions.Mixture(weights, components)",
    "OneHotCategorical": "geon.distributions.Multinomial(1, p)",
    "SigmoidTransform": "geon.distributions.SIGMOID",
    "SoftplusTransform": "geon.distributions.SOFTPLUS",
    "TransformedDistribution": "geon.distributions.Transformed(base, transform)",
    "expon": "geon.distributions.Exponential(scale), whose scale is 1 / rate",
    "kl": "geon.distributions.kl_divergence(p, q)",
    "norm": "geon.distributions.Normal(location, scale)",
}

# Methods and attributes of distributions.
METHODS = {
    "batch_shape": "d.axes",
    "event_shape": "d.event_axes",
    "icdf": "d.quantile(p)",
    "loc": "d.location",
    "logpdf": "d.log_prob(x)",
    "logpmf": "d.log_prob(x)",
    "log_cdf": "geon.log(d.cdf(x))",
    "pdf": "d.prob(x)",
    "pmf": "d.prob(x)",
    "ppf": "d.quantile(p)",
    "rsample": "d.sample(random, axes), which has derivatives by the parameters",
    "rvs": "d.sample(geon.Random(seed), axes)",
    "sf": "1 - d.cdf(x)",
    "stddev": "d.std",
    "survival_function": "1 - d.cdf(x)",
    "var": "d.variance",
}
