"""Data frames of NNC: columns whose values are computed for the rows that are asked for."""

from .frame import DataFrame
from .images import Jitter
from .iterators import DataIterator

__all__ = ["DataFrame", "DataIterator", "Jitter"]
