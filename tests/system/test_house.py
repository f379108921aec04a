"""The guards of the house: what is importable, from where, and that every command explains itself."""

from __future__ import annotations

import ast
import configparser
import json
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


FOLDERS = sorted({path.parent.name for path in REPOSITORY.glob("*/__init__.py")} - {"kitchensync"})
"""The folders at the root; each is imported by a link in `kitchensync/`."""


def test_every_folder_is_linked_and_an_interpreter_elsewhere_sees_one_name(tmp_path):
    links = {
        path.name: path.readlink() for path in (REPOSITORY / "kitchensync").iterdir() if path.is_symlink()
    }
    assert links == {name: Path("..") / name for name in FOLDERS}
    code = "import importlib, importlib.util as util, json\n"
    code += f"names, found = {FOLDERS!r}, lambda n: importlib.import_module(f'kitchensync.{{n}}').__file__\n"
    code += "print(json.dumps([[found(n) for n in names], [n for n in names if util.find_spec(n)]]))"
    files, by_folder = json.loads(child(code, tmp_path))
    assert [Path(file).resolve().parent for file in files] == [REPOSITORY / name for name in FOLDERS]
    assert by_folder == []


def test_no_folder_is_imported_by_its_own_name():
    """In the repository that would find it, as a second copy of the same module."""
    found = []
    for path in REPOSITORY.glob("*/**/*.py"):
        if any(part.startswith(".") for part in path.relative_to(REPOSITORY).parts):
            continue
        for node in ast.walk(ast.parse(path.read_bytes())):
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [node.module]
            found += [(str(path), name) for name in names if name.partition(".")[0] in FOLDERS]
    assert found == []


def test_the_package_list_is_complete():
    config = configparser.ConfigParser()
    config.read(REPOSITORY / "setup.cfg")
    listed = set(config["options"]["packages"].split())
    ours = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*/__init__.py"],
        cwd=REPOSITORY, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    packages = {".".join(Path(path).parent.parts) for path in ours}
    assert listed == {"kitchensync"} | {
        name if name.startswith("kitchensync.") else f"kitchensync.{name}"
        for name in packages - {"kitchensync"}
    }


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
