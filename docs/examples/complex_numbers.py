"""Complex numbers"""

from .begin import *

# %% as_complex
show(geon.as_complex(x, 1))
show(x + 1j)
refused(lambda: geon.as_complex(x * 1j, x))

# %% real
show(geon.real((x + 2j) * 1j))
print(geon.real(x) is x)

# %% imag
show(geon.imag((x + 2j) * 1j))
show(geon.imag(x))

# %% conj
show(geon.conj(x + 2j))
print(geon.conj(x) is x)

# %% angle
show(geon.angle(x * 1j))
show(geon.angle(x))
