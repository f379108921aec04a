"""A plug-in that was written when the folders were packages at the top still finds them, the very same."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCALE = Path(__file__).resolve().parents[2] / "examples" / "plugins" / "scale.py"
LOADED = """
import json, sys, warnings
from kitchensync.sensors import errors
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    from kitchensync.sensors.plugin import load_sensor
    streams = load_sensor("scale", {"address": "127.0.0.1:1"}).streams()
import scale
ours = [name for name in sys.modules if name.partition(".")[0] == "sensors"]
print(json.dumps({
    "streams": [stream.name for stream in streams],
    "warnings": [str(one.message) for one in said],
    "is_one_error": scale.BadPacket is errors.BadPacket,
    "copies": [name for name in ours if sys.modules[name] is not sys.modules[f"kitchensync.{name}"]],
    "modules": sorted(ours),
}))
"""


@pytest.mark.slow
@pytest.mark.parametrize("own", ["", "sensors.py", "sensors/__init__.py"])
def test_old_imports_find_our_modules_unless_the_lab_has_its_own(tmp_path: Path, own: str) -> None:
    about = tmp_path / "scale-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: scale\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[kitchensync.sensors]\nscale = scale:Scale\n")
    text = SCALE.read_text(encoding="utf-8")
    assert "from kitchensync.sensors" in text
    (tmp_path / "scale.py").write_text(text.replace("from kitchensync.sensors", "from sensors"))
    if own:
        (tmp_path / own).parent.mkdir(exist_ok=True)
        (tmp_path / own).write_text("")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{LOADED}"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=False)
    if own:
        assert "BadSensor: sensor 'scale': ModuleNotFoundError" in done.stderr
        return
    assert json.loads(done.stdout) == {
        "streams": ["weight"],
        "warnings": ["a plug-in imports 'sensors', which is 'kitchensync.sensors' now"],
        "is_one_error": True,
        "copies": [],
        "modules": ["sensors", "sensors.errors", "sensors.host_clock", "sensors.plugin"],
    }, done.stderr
