"""The list of slow tests that `make test` runs names tests that exist."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
CHOSEN = tomllib.loads((ROOT / "tests" / "chosen.toml").read_text(encoding="utf-8"))


def functions(file: Path) -> set[str]:
    """Return the names of the tests in a file."""
    return {node.name for node in ast.parse(file.read_text()).body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("promise", CHOSEN)
def test_every_promise_has_tests_that_exist(promise: str) -> None:
    tests = CHOSEN[promise]
    assert len(set(tests)) == len(tests) > 0
    for test in tests:
        file, _, name = test.removeprefix("-").partition("::")
        assert not test.startswith("-") or (file in tests and "[" not in test), test
        assert (ROOT / file).is_file(), test
        assert not name or name.partition("[")[0] in functions(ROOT / file), test


def test_no_test_is_named_for_two_promises() -> None:
    tests = [test for named in CHOSEN.values() for test in named]
    assert len(set(tests)) == len(tests)
