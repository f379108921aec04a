"""The guards of the house: what is importable, from where, and that every command explains itself."""

from __future__ import annotations

import configparser
import json
import subprocess
import sys
from pathlib import Path

import click
import pytest

from kitchensync.cli import COMMANDS, main

REPOSITORY = Path(__file__).resolve().parents[2]


def child(code: str, cwd: Path) -> str:
    """Ask a fresh interpreter."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], cwd=cwd, capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout


def test_an_interpreter_elsewhere_sees_our_folders_and_nobody_elses(tmp_path):
    names = sorted(path.parent.name for path in REPOSITORY.glob("*/__init__.py"))
    code = (
        f"import importlib, json\nprint(json.dumps([importlib.import_module(n).__file__ for n in {names!r}]))"
    )
    files = [Path(file) for file in json.loads(child(code, tmp_path))]
    assert [file.parent for file in files] == [REPOSITORY / name for name in names]


def test_the_package_list_is_complete():
    config = configparser.ConfigParser()
    config.read(REPOSITORY / "setup.cfg")
    listed = set(config["options"]["packages"].split())
    ours = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*/__init__.py"],
        cwd=REPOSITORY, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    assert listed == {".".join(Path(path).parent.parts) for path in ours}


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


def commands(command: click.Command, path: str) -> list[tuple[str, click.Command]]:
    """List a command and everything below it."""
    if not isinstance(command, click.Group):
        return [(path, command)]
    context = click.Context(command)
    below = [(name, command.get_command(context, name)) for name in command.list_commands(context)]
    return [item for name, sub in below for item in commands(sub, f"{path} {name}".strip())]


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_explains_itself_with_an_example(name):
    command = main.get_command(click.Context(main), name)
    for path, leaf in commands(command, name):
        assert leaf.help, path
        assert "Example:" in leaf.help, path
        assert f"kitchensync {path}" in leaf.help, path


def test_wrong_usage_is_exit_code_2():
    for arguments in (["record"], ["nonsense"], ["verify"], ["record", "a", "--nonsense"]):
        command = [str(Path(sys.executable).parent / "kitchensync"), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 2, arguments
        assert "Traceback" not in done.stderr
