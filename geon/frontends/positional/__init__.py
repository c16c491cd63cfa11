"""Arrays whose axes are addressed by position, over tensors with named axes.

Importers of models (ONNX, ``torch.export``, jaxprs) share this package: it knows no file format.

- ``values``: ``Array`` (a tensor with its axes in order), ``Host`` (an array known when the model
  is imported, whose elements may be length expressions), ``Parameter`` (a variable of the model)
- ``folding``: arithmetic on host values
- ``elementwise``: alignment of operands from the right, and elementwise functions
- ``movement``: transpose, reshape, expand, concat, slice, pad and tile
- ``indexing``: gather along a position
- ``reductions``, ``products``: reductions over positions, matrix products with batch dimensions
"""
