"""Have a narration recognized, in a process of its own, one at a time."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

PROGRAM = "kitchensync.recipe_app.narration.recognition"
LONGEST_S = 90.0
_TURN = threading.Lock()


def hear(file: Path, steps: list[str], *, asks_server: bool = False) -> dict[str, Any]:
    """Return what was said (`text`, nothing where nothing was understood) and `why` it could not be recognized.

    `asks_server` where the server that the environment names may be asked.
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
    said: dict[str, Any] = json.loads(ran.stdout)
    return said
