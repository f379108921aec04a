"""The tablet over HTTPS by our own authority, installed as a lab would: a secure context, or no page at all."""

from __future__ import annotations

import dataclasses
import datetime
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from browser import LANDSCAPE, Tablet, chromium

from kitchensync.recipe_app.web.app import create_app
from kitchensync.recipe_app.web.door.tls import credentials

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]
NAME = "kitchen-lab"


def trusting_home(folder: Path, authority: Path) -> Path:
    """A home whose certificate store trusts an authority, and no other of ours."""
    if shutil.which("certutil") is None:
        pytest.skip("no certutil on this computer; `make system` installs it (libnss3-tools)")
    store = folder / ".pki" / "nssdb"
    store.mkdir(parents=True)
    for command in (["-N", "--empty-password"], ["-A", "-t", "C,,", "-n", "kitchen", "-i", str(authority)]):
        subprocess.run(
            ["certutil", "-d", f"sql:{store}", *command], check=True, capture_output=True, timeout=30
        )
    return folder


def test_with_our_certificate_the_context_is_secure_and_without_it_there_is_no_page(
    kitchen: Any, tmp_path: Path
) -> None:
    names = [NAME, "localhost", "127.0.0.1"]
    secure = credentials(tmp_path / "tls", names, now=datetime.datetime.now(datetime.UTC))
    home = trusting_home(tmp_path / "home", tmp_path / "tls" / "ca.crt")
    kitchen.ticking = True
    assert kitchen.basil
    tools = dataclasses.replace(kitchen.tools, hosts=frozenset(names), ca_file=secure.authority.read_bytes())
    served = kitchen.serve(create_app(tools), ssl_certfile=secure.certificate, ssl_keyfile=secure.key)
    url = served.replace("http://127.0.0.1", f"https://{NAME}")
    here = f"--host-resolver-rules=MAP {NAME} 127.0.0.1"
    with chromium(here, home=home) as browser:
        context = browser.new_context(viewport=LANDSCAPE, permissions=["screen-wake-lock", "microphone"])
        page = context.new_page()
        page.goto(f"{url}/doctor")
        page.locator("#doctor li.good").nth(5).wait_for()  # all six
        tablet = Tablet(page, url)
        tablet.pair(kitchen.tools.accounts.pairing_code(kitchen.place, actor=""))
        tablet.sign_in("Basil", "482916")
        assert page.evaluate("isSecureContext") is True
        assert all(cookie["secure"] for cookie in context.cookies())
        page.locator("html[data-offline=ready]").wait_for()
        context.set_offline(True)
        page.reload()  # the service worker needs the secure context
        tablet.screen("choose")
        assert tablet.problems == []
    (tmp_path / "stranger").mkdir()
    with chromium(here, home=tmp_path / "stranger") as browser:
        page = browser.new_page()
        with pytest.raises(Exception, match="ERR_CERT_AUTHORITY_INVALID"):
            page.goto(f"{url}/doctor")
