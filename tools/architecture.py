"""The page of the architecture: a drawing and a table of the folders, made from import contract and sources."""

from __future__ import annotations

import ast
import configparser
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "kitchensync"
LAYERS = "importlinter:contract:layers"
WIDTH, ROW, GAP, LEFT = 760, 46, 10, 70
TEXT = """# Architecture

Written by `make docs` from the import contract in `setup.cfg` and from the sources.

Everything is in `kitchensync/`. A folder imports only from folders below it; folders of one row do not import each
other. `import-linter` checks this in `make check`, and that no imports go in circles, between folders or inside one.

![The folders of the package in layers](../pictures/architecture.svg)

`cli` is the table of commands, and `kitchensync/__init__.py` the Python interface. The virtual kitchen is
independent: it imports no other folder, because its truth is what the others are tested against. Only `cli` calls it.
How one thing goes through the folders: [a packet](way-of-a-packet.md), [a video](way-of-a-video.md),
[a touch](way-of-a-touch.md), [a step](way-of-a-step.md).

| folder | purpose | imports |
|---|---|---|
"""


def layers() -> list[list[str]]:
    """Return the folders and modules of each layer, from the top."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    lines = config[LAYERS]["layers"].split("\n")
    return [line.replace(":", "|").replace(" ", "").split("|") for line in lines if line]


def architecture_page() -> str:
    """Return the page, with a row for each folder."""
    folders = [name for layer in layers() for name in layer if (PACKAGE / name).is_dir()]
    rows = [
        f"| `kitchensync/{name}/` | {purpose(name)} | {', '.join(f'`{one}`' for one in imports(name)) or 'none'} |"
        for name in [*folders, "virtual_kitchen"]
    ]
    return TEXT + "\n".join(rows) + "\n"


def purpose(name: str) -> str:
    """Return the first line of what a folder says of itself."""
    tree = ast.parse((PACKAGE / name / "__init__.py").read_text(encoding="utf-8"))
    return (ast.get_docstring(tree) or "").partition("\n")[0]


def imports(name: str) -> list[str]:
    """Return the other folders that the modules of a folder import, sorted."""
    found = set()
    for path in (PACKAGE / name).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kitchensync."):
                found.add(str(node.module).split(".")[1])
    return sorted(found - {name})


def architecture_drawing() -> str:
    """Return the layers as SVG, the highest on top."""
    rows = layers()
    height = len(rows) * (ROW + GAP) + GAP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif">',
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
        f'<path d="M30 {GAP}V{height - 20}m-7 -10l7 10l7 -10" stroke="#555" stroke-width="2" fill="none"/>',
        f'<text x="22" y="{height // 2}" transform="rotate(-90 22 {height // 2})" fill="#555">imports</text>',
    ]
    for number, names in enumerate(rows):
        width = (WIDTH - LEFT - GAP * len(names)) / len(names)
        for place, name in enumerate(names):
            x, y = LEFT + place * (width + GAP), GAP + number * (ROW + GAP)
            shape = f'x="{x:.0f}" y="{y}" width="{width:.0f}" height="{ROW}" rx="6" fill="#e8f0f8" stroke="#4a6fa5"'
            middle = f'x="{x + width / 2:.0f}" y="{y + ROW / 2 + 5:.0f}" text-anchor="middle" fill="#123"'
            parts.append(f"<rect {shape}/><text {middle}>{escape(name)}</text>")
    return "\n".join([*parts, "</svg>"]) + "\n"
