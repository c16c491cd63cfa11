"""Products"""

from .begin import *

# %% dot
C = geon.Axis("C", 2)
w = geon.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [B, C], name="w")
show(geon.dot(x, w))
show(geon.dot(x, x, over=B))
print((x @ w) is geon.dot(x, w))
refused(lambda: geon.dot(x, geon.iota(C)))

# %% contract
C = geon.Axis("C", 2)
w = geon.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [B, C], name="w")
show(geon.contract([x, w, n], [C, A]))
show(geon.contract([x, w], over=B))
refused(lambda: geon.contract([x, w], ["Z"]))
