"""Whether a worker on another computer may work: the same software, and the same folders, which it may write to."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from storage.names import MANIFEST

SAME = ("kitchensync", "numpy", "scipy", "h5py")
"""Packages of which another version may give another answer."""


def facts(recordings: list[str], writes: str | None) -> dict[str, Any]:
    """Tell what this process has and sees: versions; by recording its manifest's hash, and if it may write.

    `writes` is the folder in a recording that is written to: a name, "" for the recording's own, None for none.
    """
    return {"versions": versions(), "recordings": {path: _look(Path(path), writes) for path in recordings}}


def versions() -> dict[str, str]:
    """Return the versions that answers depend on."""
    return {"python": ".".join(map(str, sys.version_info[:2])), **{name: _version(name) for name in SAME}}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "absent"


def _look(recording: Path, writes: str | None) -> dict[str, Any]:
    try:
        digest = hashlib.sha256((recording / MANIFEST).read_bytes()).hexdigest()
    except OSError as error:
        return {"manifest": None, "why": (error.strerror or str(error)).lower(), "writes": False}
    place = recording / writes if writes and (recording / writes).is_dir() else recording
    return {"manifest": digest, "writes": writes is None or os.access(place, os.W_OK | os.X_OK)}


def one_of_each_folder(recordings: Iterable[Path]) -> list[str]:
    """Choose what a worker is asked about: the first recording of each folder."""
    chosen: dict[Path, str] = {}
    for path in recordings:
        chosen.setdefault(path.absolute().parent, str(path.absolute()))
    return list(chosen.values())


def unfit(there: dict[str, Any], here: dict[str, Any]) -> str:
    """Say why a worker with the facts `there` may not work for one with the facts `here`; empty where it may."""
    said = [
        f"{name} {there['versions'].get(name)} instead of {wanted}"
        for name, wanted in here["versions"].items()
        if there["versions"].get(name) != wanted
    ]
    for path, seen in there["recordings"].items():
        if seen["manifest"] is None:
            said.append(f"does not see {path} ({seen['why']})")
        elif seen["manifest"] != here["recordings"][path]["manifest"]:
            said.append(f"sees another recording at {path}")
        elif not seen["writes"]:
            said.append(f"may not write to {path}")
    return ", ".join(said)
