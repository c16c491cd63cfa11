"""Further elementwise functions"""

from .begin import *

# %% signbit
show(geon.signbit(x))

# %% copysign
show(geon.copysign(2.0, x))

# %% nextafter
v = geon.constant(np.array([1.0, 0.0], "float32"), [A])
show(geon.nextafter(v, 2.0) - v)
refused(lambda: geon.nextafter(1.0, 2.0))

# %% frexp
mantissa, exponent = geon.frexp(x)
show(mantissa)
show(exponent)

# %% ldexp
show(geon.ldexp(x, n))
refused(lambda: geon.ldexp(x, 0.5))

# %% log2
show(geon.log2(geon.constant([1.0, 8.0, 1e-3], [B])))

# %% log10
show(geon.log10(geon.constant([1.0, 1000.0, 1e-3], [B])))

# %% bitcast
show(geon.bitcast(x, "int32"))
refused(lambda: geon.bitcast(x, "int16"))

# %% gcd
show(geon.gcd(geon.constant([12, -18, 0], [B]), 8))

# %% lcm
show(geon.lcm(geon.constant([12, -18, 0], [B]), 8))

# %% trunc_divide
show(geon.trunc_divide(geon.constant([-7, 7], [A]), 2))
show(geon.trunc_divide(x, 0.75))

# %% fmod
show(geon.fmod(geon.constant([-7, 7], [A]), 3))
show(geon.fmod(x, 0.75))

# %% frac
show(geon.frac(x))

# %% fmax
show(geon.fmax(geon.constant([np.nan, 1.0], [A]), 0.5))

# %% fmin
show(geon.fmin(geon.constant([np.nan, 1.0], [A]), 0.5))

# %% heaviside
show(geon.heaviside(geon.constant([-1.0, 0.0, 2.0], [B]), 0.5))

# %% nan_to_num
show(geon.nan_to_num(geon.constant([np.nan, np.inf], [A]), posinf=9.0))

# %% isclose
show(geon.isclose(x, x + 1e-6))

# %% allclose
show(geon.allclose(x, x + 1e-6))
show(geon.allclose(x, 1.0, atol=2.5, reduction_axes=A))

# %% exp2
show(geon.exp2(n))

# %% float_power
show(geon.float_power(n, -1))

# %% cbrt
show(geon.cbrt(geon.constant([-8.0, 27.0], [A])))

# %% hypot
show(geon.hypot(geon.constant([3.0, 3e30], [A]), geon.constant([4.0, 4e30], [A])))

# %% logaddexp
show(geon.logaddexp(geon.constant([0.0, 1000.0], [A]), geon.constant([0.0, 1000.0], [A])))

# %% logaddexp2
show(geon.logaddexp2(geon.constant([0.0, 1000.0], [A]), geon.constant([0.0, 1000.0], [A])))

# %% xlogy
show(geon.xlogy(geon.constant([0.0, 2.0], [A]), geon.constant([0.0, 3.0], [A])))

# %% xlog1py
show(geon.xlog1py(geon.constant([0.0, 2.0], [A]), geon.constant([-1.0, 1e-6], [A])))

# %% logit
show(geon.logit(geon.constant([0.0, 0.5, 0.9], [B])))

# %% deg2rad
show(geon.deg2rad(geon.constant([90.0, 180.0], [A])))

# %% rad2deg
show(geon.rad2deg(geon.constant([np.pi / 2, np.pi], [A])))

# %% sinc
show(geon.sinc(geon.constant([0.0, 0.5, 1.0], [B])))
