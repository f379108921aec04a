"""The commands in the how-to pages run in their order."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from kitchensync.cli import main
from kitchensync.recipe_app.commands.graph.group import graph

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("make-error-scripts.md", "start-a-graph-from-a-recipe.md")


@pytest.mark.parametrize("page", PAGES)
def test_every_line_of_the_page_works(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "docs" / "how-to" / page).read_text(encoding="utf-8")
    shutil.copytree(
        ROOT / "kitchensync" / "examples" / "recipes", tmp_path / "kitchensync" / "examples" / "recipes"
    )
    monkeypatch.chdir(tmp_path)
    for recipe in re.findall(r"```cooklang\n(.*?)```", text, re.DOTALL):
        (tmp_path / "eggs.cook").write_text(recipe, encoding="utf-8")
    lines = re.findall(r"(?m)^    kitchensync graph (.+)$", text)
    assert len(lines) >= 6
    for line in lines:
        arguments, _, target = line.partition(" > ")
        result = CliRunner().invoke(main, ["graph", *shlex.split(arguments)])
        assert result.exit_code == 0, f"{line}: {result.stderr}"
        if target:
            (tmp_path / target).write_text(result.stdout, encoding="utf-8")


def test_the_reference_names_every_command() -> None:
    page = (ROOT / "docs" / "reference" / "graph-format.md").read_text(encoding="utf-8")
    for name in graph.commands:
        assert f"| `{name}` |" in page, name
