"""Values, variables and axes"""

from .begin import *

# %% Axis
N, C = geon.Axis("N"), geon.Axis("C", 4)
print(repr(N), repr(C), C.length, C.prime, N.length)
N.length = 5
print(transformer.computation(geon.sum(geon.iota(N)))())
N.length = None
refused(lambda: geon.Axis("C", -1))

# %% Axes
axes = geon.Axes(A, B)
print(axes, axes.names, axes.index("B"), axes["A"], B in axes)
print(axes.without(["A"]), axes.same_set(geon.Axes(B, A)))
refused(lambda: geon.Axes(A, A))

# %% constant
show(geon.constant([[1, 2, 3], [4, 5, 6]], [A, B]))
show(geon.constant(0.5, [A]))
print((geon.constant([1, 2, 3], [B]) + x).dtype)
refused(lambda: geon.constant([1, 2], [B]))
refused(lambda: geon.constant(np.ones((2, 3))))

# %% placeholder
N = geon.Axis("N")
p = geon.placeholder([N, B], name="p")
f = transformer.computation(geon.sum(p, B), p)
print(f([[1, 2, 3]]), f(np.ones((4, 3))))
refused(lambda: f([[1, 2]]))
refused(lambda: geon.placeholder([2, 3]))

# %% variable
w = geon.Variable([A, B], initial_value=geon.Random(0).normal([A, B]), name="w")
count = geon.Variable(initial_value=0, dtype="int64", trainable=False, name="count")
print(w, count, w.variables(), count.variables())
update = transformer.computation(geon.assign(count, count + 1))
update(), update()
print(transformer.get(count), transformer.get(w).shape)
refused(lambda: geon.Variable([A, B], np.zeros((2, 3))))

# %% persistent_tensor
step = geon.persistent_tensor(initial_value=0, dtype="int64", name="step")
print(step.persistent, step.trainable)

# %% temporary_tensor
last = geon.temporary_tensor([B], initial_value=0, name="last")
print(last.persistent, last.trainable)

# %% iota
show(geon.iota(B))
show(0.5 * geon.iota(B))
refused(lambda: geon.iota("B"))

# %% lengths
T = geon.Axis("T")
total = geon.sum(geon.iota(T))
with geon.lengths({T: 4}):
    print(transformer.computation(total)())
refused(lambda: transformer.computation(total))

# %% Random
stream = geon.Random(7, name="noise")
noise = stream.normal([A, B], std=0.1)
f = transformer.computation(noise)
print(f(), f(), sep="\n")
show(stream.uniform([B], low=1, high=2))
show(stream.bernoulli([B], p=0.5, dtype="bool"))
show(stream.bits([B]))
refused(lambda: stream.normal([B], std=-1))

# %% tensor_size
N = geon.Axis("N")
p = geon.placeholder([N, B], name="p")
print(transformer.computation([geon.tensor_size(p), geon.tensor_size(p, B)], p)(np.ones((4, 3))))
refused(lambda: geon.tensor_size(p, "Z"))
