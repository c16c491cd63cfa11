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
