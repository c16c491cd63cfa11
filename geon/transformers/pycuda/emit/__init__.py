"""Stage 6: a plan as a CUDA module and its launches."""
