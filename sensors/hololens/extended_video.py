"""Extended video, port 3819: any other camera of the headset, packets like the front camera's.

Of the metadata only width and height are filled. The pose is the rig node. A raw picture is in the device's own
pixel format (NV12, YUY2, IYUV or YV12).
"""

from __future__ import annotations

from sensors.hololens.pv import METADATA, PvPacket, decode, encode

NAME = "extended_video"
PORT = 3819
LIST_DEVICES = b"\x02"
"Sent after connecting: the headset answers with its cameras (u32 bytes, UTF-16LE JSON) and closes."

__all__ = ["LIST_DEVICES", "METADATA", "NAME", "PORT", "PvPacket", "decode", "encode"]
