"""Another revision of geon, installed into a folder of its own: what ``make bench BASE=...``
measures beside the working tree."""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from .processes import ROOT

FOLDER = ROOT / ".bench-base"


class UnknownRevisionError(Exception):
    """A revision that git does not know, or that cannot be installed; the text says why."""


def installed(revision: str) -> Path:
    """The folder that a revision is installed in, with its extension built; kept by its commit."""
    commit = ran(["git", "rev-parse", "--verify", f"{revision}^{{commit}}"]).decode().strip()
    folder = FOLDER / f"{commit[:16]}-{sys.implementation.cache_tag}"
    if folder.exists():
        return folder
    FOLDER.mkdir(exist_ok=True)
    packed = ran(["git", "archive", "--format=tar", commit])
    with tempfile.TemporaryDirectory(dir=FOLDER) as made:
        source, target = Path(made, "source"), Path(made, "installed")
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(source, filter="data")
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        ran([*pip, "--no-deps", "--target", str(target), str(source)])
        target.rename(folder)
    return folder


def ran(command: list[str]) -> bytes:
    """What a command prints; ``UnknownRevisionError`` where it fails."""
    done = subprocess.run(command, capture_output=True, cwd=ROOT)
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines() or ["no reason given"]
        raise UnknownRevisionError(f"{' '.join(command[:3])}: {said[-1]}")
    return done.stdout
