"""A copy of the committed tree with an environment of its own, in which nothing but the copy is imported.

The environment lends every installed package from the one that runs this, but not its link to the repository. The
commands of the copy's environment, which tests start by the side of their interpreter, run the copy too.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sysconfig
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGE = "kitchensync"
LOCK = Path(".git") / "planted-faults.lock"
"""Says that a folder is such a copy, too."""
MARK = "KITCHENSYNC_PLANTED_FAULTS"
"""A variable that every process in a copy inherits, so that it is found and ended whatever started it."""
SHARED = "KITCHENSYNC_SHARED_DATA"
EXAMPLES = ".hypothesis"
"""Failing examples that a test remembers: those of one fault would help to find the next."""


class NoCopy(Exception):
    """A folder that cannot be used as a copy of the repository."""


@dataclass(frozen=True)
class Clone:
    """A copy and the commit that it is of."""

    folder: Path
    commit: str

    @property
    def bin(self) -> Path:
        """The folder of its commands."""
        return self.folder / ".venv" / "bin"

    @property
    def python(self) -> str:
        """Its interpreter."""
        return str(self.bin / "python")

    def environment(self) -> dict[str, str]:
        """Return the variables for processes in the copy."""
        kept = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
        here = sysconfig.get_path("scripts")
        paths = [path for path in kept.get("PATH", "").split(os.pathsep) if path and path != here]
        data = REPOSITORY.parent / "shared" / "data"
        if SHARED not in kept and data.is_dir():
            kept[SHARED] = str(data)
        return kept | {"PATH": os.pathsep.join([str(self.bin), *paths]), MARK: str(self.folder)}

    def forget_examples(self) -> None:
        """Let the tests begin without what they remember of earlier runs."""
        shutil.rmtree(self.folder / EXAMPLES, ignore_errors=True)
        (self.folder / EXAMPLES).mkdir()


@contextmanager
def clone_in(folder: Path) -> Iterator[Clone]:
    """Make the copy, or take up the one that is there, for this process alone. Raises NoCopy."""
    folder = folder.resolve()
    if not (folder / LOCK).exists():
        if folder.exists() and any(folder.iterdir()):
            raise NoCopy(f"{folder} holds something else; give --copy another folder")
        _git("clone", "--quiet", "--shared", "--no-tags", str(REPOSITORY), str(folder))
    with (folder / LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise NoCopy(f"{folder} is in use by another run") from None
        _git("-C", str(folder), "checkout", "--quiet", "--force", "HEAD", "--", ".")  # a run was killed
        clone = Clone(folder, _git("-C", str(folder), "rev-parse", "HEAD"))
        if not (folder / ".venv" / "lent").exists():
            _make_environment(clone)
        _check_apart(clone)
        yield clone


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoCopy(f"git {words[0]}: {done.stderr.strip()}")
    return done.stdout.strip()


def _make_environment(clone: Clone) -> None:
    """Make an environment that finds the copy first, then the packages that are installed here."""
    home = clone.folder / ".venv"
    venv.EnvBuilder(clear=True, symlinks=True, with_pip=False).create(home)
    names = {"base": str(home), "platbase": str(home)}
    packages = Path(sysconfig.get_path("purelib", vars=names))
    lent = dict.fromkeys((sysconfig.get_path("purelib"), sysconfig.get_path("platlib")))
    (packages / "planted_faults.pth").write_text("\n".join([str(clone.folder), *lent]) + "\n")
    here = Path(sysconfig.get_path("scripts"))
    for command in here.iterdir():
        if command.is_file() and not (clone.bin / command.name).exists():
            _lend(command, clone.bin / command.name)
    (home / "lent").touch()


def _lend(command: Path, place: Path) -> None:
    """Let a command run by the copy's interpreter; a program that is no script stays what it is."""
    content = command.read_bytes()
    if not content.startswith(b"#!"):
        place.symlink_to(command)
        return
    place.write_bytes(content.replace(os.fsencode(command.parent), os.fsencode(place.parent)))
    place.chmod(0o755)


def _check_apart(clone: Clone) -> None:
    """Look where packages come from: by the interpreter, apart, and by the command. Raises NoCopy."""
    code = f"import {PACKAGE}; print({PACKAGE}.__file__)"
    for options in ((), ("-P",), ("-I",)):
        done = _run(clone, clone.python, *options, "-c", code)
        wrong = [line for line in done.stdout.split() if not line.startswith(f"{clone.folder}{os.sep}")]
        if wrong or len(done.stdout.split()) != 1:
            raise NoCopy(f"{clone.folder} imports {', '.join(wrong) or done.stderr.strip()}")
    told = _run(clone, str(clone.bin / PACKAGE), "--help", PYTHONVERBOSE="1").stderr
    if f"{clone.folder / PACKAGE}{os.sep}" not in told:
        raise NoCopy(f"the command of {clone.folder} does not run it")
    if f"{REPOSITORY / PACKAGE}{os.sep}" in told:
        raise NoCopy(f"the command of {clone.folder} imports the repository")


def _run(clone: Clone, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = clone.environment() | variables
    return subprocess.run(
        command, cwd=os.sep, env=environment, capture_output=True, text=True, check=False, timeout=300
    )
