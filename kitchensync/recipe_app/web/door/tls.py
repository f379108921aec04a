"""HTTPS without anybody else: an authority of our own, which may only vouch for this computer's names, and a leaf.

A browser gives wake lock, microphone and service worker to secure pages only. The authority's certificate is
installed once on a tablet; its key never leaves this computer (0600) and its name constraints make it worthless for
any other site. The leaf is renewed at each start that finds it older than a third of its life or the names changed.
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
"""The longest that browsers accept."""
AUTHORITY_DAYS = 3650
RENEW_DAYS = 265

_CONTAINERS = ipaddress.ip_network("172.16.0.0/12")
"""Where programs for containers make networks inside this computer."""

Key = ec.EllipticCurvePrivateKey
_IpName = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True)
class Credentials:
    """The files that the server needs, and the certificate that tablets install.

    `left_out` are addresses that this certificate, made before they were there, cannot vouch for.
    """

    certificate: Path
    key: Path
    authority: Path
    left_out: tuple[str, ...] = ()


def own_names(host: str) -> list[str]:
    """Return the names and addresses by which the lab network reaches this computer."""
    name = socket.gethostname().partition(".")[0]
    names = ["localhost", "127.0.0.1", "::1", *([name, f"{name}.local"] if name else [])]
    names += own_addresses() if is_every_address(host) else [host]
    return sorted({name.lower() for name in names if name})


def is_every_address(host: str) -> bool:
    """Return whether a host to listen on is every address of this computer."""
    return host in ("0.0.0.0", "::")  # noqa: S104


def own_addresses() -> list[str]:
    """Return this computer's addresses in its networks, first the one that tablets are told.

    That is the one of the default route; a kitchen's own network has none, and then it is the first private one.
    """
    return [*routed_address(), *spare_addresses()]


def spare_addresses() -> list[str]:
    """Return the addresses that the default route does not use."""
    found = {ipaddress.IPv4Address(one) for one in _of_interfaces()} - {
        ipaddress.IPv4Address(one) for one in routed_address()
    }
    told = sorted(found, key=lambda one: (one.is_link_local, not one.is_private, one in _CONTAINERS, one))
    return [str(one) for one in told if not one.is_loopback]


def _of_interfaces() -> list[str]:
    """Read what the kernel takes for its own; nothing where there is no Linux."""
    try:
        table = Path("/proc/net/fib_trie").read_text(encoding="ascii")
    except OSError:
        return []
    return re.findall(r"\|-- ([0-9.]+)\n(?:\s+/\d+ .*\n)*?\s+/32 host LOCAL", table)


def routed_address() -> list[str]:
    """Return the address of the default route, or none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # nothing is sent: it only asks which interface would be used
        except OSError:
            return []
        return [str(probe.getsockname()[0])]


def credentials(
    folder: Path, names: Sequence[str], *, now: datetime.datetime, spare: Collection[str] = ()
) -> Credentials:
    """Return a certificate for these names, made or renewed where needed. Raises BadSetup.

    Tablets have installed the authority: it is not replaced because a `spare` address came, if it allows another one.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        authority, key = _authority(folder, names, spare, now)
        left_out = tuple(name for name in names if not _allows(authority, [name]))
        found = Credentials(folder / "leaf.crt", folder / "leaf.key", folder / "ca.crt", left_out)
        names = [name for name in names if name not in left_out]
        if not _is_good(found.certificate, authority, names, now):
            leaf_key = ec.generate_private_key(ec.SECP256R1())
            write_with_rights(found.key, _private(leaf_key))
            write_with_rights(found.certificate, _pem(_leaf(leaf_key, authority, key, names, now)), 0o644)
    except (OSError, ValueError) as error:
        raise BadSetup(f"{folder}: the certificates cannot be made or read ({error})") from error
    return found


def _authority(
    folder: Path, names: Sequence[str], spare: Collection[str], now: datetime.datetime
) -> tuple[x509.Certificate, Key]:
    """Read the authority, or make one; one whose constraints do not allow what is needed of the names is replaced."""
    certificate, key_file = folder / "ca.crt", folder / "ca.key"
    if certificate.exists() and key_file.exists():
        read = x509.load_pem_x509_certificate(certificate.read_bytes())
        key = serialization.load_pem_private_key(key_file.read_bytes(), password=None)
        if (
            isinstance(key, ec.EllipticCurvePrivateKey)
            and _allows(read, [name for name in names if name not in spare])
            and (
                not spare
                or any(
                    _allows(read, [name])
                    for name in names
                    if (address := _address(name)) is not None and not address.is_loopback
                )
            )
            and now < read.not_valid_after_utc
        ):
            return read, key
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
    # These names alone; of addresses, also the private network of each, where leases change.
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
    domains = {found.value for found in permitted if isinstance(found, x509.DNSName)}
    networks = [found.value for found in permitted if isinstance(found, x509.IPAddress)]
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
    found = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    same_names = set(found) == {_general(name) for name in names}
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
