"""SymPy expressions"""

from .begin import *

# %% from_sympy
import sympy as sp  # isort: skip

a, b = sp.symbols("a b")
made = geon.from_sympy([sp.exp(a) * b, sp.Max(a, b) ** 2], {a: [B], b: ()})
print(made[0].axes, made[0].dtype, made[0].placeholders())
f = transformer.computation(made, geon.find("a", *made), geon.find("b", *made))
print(f([0.0, 1.0, 2.0], 1.5))
i = sp.Symbol("i", integer=True)
total = sp.Sum(sp.IndexedBase("v")[i] * i, (i, 0, 2))
print(transformer.computation(geon.from_sympy(total, {"v": n}))())
refused(lambda: geon.from_sympy(sp.besselj(1, a) + b, {a: ()}))

# %% to_sympy
z = geon.placeholder((), "float64", name="z")
v = geon.placeholder([B], "float64", name="v")
print(geon.to_sympy(geon.silu(z) + geon.deriv(geon.tanh(z), z)))
print(geon.to_sympy(geon.L2_norm(v)))
refused(lambda: geon.to_sympy(geon.sort(v, B)))
