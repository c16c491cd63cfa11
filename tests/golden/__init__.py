"""Programs with the text that geon makes of them: a change to any of it is seen in review.

``NAME.kernels.txt`` has the kernels in order, ``NAME.plan.txt`` their memory, ``NAME.c.txt`` the C
that is the program's own, ``NAME.py.txt`` its NumPy program; ``shared.c.txt`` has what C programs
share, once, but for the units that are files of ``native/c``; ``KERNELS.md`` has the kernels of all
programs in words. Nothing here depends on the machine, and no C compiler is needed.

    python -m tests.golden              # what would change, as a diff; exit 1 where something would
    python -m tests.golden --update     # write all of it anew
"""
