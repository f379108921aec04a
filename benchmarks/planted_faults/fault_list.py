"""The faults of `faults.toml`: read, planted in a copy one at a time, and taken out again."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

LIST = Path(__file__).with_name("faults.toml")


class NotPlantable(Exception):
    """A fault that does not fit the file in which it is to be planted."""


@dataclass(frozen=True)
class Fault:
    """One change of one file; what its keys mean stands in `faults.toml`."""

    name: str
    file: str
    old: str
    new: str
    means: str
    tests: tuple[str, ...]

    @property
    def change(self) -> str:
        """Name what is changed: a fault that was written anew is another one."""
        return hashlib.sha256("\0".join((self.file, self.old, self.new)).encode()).hexdigest()[:12]


def read_faults() -> list[Fault]:
    """Return the list; raise NotPlantable for two faults of one name."""
    found = [
        Fault(**{**one, "tests": tuple(one["tests"])})
        for one in tomllib.loads(LIST.read_text(encoding="utf-8"))["fault"]
    ]
    names = [fault.name for fault in found]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise NotPlantable(f"two faults are called {', '.join(twice)}")
    return found


@contextmanager
def planted(fault: Fault, folder: Path) -> Iterator[Path]:
    """Plant a fault in a copy of the repository for as long as the block lasts. Raises NotPlantable."""
    path = folder / fault.file
    sound = path.read_text(encoding="utf-8")
    if (count := sound.count(fault.old)) != 1:
        raise NotPlantable(f"{fault.name}: its old text stands {count} times in {fault.file}")
    try:
        _write(path, sound.replace(fault.old, fault.new))
        yield path
    finally:
        _write(path, sound)


def _write(path: Path, text: str) -> None:
    """Write a source file; what was compiled of it goes, since it may be of the same second and size."""
    path.write_text(text, encoding="utf-8")
    for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        compiled.unlink()


def fault_of_parsing(path: Path) -> str:
    """Return why a source file cannot be parsed; nothing where it can."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        try:
            compile(text, str(path), "exec", dont_inherit=True)
        except SyntaxError as error:
            return str(error)
        return ""
    return _fault_of_script(text)


def _fault_of_script(text: str) -> str:
    node = shutil.which("node")
    if node is None:
        return "no node here: scripts of pages cannot be parsed"
    with tempfile.TemporaryDirectory(prefix="planted-") as folder:
        module = Path(folder) / "script.mjs"
        module.write_text(text, encoding="utf-8")
        done = subprocess.run([node, "--check", str(module)], capture_output=True, text=True, check=False)
    return done.stderr.strip() if done.returncode else ""
