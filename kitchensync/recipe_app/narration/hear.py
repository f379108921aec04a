"""Recognize a narration in a separate process, one at a time."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

PROGRAM = "kitchensync.recipe_app.narration.recognition"
LONGEST_S = 90.0  # above CPU_S of the recognition plus the wait for a server
_TURN = threading.Lock()


def hear(file: Path, steps: list[str], *, asks_server: bool = False) -> dict[str, Any]:
    """Return the recognized `text`, empty if there is none, and `why` recognition failed.

    `asks_server` allows sending the sound to the server that the environment names.
    """
    with _TURN:
        try:
            ran = subprocess.run(
                [sys.executable, "-P", "-m", PROGRAM, str(file)],
                input=json.dumps({"steps": steps, "asks_server": asks_server}),
                capture_output=True,
                text=True,
                timeout=LONGEST_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return {"text": "", "why": f"not recognized within {LONGEST_S:.0f} s"}
    if ran.returncode:
        return {"text": "", "why": (ran.stderr.strip().splitlines() or ["the recognizer ended"])[-1][:200]}
    recognized: dict[str, Any] = json.loads(ran.stdout)
    return recognized
