"""The extra of this package that installs a missing package: `pip install 'kitchensync[EXTRA]'`."""

from __future__ import annotations

import re

BY_FOLDER = {"capture": "record", "virtual_kitchen": "record", "recipe_app": "app"}
"""The extra for the commands of a folder; for other folders `data`."""
IMPORTED_AS = {
    "argon2": "argon2-cffi",
    "foxglove": "foxglove-sdk",
    "fpdf": "fpdf2",
    "rerun": "rerun-sdk",
    "zmq": "pyzmq",
}
"""Import name -> package name where they differ."""


def what_to_install(module: str, folder: str | None = None) -> str | None:
    """Return a one-line hint for a module that could not be imported, None if no extra has it.

    `folder` is that of the command: if several extras have a package, the command's extra is named.
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
    """Return the extras that have a package, in the order of setup.cfg, without `dev`."""
    from importlib.metadata import requires  # slow, and --help does not need it

    extras = []
    for line in requires("kitchensync") or ():
        name, _, marker = line.partition(";")
        extra = re.search(r"""extra == ["']([\w-]+)["']""", marker)
        if extra and re.split(r"[^\w.-]", name.strip())[0].lower() == package.lower():
            extras.append(extra[1])
    return [extra for extra in extras if extra != "dev"]
