"""The commented rig file that `rig init` writes."""

from __future__ import annotations

from sensors.hololens.catalogue import DEFAULT_SET, STREAMS

_TEMPLATE = """\
# What is recorded with what: kitchensync record ID --data DIR --rig rig.toml
# Check it without touching a device: kitchensync rig check rig.toml
# What every line may say, for an editor that reads JSON schemas: docs/reference/rig.schema.json

# How the headset is connected. "wifi": AHAT depth packed into H.265 (4 mm steps, wraps above 1023 mm; the whole rig
# about 3 MB/s). "wired" (USB-C Ethernet): AHAT depth raw (about 51 MB/s).
link = "wifi"

# What the headset's gyroscope sends: "auto" finds out at alignment, "deg_per_s" or "rad_per_s" state it.
gyroscope_unit = "auto"

# The headset's streams. Without this line: {default}.
# All there are: {all}.
# depth_ahat and depth_longthrow are one physical sensor: only one of them.
# streams = {streams}

# Front camera: 1952x1100 1920x1080 1504x846 1280x720 1128x636 960x540 760x428 640x360 500x282 424x240 at 30 or 15;
# besides, 1504x846 at 60 or 5 and 1952x1100 at 60.
# pv_width = 640
# pv_height = 360
# pv_hz = 30
# pv_codec = "h265"            # h265, h264, raw

# Its lens and light. 0 leaves them to the camera. They are set after it starts and read back from its packets.
# pv_focus_mm = 0              # 170 to 10000
# pv_exposure_us = 0           # 100 to 66000
# pv_white_balance_k = 0       # 2300 to 7500

# The other streams.
# vlc_codec = "h265"           # grey cameras: h265, h264, raw
# depth_ahat_codec = "by link" # by link, h265, h264, raw
# depth_ahat_packing = "same"  # same: depth in the brightness picture; zdepth: depth as a Zdepth blob beside it
# microphone = "aac"           # aac, pcm (two channels), array (five microphones, raw)
# eye_tracking_hz = 30         # 30, 60, 90
# extended_audio = "aac"       # aac, pcm
# extended_audio_source = "both" # microphone, application, both
# extended_video_codec = "h265"
# extended_video_width = 640
# extended_video_height = 360
# extended_video_hz = 30
# extended_video_source = 0    # index in the headset's list (kept as hololens/calibration/extended_video.h5)
# extended_depth = "zdepth"    # zdepth, raw
# extended_depth_media = 0

# Packets gather this long, ms, before they travel into the queue together: 0 to 20. Wake-ups cost more than packets.
# linger_ms = 20

# Devices: NAME = "ADDRESS". The name is the first part of the streams' names.
[hololens]
hololens = "{hololens}"

# A second headset, with settings of its own where they differ from those above (streams are then named in full,
# such as "hololens-b/pv"):
# [hololens.hololens-b]
# address = "192.168.1.21"
# link = "wired"
# pv_exposure_us = 8000

[gopro]
gopro = "{gopro}"

# Plug-in sensors (see examples/plugins): kind is the name under which a package announces it.
# [sensor.scale]
# kind = "json_lines"
# address = "192.168.1.70:5000"
"""


def template(hololens: str, gopro: str) -> str:
    """Return a commented rig file for one headset and one camera."""
    streams = "[" + ", ".join(f'"{name}"' for name in DEFAULT_SET) + "]"
    return _TEMPLATE.format(
        default=", ".join(DEFAULT_SET),
        all=", ".join(STREAMS),
        streams=streams,
        hololens=hololens,
        gopro=gopro,
    )
