"""Special functions"""

from .begin import *

# %% erf
show(geon.erf(x))

# %% erfc
show(1e6 * geon.erfc(geon.constant([1.0, 3.5], [A])))

# %% erfcx
show(geon.erfcx(geon.constant([0.0, 5.0, 1e6], [B])))

# %% erfinv
show(geon.erfinv(geon.constant([-0.5, 0.0, 1.0], [B])))

# %% ndtr
show(geon.ndtr(x))

# %% log_ndtr
show(geon.log_ndtr(x))
show(geon.log_ndtr(-100.0))

# %% lgamma
show(geon.lgamma(geon.constant([0.5, 1.0, 100.0], [B])))

# %% digamma
show(geon.digamma(geon.constant([0.5, 1.0, 100.0], [B])))

# %% polygamma
show(geon.polygamma(1, geon.constant([0.5, 1.0, 100.0], [B])))
refused(lambda: geon.polygamma(-1, x))

# %% ndtri
show(geon.ndtri(geon.constant([0.5, 0.975, 1e-20], [B])))

# %% gammainc
show(geon.gammainc(geon.constant([0.5, 2.0, 100.0], [B]), 2.0))

# %% gammaincc
show(geon.gammaincc(geon.constant([0.5, 2.0, 100.0], [B]), 2.0))

# %% betainc
show(geon.betainc(2.0, 3.0, geon.constant([0.0, 0.25, 1.0], [B])))

# %% zeta
show(geon.zeta(geon.constant([2.0, 4.0], [A])))
show(geon.zeta(2.0, geon.constant([0.5, 10.0], [A])))

# %% orthogonal_polynomial
show(geon.orthogonal_polynomial("legendre", 3, x))
refused(lambda: geon.orthogonal_polynomial("jacobi", 3, x))

# %% spherical_j0
show(geon.spherical_j0(geon.constant([0.0, 0.5, 10.0], [B])))

# %% airy_ai
show(geon.airy_ai(geon.constant([-2.0, 0.0, 5.0], [B])))

# %% airy_aip
show(geon.airy_aip(geon.constant([-2.0, 0.0, 5.0], [B])))

# %% airy_bi
show(geon.airy_bi(geon.constant([-2.0, 0.0, 5.0], [B])))

# %% airy_bip
show(geon.airy_bip(geon.constant([-2.0, 0.0, 5.0], [B])))

# %% i0
show(geon.i0(geon.constant([0.0, 0.5, 10.0], [B])))

# %% i0e
show(geon.i0e(geon.constant([0.0, 0.5, 1000.0], [B])))

# %% i1
show(geon.i1(geon.constant([0.0, 0.5, 10.0], [B])))

# %% i1e
show(geon.i1e(geon.constant([0.0, 0.5, 1000.0], [B])))

# %% j0
show(geon.j0(geon.constant([0.0, 0.5, 10.0], [B])))

# %% j1
show(geon.j1(geon.constant([0.0, 0.5, 10.0], [B])))

# %% y0
show(geon.y0(geon.constant([0.0, 0.5, 10.0], [B])))

# %% y1
show(geon.y1(geon.constant([0.0, 0.5, 10.0], [B])))

# %% k0
show(geon.k0(geon.constant([0.0, 0.5, 10.0], [B])))

# %% k0e
show(geon.k0e(geon.constant([0.0, 0.5, 1000.0], [B])))

# %% k1
show(geon.k1(geon.constant([0.0, 0.5, 10.0], [B])))

# %% k1e
show(geon.k1e(geon.constant([0.0, 0.5, 1000.0], [B])))
