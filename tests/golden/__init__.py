"""Programs with the text that geon makes of them: a change to any of it is seen in review.

``NAME.kernels.txt`` has the kernels in order with their loops, but for loops that an earlier kernel
has in the same words; ``NAME.plan.txt`` has their memory, and ``KERNELS.md`` the kernels of all
programs in words. For two programs and the shortest of each class of kernel,
``NAME.c.txt`` has the program's own C, ``NAME.cu.txt`` its CUDA, ``NAME.py.txt`` its NumPy program;
``shared.c.txt`` has what these C programs share, but for the units that are files of ``native/c``.
Nothing here depends on the machine, and no C compiler is needed.

    python -m tests.golden              # what would change, as a diff; exit 1 where something would
    python -m tests.golden --update     # write all of it anew
"""
