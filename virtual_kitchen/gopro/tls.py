"""A camera on the home network: HTTPS with a certificate of its own, and a name and password."""

from __future__ import annotations

import base64
import hmac
import shutil
import ssl
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from virtual_kitchen.errors import KitchenError


@dataclass(frozen=True)
class HomeNetwork:
    """What a camera hands out when it joins: where its certificate is, and who may enter."""

    certificate: str
    "PEM."
    username: str
    password: str
    context: ssl.SSLContext

    def admits(self, authorization: str | None) -> bool:
        """Check a request's Authorization header."""
        token = base64.b64encode(f"{self.username}:{self.password}".encode()).decode()
        return hmac.compare_digest((authorization or "").encode(), f"Basic {token}".encode())


def home_network(host: str, username: str = "gopro", password: str = "kitchen") -> HomeNetwork:  # noqa: S107
    """Make a self-signed certificate for an address, with the system's openssl; its key never leaves memory for long.

    Raises KitchenError where there is no openssl.
    """
    if shutil.which("openssl") is None:
        raise KitchenError("a camera on the home network needs the program openssl: install it")
    with tempfile.TemporaryDirectory(prefix="kitchen-tls-") as folder:
        key, certificate = Path(folder) / "key.pem", Path(folder) / "cert.pem"
        command = [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
        ]
        command += ["-keyout", str(key), "-out", str(certificate), "-days", "2", "-subj", "/CN=GoPro"]
        command += ["-addext", f"subjectAltName=IP:{host}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise KitchenError(f"openssl made no certificate: {done.stderr.strip().splitlines()[-1:]}")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        return HomeNetwork(certificate.read_text(), username, password, context)
