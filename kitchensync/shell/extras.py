"""Which extra of this package brings a package that is not installed: `pip install 'kitchensync[EXTRA]'`."""

from __future__ import annotations

import re

BY_FOLDER = {"capture": "record", "virtual_kitchen": "record", "recipe_app": "app"}
"""The extra of a folder's commands; that of the others is `data`."""
IMPORTED_AS = {
    "argon2": "argon2-cffi",
    "foxglove": "foxglove-sdk",
    "fpdf": "fpdf2",
    "rerun": "rerun-sdk",
    "zmq": "pyzmq",
}
"""Packages that are imported by another name than they are installed by."""


def what_to_install(module: str, folder: str | None = None) -> str | None:
    """Return one line for a module that could not be imported, None if no extra brings it.

    `folder` is the one that a command is in: where several extras bring a package, that command's is named.
    """
    top = module.partition(".")[0]
    if top == "kitchensync":
        return None
    extras = extras_with(IMPORTED_AS.get(top, top.replace("_", "-")))
    if not extras:
        return None
    own = BY_FOLDER.get(folder or "", "data")
    extra = own if {*extras} & {"app", "data", "record"} else extras[0]
    return f"{top} is not installed: pip install 'kitchensync[{extra}]'"


def extras_with(package: str) -> list[str]:
    """Return the extras that bring a package, in the order of setup.cfg; none of those for development."""
    from importlib.metadata import requires  # slow, and nothing else of --help needs it

    found = []
    for line in requires("kitchensync") or ():
        name, _, marker = line.partition(";")
        extra = re.search(r"""extra == ["']([\w-]+)["']""", marker)
        if extra and re.split(r"[^\w.-]", name.strip())[0].lower() == package.lower():
            found.append(extra[1])
    return [extra for extra in found if extra != "dev"]
