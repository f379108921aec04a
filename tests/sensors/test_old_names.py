"""A plug-in that was written when the folders were packages at the top still finds them, the very same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCALE = Path(__file__).resolve().parents[2] / "examples" / "plugins" / "scale.py"
LOADED = """
import sys, warnings
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    from kitchensync.sensors.plugin import load_sensor
    print([stream.name for stream in load_sensor("scale", {"address": "127.0.0.1:1"}).streams()])
    print(sorted({str(one.message) for one in said if one.category is DeprecationWarning})[0])
import scale, kitchensync.sensors.errors
print(scale.BadPacket is kitchensync.sensors.errors.BadPacket)
"""


@pytest.mark.slow
@pytest.mark.parametrize("own", [False, True])
def test_old_imports_find_our_modules_unless_the_lab_has_its_own(tmp_path: Path, own: bool) -> None:
    about = tmp_path / "scale-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: scale\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[kitchensync.sensors]\nscale = scale:Scale\n")
    text = SCALE.read_text(encoding="utf-8")
    assert "from kitchensync.sensors" in text
    (tmp_path / "scale.py").write_text(text.replace("from kitchensync.sensors", "from sensors"))
    if own:
        (tmp_path / "sensors.py").write_text("")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{LOADED}"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=False)
    if own:
        assert "BadSensor: sensor 'scale': ModuleNotFoundError" in done.stderr
    else:
        assert done.stdout.splitlines() == [
            "['weight']",
            "import kitchensync.sensors, not sensors",
            "True",
        ], done.stderr
