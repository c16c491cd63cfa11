"""Activations and losses"""

from .begin import *

# %% relu
show(geon.relu(x))

# %% leaky_relu
show(geon.leaky_relu(x))

# %% elu
show(geon.elu(x))

# %% gelu
show(geon.gelu(x))
show(geon.gelu(x, approximate="tanh"))
refused(lambda: geon.gelu(x, approximate="sigmoid"))

# %% silu
show(geon.silu(x))

# %% sigmoid
show(geon.sigmoid(x))
show(geon.log(geon.sigmoid(1000 * x)))

# %% softplus
show(geon.softplus(x))

# %% softmax
show(geon.softmax(x, B))
show(geon.softmax(n))
refused(lambda: geon.softmax(x))

# %% log_softmax
show(geon.log_softmax(x, B))

# %% cross_entropy_binary
said = geon.sigmoid(x)
show(geon.cross_entropy_binary(said, x > 0, out_axes=A))
refused(lambda: geon.cross_entropy_binary(said, x > 0, out_axes="Z"))

# %% cross_entropy_multi
said = geon.softmax(x, B)
truth = geon.onehot(geon.constant([2, 0], [A]), B)
show(geon.cross_entropy_multi(said, truth, out_axes=A))
refused(lambda: geon.cross_entropy_multi(said, geon.constant([2, 0], [A]), out_axes=A))
