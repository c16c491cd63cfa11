"""geon.eager: arrays that are computed when they are looked at, and remember their graph."""

from .arrays import Array, array
from .evaluation import sync, use
from .functions import function, graph
from .gradients import grad, no_grad
from .recording import install
from .variables import Parameter, run, variable

install()
