"""The workloads in PyTorch with ``torch.compile``, where fusing ops can matter."""

from __future__ import annotations

from . import torch_work
from .prepared import Builder
from .torch_work import notes as notes
from .torch_work import start as start
from .torch_work import version as version

torch_work.compiling = True

# Compiling takes tens of seconds; the others are one call into a library either way.
BUILDERS: dict[str, Builder] = {
    kind: torch_work.BUILDERS[kind]
    for kind in (
        "mlp_step gelu block_forward block_gradient stencil_forward stencil_gradient "
        "softmax_forward softmax_backward layernorm_forward layernorm_backward logsumexp "
        "prefix_sums join scatter_add long_chain attention nearest transposed_sum "
        "depthwise depthwise_gradient pooling convolution_step residual_step residual_block "
        "gpt_step lstm_model_step"
    ).split()
}
