"""No public class name stands for two things."""

from __future__ import annotations

import ast
from collections import defaultdict

from root_folders import PACKAGE

ALLOWED: dict[str, str] = {}
"""Name -> why it may stand twice; at most ten."""


def test_no_public_class_name_stands_for_two_things():
    places = defaultdict(list)
    for path in PACKAGE.rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(str(path.relative_to(PACKAGE)))
    twice = {name: found for name, found in places.items() if len(found) > 1}
    assert twice.keys() == ALLOWED.keys(), twice
    assert len(ALLOWED) <= 10
