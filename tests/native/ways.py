"""How results are stored, past the caches or not, by what is told to a computation's program."""


def store_past(computation, least):
    """From now on results of so many bytes and more are stored past the caches."""
    computation.stages().compiled.link(least, least)
