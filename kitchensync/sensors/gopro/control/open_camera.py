"""Open a camera by its address (`http://host:port`, `usb:SERIAL`, `cohn:NAME`, `ble:ID`), and discover cameras."""

from __future__ import annotations

import time
from typing import NamedTuple

from kitchensync.sensors.errors import CameraLost, SdkMissing
from kitchensync.sensors.gopro.control.camera import GoProHttp
from kitchensync.sensors.gopro.control.entry import read_credentials
from kitchensync.sensors.gopro.control.library import BleCamera
from kitchensync.sensors.gopro.control.sdk import at_home, wired

SCHEMES = ("http://", "usb:", "cohn:", "ble:")
SERVICE = "_gopro-web._tcp.local."


def open_camera(url: str, timeout_s: float = 5.0) -> GoProHttp:
    """Return the camera of an address; nothing is sent yet.

    `usb:SERIAL@host:port` is a camera with that serial number at another address (a forwarded port). Raises
    `CameraLost` for an invalid address, `SdkMissing` if the library is not installed, `NoCredentials`.
    """
    kind, _, rest = url.partition(":")
    if kind == "http":
        return GoProHttp(url, timeout_s)
    if kind == "usb" and rest:
        serial, _, address = rest.partition("@")
        return wired(serial, f"http://{address}" if address else None, timeout_s)
    if kind == "cohn" and rest:
        return at_home(rest, read_credentials(rest), timeout_s)
    if kind == "ble" and rest:
        return BleCamera(rest, timeout_s)
    raise CameraLost(url, f"invalid address; it must begin with one of {', '.join(SCHEMES)}")


class AnnouncedCamera(NamedTuple):
    """A camera that announces itself."""

    serial: str
    address: str
    port: int


def discover(seconds: float = 5.0) -> list[AnnouncedCamera]:
    """Listen for cameras on USB and the network (multicast DNS); needs the extra `gopro`."""
    try:
        from zeroconf import ServiceBrowser, ServiceListener, Zeroconf
    except ImportError as error:
        raise SdkMissing("discover") from error

    cameras: dict[str, AnnouncedCamera] = {}

    class Listener(ServiceListener):
        def add_service(self, zc: Zeroconf, type_: str, name: str) -> None:
            service = zc.get_service_info(type_, name, timeout=2000)
            if service is not None and (addresses := service.parsed_addresses()):
                cameras[name] = AnnouncedCamera(name.partition(".")[0], addresses[0], service.port or 8080)

        def update_service(self, zc: Zeroconf, type_: str, name: str) -> None:
            self.add_service(zc, type_, name)

        def remove_service(self, zc: Zeroconf, type_: str, name: str) -> None:
            cameras.pop(name, None)

    zeroconf = Zeroconf()
    try:
        ServiceBrowser(zeroconf, SERVICE, Listener())
        time.sleep(seconds)
    finally:
        zeroconf.close()
    return sorted(cameras.values())
