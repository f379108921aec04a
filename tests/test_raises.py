"""Docstrings say which errors are raised by names that exist."""

from __future__ import annotations

import ast
import builtins
import importlib
import re
from collections.abc import Iterator
from types import ModuleType

import pytest
from root_folders import PACKAGE

NAME = r"(?:\w+\.)*[A-Z]\w*[a-z]\w*"
RAISES = re.compile(rf"\b[Rr]aises ({NAME}(?:(?:, | and | or |, and )(?:{NAME}))*)")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def named(tree: ast.AST) -> Iterator[str]:
    """Yield the names after *Raises* in the docstrings of a module."""
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and (words := ast.get_docstring(node)):
            for names in RAISES.findall(words.replace("\n", " ")):
                yield from re.split(r", and |, | and | or ", names)


@pytest.mark.slow
def test_every_error_that_a_docstring_names_exists() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}
    ours = {name for text in texts.values() for name in re.findall(r"^ *class (\w+)", text, re.MULTILINE)}
    trees = {path: ast.parse(text) for path, text in texts.items() if "aises" in text}
    all_named = {(path, name) for path, tree in trees.items() for name in named(tree)}
    assert len({name for _, name in all_named}) > 100
    unknown = [(str(path), name) for path, name in all_named if not exists(name, ours, trees[path])]
    assert unknown == []


def exists(name: str, ours: set[str], tree: ast.Module) -> bool:
    module, _, error = name.rpartition(".")
    if module:
        return hasattr(importlib.import_module(module), error)
    return name in ours or hasattr(builtins, name) or any(hasattr(one, name) for one in imported(tree))


def imported(tree: ast.Module) -> Iterator[ModuleType]:
    """Yield the modules that a module imports whole."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (importlib.import_module(one.name) for one in node.names)
