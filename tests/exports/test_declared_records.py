"""Records of a plug-in sensor are read as columns, resampled and exported; others are left out with a warning."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from click.testing import CliRunner, Result
from mcap.reader import make_reader
from small_recordings import HOST0_NS

import kitchensync as ks
from kitchensync.cli import main
from kitchensync.shell import host_clock
from kitchensync.storage.chunks.chunk_writer import Packet, seal
from kitchensync.storage.events import EventLog
from kitchensync.storage.manifest import edit_manifest

pytestmark = pytest.mark.slow
RECORD = np.dtype([("grams", "<f4"), ("is_still", "u1"), ("utc", "<i4")])
COUNT, STEP_NS, START_NS = 100, 200_000_000, HOST0_NS + 2_000_000_000
"""Five packets a second from 2 s on; between samples of the headset's motion this would be a gap."""
SOUND_PARTS = "scale/weight,gopro/video,gopro/audio,hololens/gyroscope,hololens/spatial_input"
"""The streams that are exported without a warning; poses of depth lack the headset's constants."""
UNDECLARED = {"codec": "json"}


def arrived_ns(packet: Any) -> Any:
    return START_NS + np.asarray(packet) * STEP_NS


def records_of(packet: int, each: int) -> np.ndarray:
    numbers = packet * each + np.arange(each)
    records = np.zeros(each, RECORD)
    records["grams"], records["is_still"], records["utc"] = numbers * 2.5, numbers % 2, -numbers
    return records


def with_scale(
    cooked: Path, folder: Path, each: int = 1, form: dict[str, Any] | None = None, cut_short: int = -1
) -> Path:
    """Add the stream `scale/weight` to a copy; the payload of packet `cut_short` is incomplete."""
    take = Path(shutil.copytree(cooked, folder / "take1"))
    payloads = [records_of(k, each).tobytes()[: 5 if k == cut_short else None] for k in range(COUNT)]
    packets = [Packet(k, 1, k, int(arrived_ns(k)), 1, payload, b"") for k, payload in enumerate(payloads)]
    (take / "scale" / "weight").mkdir(parents=True)
    seal(take / "scale" / "weight", 1, packets, {})
    declared = {"record": [[name, RECORD[name].str] for name in RECORD.names or ()]}
    with edit_manifest(take) as manifest:
        manifest["devices"]["scale"] = {"kind": "plugin", "sensor": "not installed"}
        manifest["streams"]["scale/weight"] = {"nominal_hz": 5, "format": form or declared}
    return take


def export(form: str, take: Path, out: Path, *more: object) -> tuple[dict[str, Any], Result]:
    done = CliRunner().invoke(main, ["export", form, str(take), "--out", str(out), "--json", *map(str, more)])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout), done


def messages_in(path: Path) -> tuple[dict[str, Any], list[tuple[int, dict[str, Any]]]]:
    """Return the schema of the stream, and (log time, message) of each of its packets."""
    with path.open("rb") as file:
        messages = [
            (schema, message.log_time, json.loads(message.data))
            for schema, channel, message in make_reader(file).iter_messages(topics=["/scale/weight"])
            if channel.message_encoding == "json"
        ]
    assert messages[0][0] is not None
    assert messages[0][0].encoding == "jsonschema"
    return json.loads(messages[0][0].data), [(at_ns, message) for _, at_ns, message in messages]


def test_a_sensor_with_a_clock_has_the_times_of_its_stamps(cooked: Path, tmp_path: Path) -> None:
    """Its packets arrive 30 to 70 ms late; its ticks run 40 ppm fast, and their zero is far away."""
    take = with_scale(cooked, tmp_path)
    late_ns = np.random.default_rng(1).integers(30_000_000, 70_000_000, COUNT)

    def ticks_at(host_ns: Any) -> Any:
        return 7_000_000_000 + np.int64((host_ns - HOST0_NS) * 1.00004 / 100)

    shutil.rmtree(take / "scale" / "weight")
    (take / "scale" / "weight").mkdir()
    (take / "clock" / "scale").mkdir(parents=True)
    measured_ns = arrived_ns(np.arange(COUNT))
    packets = [
        Packet(k, 1, int(ticks_at(at)), int(at + late), 1, records_of(k, 1).tobytes(), b"")
        for k, (at, late) in enumerate(zip(measured_ns, late_ns, strict=True))
    ]
    seal(take / "scale" / "weight", 1, packets, {})
    asked_ns = [int(at) for at in np.arange(HOST0_NS, HOST0_NS + 30_000_000_000, 500_000_000)]
    probes = [host_clock.encode(at, at + 2_000_000, int(ticks_at(at + 700_000))) for at in asked_ns]
    exchanges = [
        Packet(k, 1, k, at, 1, probe, b"") for k, (at, probe) in enumerate(zip(asked_ns, probes, strict=True))
    ]
    seal(take / "clock" / "scale", 1, exchanges, {})
    with ks.open(take) as rec:
        scale = rec["scale/weight"]
        off_ns = np.abs(rec.clock.to_host(scale.session_ns) - measured_ns).max()
        assert off_ns < 2_000_000 <= 1e9 * scale.bound_at(5) < 10_000_000


