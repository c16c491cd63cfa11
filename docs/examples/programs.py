"""Programs and texts"""

from .begin import *

# %% make_transformer
numpy = geon.make_transformer("numpy")
print(numpy.computation(geon.sum(x))())
numpy.close()
refused(lambda: geon.make_transformer("abacus"))

# %% text
print(geon.text(geon.tanh(x * n) + 1))
refused(lambda: geon.text("x"))

# %% find
inner = geon.tanh(x, name="inner")
print(geon.find("inner", geon.sum(inner * n)) is inner)

# %% dumps
p = geon.placeholder([B], name="p")
print(geon.dumps(geon.tanh(p)))

# %% loads
p = geon.placeholder([B], name="p")
(again,) = geon.loads(geon.dumps(geon.tanh(p)))
print(again, again.placeholders(), again is geon.tanh(p))
refused(lambda: geon.loads("hello"))

# %% Transformer
p = geon.placeholder([A, B], name="p")
w = geon.Variable([B], initial_value=[1.0, 2.0, 3.0], name="w")
with geon.make_transformer("numpy") as t:
    f = t.computation({"product": geon.dot(p, w), "total": geon.sum(p)}, p, name="forward")
    print(f(np.ones((2, 3))))
    t.set(w, [0, 0, 1])
    print(t.values(), f.axes)
refused(lambda: f(np.ones((2, 3))))

# %% Computation
N = geon.Axis("N")
p = geon.placeholder([N, B], name="p")
f = transformer.computation(geon.softmax(p, B), p, name="share")
print(f(np.ones((4, 3))).shape, f(p=np.zeros((1, 3))))
print(f.peak_bytes(), f.peak_bytes({N: 100}))
print(f.explain("schedule"))
refused(lambda: f(np.ones((4, 2))))

# %% Op
p = geon.placeholder([B], name="p")
y = geon.tanh(p * 2, name="y")
print(y.primitive.name, y.name, y.args, y.axes, y.dtype, y.file_info)
print(y.placeholders(), geon.tanh(p * 2) is y)

# %% Tensor
y = x * n
print(y.axes, y.dtype, y.shape, y[0].axes, y[{B: slice(0, 2)}].axes)
show(y.sum("A").max())
show(y.rename({"A": "K"}).cast("int32"))
refused(lambda: bool(x > 0))
