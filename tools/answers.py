"""The page of the JSON objects that commands print with `--json`, made from their declared types."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from typing import Any

import click

from kitchensync.shell.answer import SCHEMA


def answers_page(root: click.Group) -> str:
    """Return the page; nested objects follow the one that names them."""
    lines = [
        "# JSON objects of the commands",
        "",
        "With `--json` a command prints one object; where it refuses, `{schema, status: refused, reason}`.",
    ]
    seen: set[str] = set()
    for schema, command, shape in sorted(declared(root), key=lambda row: row[:2]):
        if schema not in seen:
            seen.add(schema)
            lines += ["", f"## `{schema}`", "", f"`kitchensync {command} --json`", *_table(shape)]
    return "\n".join(lines) + "\n"


def declared(group: click.Group, before: str = "") -> Iterator[tuple[str, str, type]]:
    """Yield schema, command and type of every command with a declared object."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from declared(command, f"{before}{name} ")
        elif command is not None and (schema := getattr(command.callback, SCHEMA, None)):
            function = inspect.unwrap(command.callback)
            found = re.fullmatch(r"Answer\[(\w+)\]", str(function.__annotations__.get("return", "")))
            if found is not None:
                yield schema, f"{before}{name}", resolved(sys.modules[function.__module__], found[1])


def resolved(module: Any, name: str) -> Any:
    """Return what a name in an annotation means, also where it is imported for type checkers alone."""
    if hasattr(module, name):
        return getattr(module, name)
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.ImportFrom) and any((a.asname or a.name) == name for a in node.names):
            return getattr(importlib.import_module(str(node.module)), name)
    return None


def _table(shape: type, depth: int = 0) -> Iterator[str]:
    """Yield a table of the keys of an object, then those of the objects in it."""
    inner: dict[str, type] = {}
    yield ""
    if depth:
        yield f"**{shape.__name__}**: {inspect.getdoc(shape).splitlines()[0]}"
        yield ""
    yield "| key | type | |"
    yield "|---|---|---|"
    for name, written, meaning in _fields(shape):
        yield f"| `{name}` | {written.replace('|', 'or')} | {meaning} |"
        for word in re.findall(r"[A-Z]\w+", written):
            found = resolved(sys.modules[shape.__module__], word)
            if isinstance(found, type) and found.__module__.startswith("kitchensync"):
                inner[word] = found
    for found in inner.values():
        yield from _table(found, depth + 1)


def _fields(shape: type) -> Iterator[tuple[str, str, str]]:
    """Yield name, type as written and meaning of each field; the meaning is the text below it."""
    (body,) = ast.parse(textwrap.dedent(inspect.getsource(shape))).body
    assert isinstance(body, ast.ClassDef)
    for name in map(ast.unparse, body.bases):  # a TypedDict does not know its bases
        base = resolved(sys.modules[shape.__module__], name)
        if getattr(base, "__module__", "").startswith("kitchensync"):
            yield from _fields(base)
    for node, after in zip(body.body, [*body.body[1:], None], strict=True):
        if isinstance(node, ast.AnnAssign):
            text = (
                after.value.value
                if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
                else ""
            )
            yield ast.unparse(node.target), ast.unparse(node.annotation), str(text)
