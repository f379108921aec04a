"""What a rig file may say: one model, from which the published JSON schema is made."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from sensors.gopro.settings import GoProSettings
from sensors.hololens.profile import HeadsetSettings

TABLES = {
    "hololens": 'write [hololens] and below it lines such as hololens = "ADDRESS"',
    "gopro": 'write [gopro] and below it lines such as gopro = "ADDRESS"',
    "sensor": 'write [sensor.NAME] and below it kind = "..." and what the sensor wants',
}


class HeadsetTable(HeadsetSettings):
    """One headset: where it is, and what differs from the settings that hold for all."""

    address: str


class SensorTable(BaseModel):
    """One plug-in sensor: the name under which a package announces it, and whatever it wants."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True)

    kind: str


def _table(value: Any) -> Any:
    return {"address": value} if isinstance(value, str) else value


Headset = Annotated[HeadsetTable, BeforeValidator(_table, json_schema_input_type=str | HeadsetTable)]


class RigFile(HeadsetSettings):
    """What is recorded with what: kitchensync record ID --data DIR --rig rig.toml."""

    streams: list[str] | None = None
    "Which streams are recorded; without this line the usual ones."
    gyroscope_unit: Literal["auto", "deg_per_s", "rad_per_s"] = "auto"
    "What the headset's gyroscope sends; auto finds out at alignment."
    linger_ms: Annotated[int, Field(ge=0, le=20)] = 20
    "How long packets gather before they travel into the queue together; 0: each by itself."
    hololens: dict[str, Headset] = Field(default_factory=dict)
    "Headsets: NAME = ADDRESS, or a table [hololens.NAME]; the name is the first part of the streams' names."
    gopro: dict[str, str] = Field(default_factory=dict)
    "Cameras: NAME = ADDRESS."
    camera: GoProSettings = GoProSettings()
    "What every camera is set to before a recording."
    sensor: dict[str, SensorTable] = Field(default_factory=dict)
    "Plug-in sensors by name."


def first_problem(error: ValidationError) -> str:
    """Say in one line which key is wrong and what it may be; unknown keys come first, all of a table together."""
    problems = error.errors()
    unknown = [problem["loc"] for problem in problems if problem["type"] == "extra_forbidden"]
    if unknown:
        names = sorted(_key(loc) for loc in unknown if loc[:-1] == unknown[0][:-1])
        return f"unknown setting {', '.join(names)}; known: {', '.join(sorted(_known(unknown[0])))}"
    first = problems[0]
    key, kind, table = _key(first["loc"]), first["type"], str(first["loc"][0])
    if table in TABLES and kind in ("dict_type", "model_type", "string_type", "missing"):
        return f"{key} {'is missing' if kind == 'missing' else 'is of the wrong kind'}; {TABLES[table]}"
    should = first["msg"].removeprefix("Value error, ").removeprefix("Input ")
    return f"{key} {should}, not {first['input']!r}"


def _key(loc: tuple[int | str, ...]) -> str:
    return ".".join(map(str, loc))


def _known(loc: tuple[int | str, ...]) -> set[str]:
    """Return the names that the table of an unknown key does know."""
    tables: dict[Any, type[BaseModel]] = {"hololens": HeadsetTable, "camera": GoProSettings}
    model = tables[loc[0]] if len(loc) > 1 else RigFile
    return set(model.model_fields)
