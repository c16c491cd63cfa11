"""Windows, convolution and pooling"""

from .begin import *

# %% Window
H = geon.Axis("H", 6)
h = geon.cast(geon.iota(H), "float32")
for how in [geon.Window(2), geon.Window(2, stride=2), geon.Window(3, pad="same")]:
    print(geon.window(h, {H: how}).axes)

# %% window
show(geon.window(n, {B: geon.Window(geon.Axis("R", 2))}))
show(geon.window(n, {B: geon.Window(geon.Axis("R", 3), pad=1)}))
refused(lambda: geon.window(n, {B: geon.Window(geon.Axis("R", 4))}))

# %% convolution
R = geon.Axis("R", 2)
w = geon.constant([1.0, -1.0], [R], name="w")
show(geon.convolution(x, w, {B: geon.Window(R)}))
refused(lambda: geon.convolution(x, n, {B: geon.Window(R)}))

# %% transposed_convolution
R = geon.Axis("R", 2)
w = geon.constant([1.0, -1.0], [R], name="w")
show(geon.transposed_convolution(x, w, {B: geon.Window(R)}))

# %% max_pool
show(geon.max_pool(x, {B: geon.Window(2)}))
refused(lambda: geon.max_pool(x, {B: geon.Window(4)}))

# %% average_pool
show(geon.average_pool(x, {B: geon.Window(2)}))
show(geon.average_pool(n, {B: geon.Window(3, pad=1)}))

# %% lp_pool
show(geon.lp_pool(x, {B: geon.Window(2)}, p=2))
refused(lambda: geon.lp_pool(x, {B: geon.Window(2)}, p=0))

# %% resize
show(geon.resize(x, {B: 6}))
show(geon.resize(n, {B: 6}, mode="nearest"))
refused(lambda: geon.resize(x, {B: 6}, mode="cubic"))
