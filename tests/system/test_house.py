"""The guards of the house: what is importable, from where, and that every command explains itself."""

from __future__ import annotations

import importlib
import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from command_tree import COMMANDS

REPOSITORY = Path(__file__).resolve().parents[2]


def child(code: str, cwd: Path) -> str:
    """Ask a fresh interpreter."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], cwd=cwd, capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout


FOLDERS = sorted(path.parent.name for path in (REPOSITORY / "kitchensync").glob("*/__init__.py"))
LINKS = ["calibration", "capture", "recipe_app", "sensors", "storage", "sync"]
"""At the root, for orientation only."""


def test_every_folder_of_the_package_is_found_from_elsewhere(tmp_path):
    code = "import importlib, json\n"
    code += f"names, found = {FOLDERS!r}, lambda n: importlib.import_module(f'kitchensync.{{n}}').__file__\n"
    code += "print(json.dumps([found(n) for n in names]))"
    files = json.loads(child(code, tmp_path))
    assert [Path(file).parent for file in files] == [REPOSITORY / "kitchensync" / name for name in FOLDERS]


def test_the_links_at_the_root_lead_into_the_package_and_no_tool_follows_them():
    listed = subprocess.run(
        ["git", "ls-files", "-s"], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    links = [line.split("\t")[1] for line in listed.stdout.splitlines() if line.startswith("120000")]
    assert links == LINKS
    for name in links:  # a clone without symbolic links has files with their targets
        path = REPOSITORY / name
        target = str(path.readlink()) if path.is_symlink() else path.read_text()
        assert target == f"kitchensync/{name}"
    ignored = (REPOSITORY / ".ignore").read_text().splitlines()[1:]
    pruned = (REPOSITORY / "MANIFEST.in").read_text().splitlines()[1:]
    assert (ignored, pruned) == ([f"/{name}" for name in links], [f"prune {name}" for name in links])


def test_the_package_is_found_in_the_folder_that_contains_the_clone(tmp_path):
    """There the clone itself is a folder of the package's name, without `__init__.py`."""
    (tmp_path / "kitchensync" / "docs").mkdir(parents=True)
    command = [sys.executable, "-c", "import kitchensync; print(kitchensync.__file__)"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == str(REPOSITORY / "kitchensync" / "__init__.py")


IN_TEXT = re.compile(r"from (kitchensync[.\w]*) import \(?([\w, ]+)")
OLD_IN_TEXT = re.compile(rf"(?<!kitchensync\.)\b(?:{'|'.join(FOLDERS)})\.\{{|-m (?:{'|'.join(FOLDERS)})\.")


def is_there(module: str, name: str) -> bool:
    try:
        found = hasattr(importlib.import_module(module), name)
        return found or importlib.util.find_spec(f"{module}.{name}") is not None
    except ImportError:
        return False


@pytest.mark.slow
def test_what_code_inside_strings_and_documents_imports_is_there():
    """Children, stand-ins and examples: nothing else reads these lines before they run."""
    listed = subprocess.run(["git", "ls-files"], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    asked, old = set(), []
    for path in (REPOSITORY / name for name in listed.stdout.splitlines()):
        if path.is_file() and path.suffix in (".py", ".md", ".toml"):
            text = path.read_text(encoding="utf-8")
            old += [(str(path), found) for found in OLD_IN_TEXT.findall(text)]
            for module, names in IN_TEXT.findall(text):
                given = (name.partition(" as ")[0].strip() for name in names.split(","))
                asked |= {(module, name) for name in given if name}
    assert old == []
    assert len(asked) > 2000
    assert {one for one in asked if not is_there(*one)} == set()


def test_nothing_lies_loose_and_tests_are_no_package():
    assert list(REPOSITORY.glob("*.py")) == []
    assert list((REPOSITORY / "tests").rglob("__init__.py")) == []


def test_help_loads_nothing_heavy(tmp_path):
    code = (
        "import sys\nfrom kitchensync.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "print([m for m in ('numpy', 'h5py', 'cv2', 'av', 'redis', 'scipy', 'fastapi') if m in sys.modules])"
    )
    assert child(code, tmp_path).splitlines()[-1] == "[]"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself_with_an_example(name):
    text = COMMANDS[name].help
    assert "Example:" in text
    assert f"kitchensync {name}" in text


def test_wrong_usage_is_exit_code_2():
    for arguments in (["record"], ["nonsense"], ["verify"], ["record", "a", "--nonsense"]):
        command = [str(Path(sys.executable).parent / "kitchensync"), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 2, arguments
        assert "Traceback" not in done.stderr
