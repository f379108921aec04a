"""The page of the JSON objects that commands print with `--json`, made from their declared types."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from functools import partial
from types import GenericAlias, UnionType
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
    for schema, command, shapes in sorted(declared(root), key=lambda row: row[:2]):
        if schema not in seen:
            seen.add(schema)
            lines += ["", f"## `{schema}`", "", f"`kitchensync {command} --json`"]
            for shape in shapes:
                lines += _table(shape, set(), is_named=len(shapes) > 1)
    return "\n".join(lines) + "\n"


def declared(group: click.Group, before: str = "") -> Iterator[tuple[str, str, list[type]]]:
    """Yield schema, command and types of every command with a declared object; some print one of several."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from declared(command, f"{before}{name} ")
        elif command is not None and (schema := getattr(command.callback, SCHEMA, None)):
            function = inspect.unwrap(command.callback)
            found = re.fullmatch(r"Answer\[(.+)\]", str(function.__annotations__.get("return", "")))
            if found is not None:
                yield schema, f"{before}{name}", _shapes_in(found[1], function.__module__)


def _shapes_in(written: str, module: str) -> list[type]:
    """Return the types of this package that an annotation in a module names."""
    named = [resolved(sys.modules[module], word) for word in re.findall(r"[A-Z]\w+", written)]
    return [shape for shape in named if getattr(shape, "__module__", "").startswith("kitchensync")]


def resolved(module: Any, name: str) -> Any:
    """Return what a name in an annotation means, also where it is imported for type checkers alone."""
    if hasattr(module, name):
        return getattr(module, name)
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.ImportFrom) and any((a.asname or a.name) == name for a in node.names):
            return getattr(importlib.import_module(str(node.module)), name)
    return None


def _table(shape: type, seen: set[type], *, is_named: bool) -> Iterator[str]:
    """Yield a table of the keys of an object, then those of the objects in it that were not seen yet."""
    seen.add(shape)
    inner: list[type] = []
    yield ""
    if is_named:
        meaning, *_ = inspect.cleandoc(shape.__dict__["__doc__"] or "").splitlines() or [""]
        yield f"**{shape.__name__}**{': ' if meaning else ''}{meaning}"
        yield ""
    yield "| key | type | |"
    yield "|---|---|---|"
    for name, written, meaning, module in _fields(shape):
        written = re.sub(r"[A-Z]\w+", partial(_without_alias, module), written)
        yield f"| `{name}` | {written.replace('|', 'or')} | {meaning} |"
        inner += _shapes_in(written, module)
    for found in inner:
        if found not in seen:
            yield from _table(found, seen, is_named=True)


def _without_alias(module: str, word: re.Match[str]) -> str:
    """Return the type that a word in a module is short for, or the word."""
    found = resolved(sys.modules[module], word[0])
    return str(found) if isinstance(found, GenericAlias | UnionType) else word[0]


def _fields(shape: type) -> Iterator[tuple[str, str, str, str]]:
    """Yield name, type as written, meaning (the text below it) and module of each field."""
    try:
        (body,) = ast.parse(textwrap.dedent(inspect.getsource(shape))).body
    except OSError:  # a TypedDict made by a call: its keys are no names
        for name, written in shape.__annotations__.items():
            text = inspect.formatannotation(written)
            is_required = name in getattr(shape, "__required_keys__", ())
            yield name, text if is_required else f"NotRequired[{text}]", "", shape.__module__
        return
    assert isinstance(body, ast.ClassDef)
    for name in map(ast.unparse, body.bases):  # a TypedDict does not know its bases
        base = resolved(sys.modules[shape.__module__], name)
        if getattr(base, "__module__", "").startswith("kitchensync"):
            yield from _fields(base)
    is_partial = "total=False" in map(ast.unparse, body.keywords)
    for node, after in zip(body.body, [*body.body[1:], None], strict=True):
        if isinstance(node, ast.AnnAssign):
            text = (
                after.value.value
                if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
                else ""
            )
            written = ast.unparse(node.annotation)
            if is_partial:
                is_required = written.startswith("Required[")
                written = written[len("Required[") : -1] if is_required else f"NotRequired[{written}]"
            yield ast.unparse(node.target), written, str(text), shape.__module__
