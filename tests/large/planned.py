"""Which programs a run has: each constant's lengths in turn, two or three to a program."""

import random

from .constants import aims
from .programs import grown


def plan(seed, count):
    """The aims of so many programs: every aim before any comes again, in an order of the seed."""
    chosen = random.Random(f"plan {seed}")
    waiting, made = [], []
    for _ in range(count):
        together = []
        for _ in range(chosen.choice([1, 2, 2])):
            if not waiting:
                waiting = rounds(chosen)
            together.append(waiting.pop())
        made.append(together)
    return made


def enough(seed):
    """The fewest programs of a run that together aim at every constant."""
    first = {}
    for number, together in enumerate(plan(seed, len(aims()))):  # as many aims, or more
        for aim in together:
            first.setdefault(aim.constant, number)
    return max(first.values()) + 1


def rounds(chosen):
    """All aims, in an order in which each constant comes early."""
    lists = [list(each) for each in aims().values()]
    for each in lists:
        chosen.shuffle(each)
    found = []
    while lists:
        chosen.shuffle(lists)
        found += [each.pop() for each in lists]
        lists = [each for each in lists if each]
    return found[::-1]


def program(seed, number, count):
    """The program of this number in a run."""
    return grown(seed, number, plan(seed, count)[number])
