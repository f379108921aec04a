"""What is installed without an extra does what reading needs, and says in one line which extra a command wants."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from functools import cache
from importlib import metadata
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from small_recordings import write_recordings

import kitchensync as ks
from kitchensync.shell.extras import BY_FOLDER, what_to_install

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGE = REPOSITORY / "kitchensync"
FOLDERS = sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))
PARTS = ("data", "record", "app")
"""The extras of which a command names the one of its folder; each other package has an extra of its own."""
HIDING = """
import os, sys
from importlib.abc import MetaPathFinder

class Hiding(MetaPathFinder):
    names = {*os.environ.get("NOT_INSTALLED", "").split()}

    def find_spec(self, fullname, path, target=None):
        if fullname.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)

sys.meta_path.insert(0, Hiding())
"""


packages_distributions = cache(metadata.packages_distributions)


@cache
def brought_by(*extras: str) -> set[str]:
    """All that `pip install kitchensync[extras]` installs, worked out by the standard's own reader of markers."""
    seen: set[tuple[str, frozenset[str]]] = set()
    waiting = [("kitchensync", frozenset(extras))]
    while waiting:
        name, chosen = waiting.pop()
        if (name, chosen) in seen:
            continue
        seen.add((name, chosen))
        try:
            lines = requires(name) or []
        except PackageNotFoundError:
            continue
        for wanted in map(Requirement, lines):
            if wanted.marker is None or any(wanted.marker.evaluate({"extra": one}) for one in (*chosen, "")):
                waiting.append((canonicalize_name(wanted.name), frozenset(wanted.extras)))
    return {name for name, _ in seen}


def modules_outside(*extras: str) -> set[str]:
    """Names that can be imported here, and could not be after installing these extras alone."""
    there = brought_by(*extras)
    return {
        module
        for module, packages in packages_distributions().items()
        if not {canonicalize_name(package) for package in packages} & there
    } - {"pip", "setuptools", "pkg_resources", "_distutils_hack"}


def imported_in(folder: str) -> set[str]:
    found = set()
    for path in (PACKAGE / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {name.name.partition(".")[0] for name in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
                found.add(node.module.partition(".")[0])
    return found


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_extra_of_a_folder_brings_what_its_commands_import(folder):
    missing = imported_in(folder) & modules_outside(BY_FOLDER.get(folder, "data"))
    of_others = {package for part in PARTS for package in brought_by(part)} - brought_by()
    names = packages_distributions()
    assert not [name for name in missing if {canonicalize_name(one) for one in names[name]} & of_others]
    for name in missing:  # those have extras of their own
        assert what_to_install(name, folder), name


def test_all_is_every_extra_but_that_of_development():
    declared = {requirement.name for requirement in map(Requirement, requires("kitchensync") or [])}
    assert brought_by("all") >= {canonicalize_name(name) for name in declared} - brought_by("dev")
    assert not brought_by("all") & {"pytest", "ruff"}


@pytest.mark.parametrize(
    "module", ["numpy", "kitchensync", "kitchensync.nothing", "pytest", "no_such_package"]
)
def test_no_extra_is_named_for_what_none_brings(module):
    assert what_to_install(module) is None


@pytest.fixture(scope="module")
def take(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("core")
    write_recordings(folder / "data")
    return ks.list_recordings(folder / "data")[0]


def with_core_alone(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    (cwd / "hiding").mkdir(exist_ok=True)
    (cwd / "hiding/sitecustomize.py").write_text(HIDING)
    environ = {**os.environ, "PYTHONPATH": str(cwd / "hiding"), "NOT_INSTALLED": " ".join(modules_outside())}
    return subprocess.run(
        [sys.executable, *command], cwd=cwd, env=environ, capture_output=True, text=True, timeout=120
    )


@pytest.mark.slow
@pytest.mark.parametrize("command", ["list", "info", "verify"])
def test_the_core_looks_at_recordings(command, take, tmp_path):
    arguments = ["-P", "-m", "kitchensync", command, take, "--json"]
    done = with_core_alone(*arguments, cwd=tmp_path)
    whole = subprocess.run([sys.executable, *arguments], cwd=tmp_path, capture_output=True, text=True)
    assert not done.stderr
    assert (done.returncode, json.loads(done.stdout)) == (whole.returncode, json.loads(whole.stdout))


READING = """
import sys, kitchensync as ks
with ks.open(sys.argv[1]) as rec:
    assert rec.gopro[0].ndim == 3
    assert len(rec.gyroscope.times) and repr(rec)
    try:
        rec.steps
    except ImportError as error:
        print(error)
"""


@pytest.mark.slow
def test_the_core_reads_from_python(take, tmp_path):
    done = with_core_alone("-P", "-c", READING, take, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "tables need pandas: pip install 'kitchensync[data]'\n"


WITHOUT = (
    ("record", ["record", "x", "--data", "here", "--hololens", "127.0.0.1"]),
    ("record", ["sample", "there"]),
    ("app", ["app", "--data", "here"]),
    ("data", ["report", "TAKE"]),
    ("view", ["view", "TAKE"]),
)


@pytest.mark.slow
@pytest.mark.parametrize(("extra", "words"), WITHOUT, ids=[words[0] for _, words in WITHOUT])
def test_a_command_without_its_extra_says_which(extra, words, take, tmp_path):
    command = [str(take) if word == "TAKE" else word for word in words]
    done = with_core_alone("-P", "-m", "kitchensync", *command, cwd=tmp_path)
    (line,) = done.stderr.splitlines()
    assert done.returncode == 1
    assert line.startswith("kitchensync: ")
    assert f"kitchensync[{extra}]" in line
