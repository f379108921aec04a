"""A client for every kind of visitor of the app."""

from __future__ import annotations

from typing import Any

import httpx

WHO = ("nobody", "tablet", "participant", "operator", "annotator", "researcher", "admin")


def clients(kitchen: Any) -> dict[str, httpx.Client]:
    device, token = kitchen.pair("Matrix")
    bearer = {"authorization": f"Bearer {token}"}
    login = kitchen.tools.accounts.sign_in(kitchen.basil, "pin", "482916", device=device, desk=False)
    return {
        "nobody": kitchen.client(),
        "tablet": kitchen.client(**bearer),
        "participant": kitchen.client(**bearer, **{"x-kitchensync-login": login}),
        **{role: kitchen.desk(role) for role in ("operator", "annotator", "researcher", "admin")},
    }
