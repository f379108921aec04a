"""From an address to a camera: `http://host:port`, `usb:SERIAL`, `cohn:NAME`, `ble:ID`. And who is there at all."""

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
    """Make the camera of an address; nothing is sent yet.

    `usb:SERIAL@host:port` is a camera of that serial number behind another address (a forwarded port).
    Raises `CameraLost` for an address that is none, `SdkMissing` where the library is not installed, `NoCredentials`.
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
    raise CameraLost(url, f"no address; write one of {', '.join(SCHEMES)}")


class Found(NamedTuple):
    """A camera that announces itself."""

    serial: str
    address: str
    port: int


def discover(seconds: float = 5.0) -> list[Found]:
    """Listen for cameras on USB and the network (multicast DNS); needs the extra `gopro`."""
    try:
        from zeroconf import ServiceBrowser, ServiceListener, Zeroconf
    except ImportError as error:
        raise SdkMissing("discover") from error

    found: dict[str, Found] = {}

    class Listener(ServiceListener):
        def add_service(self, zc: Zeroconf, type_: str, name: str) -> None:
            service = zc.get_service_info(type_, name, timeout=2000)
            if service is not None and service.parsed_addresses():
                found[name] = Found(
                    name.partition(".")[0], service.parsed_addresses()[0], service.port or 8080
                )

        def update_service(self, zc: Zeroconf, type_: str, name: str) -> None:
            self.add_service(zc, type_, name)

        def remove_service(self, zc: Zeroconf, type_: str, name: str) -> None:
            found.pop(name, None)

    zeroconf = Zeroconf()
    try:
        ServiceBrowser(zeroconf, SERVICE, Listener())
        time.sleep(seconds)
    finally:
        zeroconf.close()
    return sorted(found.values())
