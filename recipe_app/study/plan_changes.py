"""What of a plan is another one now, in one line for who is refused because of it."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import ndiff
from typing import Any

MOST_LINES, MOST_LETTERS = 6, 120
"""So much of the study's text is shown; how many lines are more is said."""


def changes_of(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Report which lines of its study a plan lost (-) and gained (+), and how many sessions."""
    was, now = (str(plan.get("study", "")).splitlines() for plan in (before, after))
    lines = [line[:MOST_LETTERS].rstrip() for line in ndiff(was, now) if line[:2] in ("- ", "+ ")]
    said = lines[:MOST_LINES] + [f"{len(lines) - MOST_LINES} lines more"] * (len(lines) > MOST_LINES)
    old, new = ({_session(one) for one in plan.get("sessions", [])} for plan in (before, after))
    return "; ".join([*said, f"sessions: {len(new - old)} new, {len(old - new)} gone"])


def _session(said: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(said.get(key) for key in ("recipe", "strategy", "display", "person", "kitchen", "start"))
