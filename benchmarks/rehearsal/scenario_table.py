"""What the operator sees of a rehearsal: a line a scenario, a table of kinds at the end, one object for a script."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rehearsal.account import BAD, Account

COLUMNS = (
    ("kind", 18), ("played", 7), ("sent", 9), ("stored", 9), ("named", 7), ("unexplained", 13), ("wrong", 7),
    ("worst excess s", 16),
)  # fmt: skip


def line_of(account: Account) -> str:
    """Return one scenario as a line of text."""
    numbers = f"{account.produced:>7} sent {account.stored:>7} stored {account.named_losses:>5} named"
    judged = f"{account.unexplained:>5} unexplained {account.wrong_causes:>3} wrong"
    return f"{account.name:22} {numbers} {judged}  {account.verdict:7} {account.notes}".rstrip()


def answer_of(accounts: list[Account]) -> dict[str, Any]:
    """Return the object `rehearse/1`."""
    return {
        "scenarios": len(accounts),
        **{key: _sum(accounts, key) for key in BAD},
        "seconds": round(sum(account.seconds for account in accounts), 1),
        "rows": [asdict(account) for account in accounts],
    }


def table_of(accounts: list[Account]) -> str:
    """Return the table of kinds, and the sum of everything as its last line."""
    kinds: dict[str, list[Account]] = {}
    for account in accounts:
        kinds.setdefault(account.name.partition("-")[2], []).append(account)
    lines = [_line([head for head, _ in COLUMNS])]
    for kind, played in kinds.items():
        counted = ("produced", "stored", "named_losses", "unexplained", "wrong_causes")
        sums = [str(_sum(played, key)) for key in counted]
        worst_s = max(account.longest_excess_s for account in played)
        lines.append(_line([kind, str(len(played)), *sums, f"{worst_s:.2f}"]))
    totals = ", ".join(f"{_sum(accounts, key)} {key.replace('_', ' ')}" for key in BAD)
    return "\n".join([*lines, f"{len(accounts)} scenarios: {totals}"])


def _sum(accounts: list[Account], key: str) -> int:
    return sum(getattr(account, key) for account in accounts)


def _line(cells: list[str]) -> str:
    first, *others = [(cell, width) for cell, (_, width) in zip(cells, COLUMNS, strict=True)]
    return f"{first[0]:{first[1]}}" + "".join(f"{cell:>{width}}" for cell, width in others)
