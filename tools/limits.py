"""The table of the limits of `verify` in the page of faults and verdicts, made from the module that holds them."""

from __future__ import annotations

import ast
from pathlib import Path

from kitchensync.storage.verify import thresholds

TABLE = "| limit | value | meaning |\n|---|---|---|\n"


def with_limits(page: str) -> str:
    """Return a page whose table of limits is as the code has it."""
    before, _, after = page.partition(TABLE)
    return before + TABLE + "".join(_rows()) + "\n" + after.partition("\n\n")[2]


def _rows() -> list[str]:
    tree = ast.parse(Path(thresholds.__file__).read_text(encoding="utf-8"))
    found = []
    for statement, after in zip(tree.body, tree.body[1:], strict=False):
        if isinstance(statement, ast.Assign) and isinstance(after, ast.Expr):
            targets = statement.targets[0]
            names = targets.elts if isinstance(targets, ast.Tuple) else [targets]
            words = ", ".join(ast.unparse(name).lower().replace("_", " ") for name in names)
            values = ", ".join(f"{getattr(thresholds, ast.unparse(name)):g}" for name in names)
            meaning = " ".join(str(ast.literal_eval(after.value)).split())
            found.append(f"| {words} | {values} | {meaning} |\n")
    return found