@pytest.mark.parametrize("each", [1, 3])
def test_records_are_columns_on_session_time(cooked: Path, tmp_path: Path, each: int) -> None:
    true = np.concatenate([records_of(k, each) for k in range(COUNT)])
    with ks.open(with_scale(cooked, tmp_path, each)) as rec:
        scale = rec["scale/weight"]
        assert (len(scale), scale.fields) == (COUNT * each, RECORD.names)
        for name in RECORD.names or ():
            np.testing.assert_array_equal(scale[name], true[name])
        assert scale[each] == scale[-len(scale) + each] == true[each]
        np.testing.assert_array_equal(scale[2:9:2], true[2:9:2])
        np.testing.assert_allclose(scale.times_ns, np.repeat(arrived_ns(np.arange(COUNT)), each), atol=1)
        assert pandas.DataFrame(scale.values)["grams"].tolist() == true["grams"].tolist()
        with pytest.raises(KeyError, match="grams, is_still, utc"):
            scale["weight"]


def test_records_are_resampled(cooked: Path, tmp_path: Path) -> None:
    with ks.open(with_scale(cooked, tmp_path)) as rec:
        scale = rec["scale/weight"]
        first_s, step_s = float(scale.times[0]), STEP_NS / 1e9
        places = np.array([0.0, 0.25, 7.5, 40.1, COUNT - 1.0])
        samples = scale.sample(first_s + places * step_s)
        np.testing.assert_allclose(samples[:, 0], places * 2.5, rtol=1e-3, atol=1e-3)
        np.testing.assert_allclose(samples[[0, 1, 3, 4], 1], [0, 0, 0, 1])
        assert np.isnan(scale.sample([first_s - 1, float(scale.times[-1]) + 1])).all()
        instants = rec.instants(2, first_s, first_s + 3, read=["scale/weight"])
        grams = [values["scale/weight"][0] for values in instants]
        np.testing.assert_allclose(grams, np.arange(7) * 0.5 / step_s * 2.5, atol=1e-3)
        assert len(list(instants.in_workers(1))) == 7


@pytest.mark.parametrize("each", [1, 3])
def test_records_are_exported(cooked: Path, tmp_path: Path, each: int) -> None:
    take = with_scale(cooked, tmp_path, each)
    true = np.concatenate([records_of(k, each) for k in range(COUNT)])
    report, _ = export("tables", take, tmp_path / "tables", "--csv", "--streams", SOUND_PARTS)
    assert report["status"] == "PASS"
    assert report["recordings"][0]["tables"]["scale/weight"]["rows"] == len(true)
    for read, form in ((pandas.read_parquet, "parquet"), (pandas.read_csv, "csv")):
        table = read(tmp_path / "tables" / "take1" / "scale" / f"weight.{form}")
        assert table["grams"].tolist() == true["grams"].tolist()
        assert table["is_still"].tolist() == true["is_still"].tolist()
        assert table["utc_of_record"].tolist() == true["utc"].tolist()
        np.testing.assert_allclose(table["host_ns"], np.repeat(arrived_ns(np.arange(COUNT)), each), atol=1)
    report, _ = export("mcap", take, tmp_path / "mcap", "--streams", "scale/weight,hololens/pv")
    assert report["recordings"][0]["messages"]["scale/weight"] == COUNT
    schema, messages = messages_in(tmp_path / "mcap" / "take1.mcap")
    assert list(schema["properties"]) == list(RECORD.names or ())
    np.testing.assert_allclose([at_ns for at_ns, _ in messages], arrived_ns(np.arange(COUNT)), atol=1)
    for k, (_, message) in enumerate(messages):
        expected = records_of(k, each)
        assert message == {
            n: expected[n].tolist() if each > 1 else expected[n][0].item() for n in schema["properties"]
        }


def test_left_out_records_are_named_with_a_warning(cooked: Path, tmp_path: Path) -> None:
    parts = SOUND_PARTS.removeprefix("scale/weight,")
    whole, _ = export("tables", cooked, tmp_path / "whole", "--streams", parts)
    assert whole["recordings"][0]["left_out"].keys() == {"gopro/audio", "hololens/spatial_input"}
    assert whole["status"] == "PASS", "these streams have no tables"
    for name, more, why in (
        ("undeclared", {"form": UNDECLARED}, "the sensor declares no record"),
        ("cut_short", {"cut_short": 7}, "1 packets cannot be read"),
    ):
        take = with_scale(cooked, tmp_path / name, **more)  # type: ignore[arg-type]
        for form in ("tables", "mcap"):
            report, done = export(form, take, tmp_path / name / form, "--streams", "scale/weight,pv")
            assert report["status"] == "WARN"
            assert why in report["recordings"][0]["left_out"]["scale/weight"]
            assert "scale/weight left out" in done.stderr
        shown = CliRunner().invoke(
            main, ["export", "tables", str(take), "--out", str(tmp_path / name / "again")]
        )
        assert "WARN" in shown.stdout
    rows = pandas.read_parquet(tmp_path / "cut_short" / "tables" / "take1" / "scale" / "weight.parquet")
    assert len(rows) == COUNT - 1


def test_no_record_of_a_pause_is_read(cooked: Path, tmp_path: Path) -> None:
    take = with_scale(cooked, tmp_path)
    log = EventLog(take, "operator")
    for kind, at_ns in (("pause", arrived_ns(10)), ("resume", arrived_ns(20))):
        log.append(kind, host_ns=int(at_ns), uncertainty_ns=0, body={}, op_id=kind)
    with ks.open(take) as rec:
        kept = set((rec["scale/weight"]["grams"] / 2.5).astype(int).tolist())
    assert kept.isdisjoint(range(11, 20))
    assert kept >= set(range(9))
