"""HTTPS with an own certificate authority, which is limited to this computer's names, and a leaf certificate.

A browser gives wake lock, microphone and service worker to secure pages only. The authority's certificate is
installed once on a tablet; its key never leaves this computer (0600) and its name constraints make it useless for
any other site. At each start the leaf is renewed if it is older than `RENEW_DAYS` or the names have changed.
"""

from __future__ import annotations

import datetime
import ipaddress
import re
import socket
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kitchensync.recipe_app.errors import BadSetup
from kitchensync.shell.files_on_disk import write_with_rights

LEAF_DAYS = 397
"""The longest lifetime that browsers accept."""
AUTHORITY_DAYS = 3650  # tablets install it by hand, and a new one has to be installed again
RENEW_DAYS = 265  # checked only at a start: an app that then runs on has 132 days left

_CONTAINERS = ipaddress.ip_network("172.16.0.0/12")
"""Networks of container programs inside this computer."""

Key = ec.EllipticCurvePrivateKey
_IpName = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True)
class Credentials:
    """The server's certificate files, and the authority's certificate for tablets.

    `left_out` are newer addresses that the authority's certificate does not cover.
    """

    certificate: Path
    key: Path
    authority: Path
    left_out: tuple[str, ...] = ()


def own_names(host: str) -> list[str]:
    """Return this computer's names and addresses in the lab network."""
    name = socket.gethostname().partition(".")[0]
    names = ["localhost", "127.0.0.1", "::1", *([name, f"{name}.local"] if name else [])]
    names += own_addresses() if is_every_address(host) else [host]
    return sorted({name.lower() for name in names if name})


def is_every_address(host: str) -> bool:
    """Return whether a host to listen on stands for every address of this computer."""
    return host in ("0.0.0.0", "::")  # noqa: S104


def own_addresses() -> list[str]:
    """Return this computer's addresses in its networks, the one for tablets first.

    That is the address of the default route; in a kitchen's own network without one, the first private address.
    """
    return [*routed_address(), *spare_addresses()]


def spare_addresses() -> list[str]:
    """Return this computer's IPv4 addresses besides that of the default route."""
    addresses = map(ipaddress.IPv4Address, set(_local_addresses()) - set(routed_address()))
    ordered = sorted(addresses, key=lambda it: (it.is_link_local, not it.is_private, it in _CONTAINERS, it))
    return [str(address) for address in ordered if not address.is_loopback]


def _local_addresses() -> list[str]:
    """Return the kernel's local IPv4 addresses; none if this is not Linux."""
    try:
        table = Path("/proc/net/fib_trie").read_text(encoding="ascii")
    except OSError:
        return []
    return re.findall(r"\|-- ([0-9.]+)\n(?:\s+/\d+ .*\n)*?\s+/32 host LOCAL", table)


def routed_address() -> list[str]:
    """Return the address of the default route, or none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # UDP: sends nothing, only chooses the interface
        except OSError:
            return []
        return [str(probe.getsockname()[0])]


def credentials(
    folder: Path, names: Sequence[str], *, now: datetime.datetime, spare: Collection[str] = ()
) -> Credentials:
    """Return a certificate for these names, made or renewed if needed. Raises BadSetup.

    The authority is installed on tablets, so it is not replaced for a new `spare` address if it covers another one.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        authority, key = _authority(folder, names, spare, now)
        left_out = tuple(name for name in names if not _allows(authority, [name]))
        files = Credentials(folder / "leaf.crt", folder / "leaf.key", folder / "ca.crt", left_out)
        names = [name for name in names if name not in left_out]
        if not _is_good(files.certificate, authority, names, now):
            leaf_key = ec.generate_private_key(ec.SECP256R1())
            write_with_rights(files.key, _private(leaf_key))
            write_with_rights(files.certificate, _pem(_leaf(leaf_key, authority, key, names, now)), 0o644)
    except (OSError, ValueError) as error:
        raise BadSetup(f"{folder}: the certificates cannot be made or read ({error})") from error
    return files


