"""The OpenAPI description against the app: whatever it allows to be sent, nothing makes the server fail.

`make test-all` sends more of each.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from property_runs import IS_DEEP

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
EXAMPLES = "25" if IS_DEEP else "3"


@pytest.mark.parametrize("who", ["tablet", "admin"])
def test_nothing_that_is_sent_makes_the_server_fail(kitchen: Any, tmp_path: Path, who: str) -> None:
    pytest.importorskip("schemathesis", reason="schemathesis comes with the dev extra")
    client = kitchen.tablet if who == "tablet" else kitchen.desk("admin")
    assert kitchen.choose()["recording"]
    names = ("authorization", "x-kitchensync-login")
    headers = [f"{name}:{client.headers[name]}" for name in names if name in client.headers]
    command = [str(Path(sys.executable).parent / "schemathesis"), "run", f"{kitchen.url}/api/v1/openapi.json"]
    command += [
        *("--checks", "not_a_server_error", "--max-examples", EXAMPLES, "--seed", "1", "--phases"),
        *("fuzzing",),
    ]
    command += [part for header in headers for part in ("--header", header)]
    for address in ("/api/v1/sign-out", "/api/v1/sign-out/everywhere"):
        command += ["--exclude-path", address]
    command += ["--generation-database", "none", "--no-color"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert "not_a_server_error" in done.stdout or "passed" in done.stdout.lower(), done.stdout[-2000:]
