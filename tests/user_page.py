"""A page of a user's code for ``test_types``: a checker refuses the lines with ``# wrong``."""

import numpy as np

import geon

N, C = geon.Axis("N"), geon.Axis("C", 3)
x = geon.placeholder([N, C], "float32", name="x")
w = geon.Variable(C, initial_value=np.zeros(3), name="w")
y: geon.Tensor = geon.tanh(geon.dot(x, w)) + 1
z: geon.Tensor = x * np.ones(3) + [1.0, 2.0, 3.0]
loss: geon.Tensor = x.sum(C).mean("N").cast("float64")
total: geon.Tensor = geon.sum(x, [C, "N"])
noted: geon.Tensor = geon.sum(x, C, name="total", tags=["a"], follows=[total])
kept: geon.Tensor = geon.max(x, out_axes=(C,))
lengths = x.shape
moved: geon.Tensor = geon.reorder(x, ["C", "N"]).rename({"C": "K"}).broadcast([N, C.named("K")])
gradient: geon.Tensor = geon.deriv(loss, w)
gradients: list[geon.Tensor] = geon.deriv(loss, [w, x])
each: geon.Tensor = geon.deriv(y, w, per=N)
table: list[list[geon.Tensor]] = geon.hessian(loss, [w, x])
jacobian: geon.Tensor = geon.jacobian(y, w)
pushed: geon.Tensor = geon.jvp(y, w, w)
draw: geon.Tensor = geon.Random(0).normal([N, C], std=2.0)
step: geon.VoidOp = geon.assign(w, w - 0.1 * gradient)
best, places = geon.top_k(x, 2, "C")
chosen: geon.Tensor = geon.where(x > 0, x, 0.0)
text: str = geon.text(y)
with geon.lengths({N: 4, "M": 5}):
    pass
N.length = 5
N.length = None
transformer = geon.make_transformer("numpy")
f: geon.Computation = transformer.computation({"y": y, "both": [x, step]}, x, lengths={N: 4})
g = transformer.computation(y, x, lengths={"N": 4}, specialize={"N": 4})
f(np.ones((4, 3)))
f([[1.0, 2.0, 3.0]])
f(x=np.ones((4, 3)))
size = g.peak_bytes({N: 4})
transformer.set(w, [1, 2, 3])
transformer.get(w).sum()
part: geon.Tensor = x[0] + x[{C: slice(0, 2)}][..., 0] + geon.update(x, 0.0, {"C": 1})[:, -1]
counter = geon.persistent_tensor(initial_value=0, dtype="int64", name="counter")

geon.tanh()  # wrong
geon.tanh(x, w)  # wrong
geon.add(x)  # wrong
geon.where(x > 0, x)  # wrong
geon.sum(x, 0)  # wrong
geon.sum(x, axis=C)  # wrong
geon.sum("x")  # wrong
geon.sum(x, name=3)  # wrong
geon.sum(x, tags=3)  # wrong
geon.sum(x, named="a")  # wrong
geon.mean(x, tags="a")  # wrong
left = x + "a"  # wrong
left = x + None  # wrong
left = x.sum(C).foo  # wrong
left = x.T  # wrong
x.mean(1)  # wrong
geon.placeholder(3)  # wrong
geon.placeholder("N")  # wrong
geon.placeholder([N], 3)  # wrong
geon.Variable(C, np.zeros(3))  # wrong
geon.dot(x)  # wrong
geon.dot(x, w, over=3)  # wrong
geon.softmax(x, normalization_axes=1)  # wrong
geon.flip(x, 1)  # wrong
geon.concat([x, x], 0)  # wrong
geon.rename(x, "C")  # wrong
geon.cast(x, 3)  # wrong
geon.deriv(loss, "w")  # wrong
gradients = geon.deriv(loss, w)  # wrong
left = geon.hessian(loss, w)[0][0].foo  # wrong
geon.sum(step)  # wrong
geon.expand(x, "K")  # wrong
geon.top_k(x, "2", C)  # wrong
geon.Random("seed")  # wrong
geon.Random(0).normal(3)  # wrong
geon.assign(w, "0")  # wrong
N.length = "5"  # wrong
transformer.computation("y", x)  # wrong
transformer.computation(3)  # wrong
transformer.computation(y, x, lengths=4)  # wrong
transformer.computation(y, x, inputs=[x])  # wrong
f("a")  # wrong
f(None)  # wrong
transformer.set(w, "0")  # wrong
transformer.set(3, 0)  # wrong
left = x["C"]  # wrong
left = x[1.5]  # wrong
geon.update(x, 0.0, "C")  # wrong
geon.persistent_tensor(shape=[3])  # wrong
geon.Variable(C, initial_value="0")  # wrong
