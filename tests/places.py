"""``file:line`` as geon's messages write it, for tests that ask where an error points."""

import re
import sys
from pathlib import Path


def here(offset: int = 0) -> str:
    """``file:line`` of the caller's line plus ``offset``."""
    frame = sys._getframe(1)
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno + offset}"


def placed(message: str) -> str:
    """A pattern of a message that begins with a name: the line of a call stands behind the name."""
    return re.sub(r"^(\w+): ", r"\1 at [^ ]+\.py:\\d+: ", message)
