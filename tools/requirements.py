"""Write what setup.cfg requires as requirements files, for tools that do not read setup.cfg.

python tools/requirements.py FOLDER
"""

from __future__ import annotations

import configparser
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent


def main(folder: Path) -> None:
    """Write requirements.txt (the base and every extra) and requirements-dev.txt."""
    config = configparser.ConfigParser()
    config.read(REPOSITORY / "setup.cfg", encoding="utf-8")
    extras = dict(config["options.extras_require"])
    dev = extras.pop("dev")
    base = "\n".join([config["options"]["install_requires"], *extras.values()])
    base = "\n".join(line for line in base.splitlines() if not line.startswith("kitchensync["))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "requirements.txt").write_text(base + "\n", encoding="utf-8")
    (folder / "requirements-dev.txt").write_text(dev + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
