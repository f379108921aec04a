"""What the operator sees of a rehearsal: a bar while it runs, a line a scenario, a table of kinds at the end."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TimeRemainingColumn

from capture.rehearsal.account import Account
from storage.shell.progress import terminal_bar

COUNTS = (
    "produced",
    "stored",
    "named_losses",
    "unexplained",
    "duplicates",
    "unreadable_files",
    "wrong_causes",
)


class ScenarioTable:
    """A bar and one line for each scenario on stderr; `quiet` where a script reads us."""

    def __init__(self, total: int, *, quiet: bool) -> None:
        """Show nothing yet."""
        console = Console(stderr=True, highlight=False)
        columns = BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
        self._bar = terminal_bar(*columns, console=console, shown=not quiet)
        self._task = self._bar.add_task("", total=total)
        self._quiet = quiet

    def __enter__(self) -> ScenarioTable:
        """Begin."""
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take the bar away."""
        self._bar.stop()

    def begin(self, name: str) -> None:
        """Say what is played now."""
        self._bar.update(self._task, description=f"{name:22}")

    def end(self, account: Account) -> None:
        """Print a scenario's line."""
        self._bar.advance(self._task)
        if not self._quiet:
            style = "green" if account.is_fine else "bold red"
            self._bar.console.print(line_of(account), style=style, markup=False, soft_wrap=True)


def line_of(account: Account) -> str:
    """Return one scenario as a line of text."""
    numbers = f"{account.produced:>7} sent {account.stored:>7} stored {account.named_losses:>5} named"
    judged = f"{account.unexplained:>5} unexplained {account.wrong_causes:>3} wrong"
    return f"{account.name:22} {numbers} {judged}  {account.verdict:7} {account.notes}".rstrip()


def answer_of(accounts: list[Account]) -> dict[str, Any]:
    """Return the object `rehearse/1`."""
    return {
        "schema": "rehearse/1",
        "scenarios": len(accounts),
        **{key: sum(getattr(account, key) for account in accounts) for key in COUNTS[3:]},
        "seconds": round(sum(account.seconds for account in accounts), 1),
        "rows": [account.row() for account in accounts],
    }


def table_of(accounts: list[Account]) -> str:
    """Return the table of kinds, and the sum of everything as its last line."""
    kinds: dict[str, list[Account]] = {}
    for account in accounts:
        kinds.setdefault(account.name.partition("-")[2], []).append(account)
    heads = ("kind", "played", "sent", "stored", "named", "unexplained", "wrong", "worst excess s")
    lines = [
        f"{heads[0]:18}{heads[1]:>7}{heads[2]:>9}{heads[3]:>9}{heads[4]:>7}{heads[5]:>13}{heads[6]:>7}{heads[7]:>16}"
    ]
    for kind, played in kinds.items():
        sums = {key: sum(getattr(account, key) for account in played) for key in COUNTS}
        worst = max(account.longest_excess_s for account in played)
        lines.append(
            f"{kind:18}{len(played):>7}{sums['produced']:>9}{sums['stored']:>9}{sums['named_losses']:>7}"
            f"{sums['unexplained']:>13}{sums['wrong_causes']:>7}{worst:>16.2f}"
        )
    totals = ", ".join(
        f"{sum(getattr(account, key) for account in accounts)} {key.replace('_', ' ')}" for key in COUNTS[3:]
    )
    return "\n".join([*lines, f"{len(accounts)} scenarios: {totals}"])
