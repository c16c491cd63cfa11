"""Derivatives"""

from .begin import *

# %% deriv
w = geon.Variable([B], initial_value=[1.0, 2.0, 3.0], name="w")
loss = geon.sum(geon.square(geon.dot(x, w)))
slope = geon.deriv(loss, w)
show(slope)
show(geon.deriv(geon.dot(x, w), w, seed=geon.constant([1.0, 0.0], [A])))
show(geon.deriv(geon.square(geon.dot(x, w)), w, per=A))
refused(lambda: geon.deriv(geon.dot(x, w), w))
refused(lambda: geon.deriv(loss, geon.Variable([B], initial_value=0, name="other")))

# %% jacobian
w = geon.Variable([B], initial_value=[1.0, 2.0, 3.0], name="w")
show(geon.jacobian(geon.dot(x, w), w))
print(geon.jacobian(geon.tanh(w), w).axes)

# %% check_gradients
x = geon.placeholder([B], name="x")
geon.check_gradients(geon.sum(geon.tanh(x)), {x: [1.0, 2.0, 3.0]})


@geon.custom_deriv(lambda g, out, x: [g * x])
def squared(x):
    return x * x


refused(lambda: geon.check_gradients(squared, {x: [1.0, 2.0, 3.0]}, each=True))

# %% hessian
w = geon.Variable([B], initial_value=[1.0, 2.0, 3.0], name="w")
show(geon.hessian(geon.sum(w**3), w))
refused(lambda: geon.hessian(w**3, w))

# %% jvp
w = geon.Variable([B], initial_value=[1.0, 2.0, 3.0], name="w")
show(geon.jvp(geon.dot(x, w), w, geon.constant([1.0, 0.0, 0.0], [B])))
refused(lambda: geon.jvp(geon.dot(x, w), w, geon.constant([1.0, 0.0], [A])))

# %% vjp
w = geon.Variable([B], initial_value=[1.0, 2.0, 3.0], name="w")
show(geon.vjp(geon.dot(x, w), w, geon.constant([1.0, 1.0], [A])))

# %% hvp
w = geon.Variable([B], initial_value=[1.0, 2.0, 3.0], name="w")
show(geon.hvp(geon.sum(w**3), w, geon.constant([1.0, 0.0, 1.0], [B])))

# %% stop_gradient
w = geon.Variable([B], initial_value=[1.0, 2.0, 3.0], name="w")
show(geon.deriv(geon.sum(geon.stop_gradient(w) * w), w))


# %% custom_deriv
@geon.custom_deriv(lambda g, out, x: [g])
def rounded(x):
    """Round; derivatives go through as if it did nothing."""
    return geon.round(x)


w = geon.Variable([B], initial_value=[1.2, 2.7, 3.1], name="w")
show(rounded(w))
show(geon.deriv(geon.sum(rounded(w) ** 2), w))


# %% checkpoint
@geon.checkpoint
def layer(x):
    """A layer whose inside is computed once more for derivatives."""
    return geon.tanh(geon.exp(x) * 2)


w = geon.Variable([B], initial_value=[0.1, 0.2, 0.3], name="w")
show(geon.deriv(geon.sum(layer(w)), w))
print(layer.__name__)

# %% remat
w = geon.Variable([B], initial_value=[0.1, 0.2, 0.3], name="w")
y = geon.remat(geon.tanh(geon.exp(w) * 2), policy="nothing")
show(geon.deriv(geon.sum(y), w))
refused(lambda: geon.remat(y, policy="some"))
