"""Common axes, all of open length: ``import geon.frontends.base.axis as ax``, then ``ax.C``.

An axis is identified by its name: ``ax.N`` and ``geon.Axis("N")`` are equal. ``ax.C.length = 3``
gives the open name C a default length; ``geon.Axis("C", 3)`` is another axis, of fixed length, that
matches it.
"""

from __future__ import annotations

from ...op_graph.axes.axes import Axis

B = Axis("B")  # examples of a batch, if the time axis is called T
C = Axis("C")  # channels or features
D = Axis("D")  # depth of a volume
E = Axis("E")  # features of an embedding
F = Axis("F")  # frequency, or features between two layers
G = Axis("G")  # groups of channels
H = Axis("H")  # height of an image; hidden units
J = Axis("J")  # offset between the channels of a filter
K = Axis("K")  # filters, or output channels
L = Axis("L")  # layers
M = Axis("M")  # depth of a result
N = Axis("N")  # examples of a batch
P = Axis("P")  # height of a result
Q = Axis("Q")  # width of a result
R = Axis("R")  # height of a filter
S = Axis("S")  # width of a filter
T = Axis("T")  # time, or depth of a filter
V = Axis("V")  # words of a vocabulary
W = Axis("W")  # width of an image
X = Axis("X")  # inputs
Y = Axis("Y")  # outputs or classes
Z = Axis("Z")  # latent features