def _authority(
    folder: Path, names: Sequence[str], spare: Collection[str], now: datetime.datetime
) -> tuple[x509.Certificate, Key]:
    """Read the authority, or make a new one if it is missing or does not cover the required names."""
    certificate, key_file = folder / "ca.crt", folder / "ca.key"
    if certificate.exists() and key_file.exists():
        authority = x509.load_pem_x509_certificate(certificate.read_bytes())
        key = serialization.load_pem_private_key(key_file.read_bytes(), password=None)
        if (
            isinstance(key, ec.EllipticCurvePrivateKey)
            and _allows(authority, [name for name in names if name not in spare])
            and (
                not spare
                or any(
                    _allows(authority, [name])
                    for name in names
                    if (address := _address(name)) is not None and not address.is_loopback
                )
            )
            and now < authority.not_valid_after_utc
        ):
            return authority, key
    key = ec.generate_private_key(ec.SECP256R1())
    made = _self_signed(key, names, now)
    write_with_rights(key_file, _private(key))
    write_with_rights(certificate, _pem(made), 0o644)
    return made, key


def _builder(
    subject: x509.Name, issuer: x509.Name, now: datetime.datetime, days: int
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now - datetime.timedelta(hours=1) + datetime.timedelta(days=days))
    )


def _self_signed(key: Key, names: Sequence[str], now: datetime.datetime) -> x509.Certificate:
    subject = _name(f"KitchenSync on {socket.gethostname()}")
    public = key.public_key()
    # Only these names; for private addresses their /24 network, since DHCP leases change.
    permitted: list[x509.GeneralName] = []
    for name in names:
        address = _address(name)
        if address is None:
            permitted.append(x509.DNSName(name))
        else:
            is_own = address.version == 4 and address.is_private and not address.is_loopback
            wide = 24 if is_own else address.max_prefixlen
            permitted.append(x509.IPAddress(ipaddress.ip_network(f"{address}/{wide}", strict=False)))
    return (
        _builder(subject, subject, now, AUTHORITY_DAYS)
        .public_key(public)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(authority=True), critical=True)
        .add_extension(x509.NameConstraints(permitted, None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .sign(key, hashes.SHA256())
    )


def _leaf(
    leaf_key: Key, authority: x509.Certificate, key: Key, names: Sequence[str], now: datetime.datetime
) -> x509.Certificate:
    issuer_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key())
    return (
        _builder(_name("KitchenSync"), authority.subject, now, LEAF_DAYS)
        .public_key(leaf_key.public_key())
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(authority=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([_general(name) for name in names]), critical=False)
        .add_extension(issuer_key, critical=False)
        .sign(key, hashes.SHA256())
    )


def _usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not authority,
        key_cert_sign=authority,
        crl_sign=authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common[:64])])


def _address(name: str) -> _IpName | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


def _general(name: str) -> x509.GeneralName:
    address = _address(name)
    return x509.DNSName(name) if address is None else x509.IPAddress(address)


def _allows(authority: x509.Certificate, names: Sequence[str]) -> bool:
    permitted = (
        authority.extensions.get_extension_for_class(x509.NameConstraints).value.permitted_subtrees or []
    )
    domains = {
        permitted_name.value for permitted_name in permitted if isinstance(permitted_name, x509.DNSName)
    }
    networks = [
        permitted_name.value for permitted_name in permitted if isinstance(permitted_name, x509.IPAddress)
    ]
    for name in names:
        address = _address(name)
        if address is None and name not in domains:
            return False
        if address is not None and not any(
            isinstance(network, ipaddress.IPv4Network | ipaddress.IPv6Network) and address in network
            for network in networks
        ):
            return False
    return True


def _is_good(path: Path, authority: x509.Certificate, names: Sequence[str], now: datetime.datetime) -> bool:
    if not path.exists():
        return False
    leaf = x509.load_pem_x509_certificate(path.read_bytes())
    alternatives = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    same_names = set(alternatives) == {_general(name) for name in names}
    young = now < leaf.not_valid_before_utc + datetime.timedelta(days=RENEW_DAYS)
    try:
        leaf.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return same_names and young


def _private(key: Key) -> bytes:
    plain = serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
