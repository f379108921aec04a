"""The option with which consent is overridden: a reason must be given."""

from __future__ import annotations

import click


def reason_given(_: click.Context, __: click.Parameter, reason: str | None) -> str:
    """Return the reason in one line, nothing where the option was not given. Raises BadParameter."""
    if reason is not None and not reason.strip():
        raise click.BadParameter("say why nobody's consent is needed")
    return " ".join((reason or "").split())


WITHOUT_CONSENT = click.option(
    "--without-consent",
    metavar="REASON",
    callback=reason_given,
    help="Use recordings too to which nobody agreed; the reason is kept. A withdrawal is never overridden.",
)
