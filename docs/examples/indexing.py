"""Indexing"""

from .begin import *

# %% gather
table = geon.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [geon.Axis("V", 3), A], name="table")
words = geon.constant([[0, 2], [-1, 1]], [geon.Axis("T", 2), geon.Axis("K", 2)], name="words")
print(geon.gather(table, words, "V").axes)
show(geon.gather(n, geon.constant([2, 0], [A]), B))
rows, columns = geon.constant([0, 1, 1], [B]), geon.constant([2, 0, 2], [B])
show(geon.gather(x.rename({"B": "C"}), {A: rows, "C": columns}))
refused(lambda: transformer.computation(geon.gather(table, words + 9, "V"))())

# %% take_along
largest = geon.argmax(x, B)
show(geon.take_along(x, largest, B))

# %% scatter
show(geon.scatter(x, geon.constant([0, 2], [A]), 9.0, B))
place = geon.constant([0, 0, 1], [B], name="place")
show(geon.scatter(geon.broadcast(0.0, [A]), place, n, A, mode="add"))
show(geon.scatter(geon.broadcast(0.0, [A]), place, n, A, mode="mean"))
refused(lambda: geon.scatter(x, place, 1.0, "Z"))

# %% update
show(geon.update(x, 0.0, {B: slice(0, 2)}))
show(geon.update(x, 100.0, (1, 2)))
refused(lambda: geon.update(x, 0.0, {B: 3}))

# %% onehot
show(geon.onehot(n, geon.Axis("K", 4)))
refused(lambda: transformer.computation(geon.onehot(n, A, checked=True))())
refused(lambda: geon.onehot(x, geon.Axis("K", 4)))

# %% nonzero
found = geon.nonzero(x > 0, geon.Axis("K", 5))
print(found.positions, found.count)
print(transformer.computation(found)())
print(transformer.computation(found)().exact())
show(geon.gather(x, found.positions))
refused(lambda: transformer.computation(geon.nonzero(x > 0, geon.Axis("K", 2)))())

# %% compress
found = geon.compress(x, x > 0, geon.Axis("K", 5), fill=-1)
print(transformer.computation(found)())
print(transformer.computation(found)().exact())

# %% masked_scatter
show(geon.masked_scatter(x, x < 0, geon.constant([10.0, 20.0], [geon.Axis("K", 2)])))
