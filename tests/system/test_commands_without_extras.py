"""In an installation without extras every command shows its help; the few that cannot name the extra to install."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow
NEED_AN_EXTRA = {"annotations", "app", "backup", "restore", "take-dump", "export lerobot"}
PROGRAM = """
import importlib.metadata, json, re, sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in blocked:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

requires = importlib.metadata.requires("kitchensync")
extra = {re.match(r"[\\w-]+", line)[0].lower() for line in requires if "extra ==" in line}
core = {re.match(r"[\\w-]+", line)[0].lower() for line in requires if "extra ==" not in line}
modules = importlib.metadata.packages_distributions()
of_extras = extra - core - {"kitchensync"}
blocked = {name for name, owners in modules.items() if {owner.lower() for owner in owners} & of_extras}
sys.meta_path.insert(0, Missing())

import click
from click.testing import CliRunner
from kitchensync.cli import main

def failing(group, words):
    context = click.Context(group)
    for word in group.list_commands(context):
        try:
            command = group.get_command(context, word)
            if isinstance(command, click.Group):
                yield from failing(command, [*words, word])
                continue
        except Exception:
            pass
        done = CliRunner().invoke(main, [*words, word, "--help"])
        if done.exit_code:
            yield " ".join([*words, word]), done.output + repr(done.exception)

print(json.dumps({"blocked": sorted(blocked), "failing": dict(failing(main, []))}))
"""


def test_only_commands_that_need_an_extra_ask_for_one() -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=300
    )
    answer = json.loads(done.stdout)
    assert {"pandas", "pyarrow", "sqlalchemy", "fastapi", "open3d"} <= set(answer["blocked"])
    assert set(answer["failing"]) <= NEED_AN_EXTRA
    for name, text in answer["failing"].items():
        assert "kitchensync[" in text, (name, text)
