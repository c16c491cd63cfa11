"""How results are stored, past the caches or not, by what is told to a computation's program."""

from geon.transformers.native.threads import load_pool


def store_past(computation, least):
    """From now on results of so many bytes and more are stored past the caches."""
    library, pool = computation.stages().compiled.library, load_pool()
    library.geon_link(pool.run_address, pool.seat_address, least)
