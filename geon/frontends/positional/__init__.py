"""Arrays whose axes are addressed by position, over tensors with named axes.

Importers of models (ONNX, ``torch.export``, jaxprs) share this package: it knows no file format.

- ``imported_model``: ``ImportedModel``, which all importers return, and ``UnsupportedError``
- ``values``: ``PositionalArray`` (a tensor with its axes in order), ``HostArray`` (an array that is
  known when the model is imported, whose elements may be length expressions), ``Weight`` (a
  variable of the model)
- ``folding``: arithmetic on host values
- ``elementwise``: alignment of operands from the right, elementwise functions, and the names that
  other libraries have for those of geon
- ``reshaping``: reshape, transpose, squeeze and unsqueeze
- ``movement``: concat, slice, split, pad and tile
- ``indexing``: gather along a position
- ``picking``: gather and scatter at index arrays along several positions
- ``reductions``, ``products``: reductions over positions, matrix products with batch dimensions
- ``functions``: quotients, bounds, ranges, extremes, order, running combinations, normalisation and
  draws
- ``networks``: layers, losses and boxes, in layouts of images
- ``sliding``: convolutions, pools and zeros between elements
- ``regions``, ``control``: loops and branches
- ``sampling``: resampling and samples at coordinates; ``fourier``: Fourier transforms
- ``naming``: axes of inputs, lengths as text
- ``programs``: casts, derivatives and tables of operators of importers
"""
