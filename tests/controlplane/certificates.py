"""The certificates of a test control plane: one authority, and what it signs.

Kubernetes reads a client's identity from its certificate: the common name is the user, each organization is a group.
Elliptic-curve keys, because a start must take seconds; ten years, because nobody renews a directory that lives minutes.
"""

import datetime as dt
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_LIFETIME = dt.timedelta(days=3650)
_CLOCK_SKEW = dt.timedelta(hours=1)


@dataclass(frozen=True)
class Credential:
    """A certificate and its private key, both PEM (the key in PKCS #8, not encrypted)."""

    certificate: bytes
    key: bytes


@dataclass(frozen=True)
class SigningKey:
    """A private key and its public half, both PEM: what signs and what checks the tokens of service accounts."""

    private: bytes
    public: bytes


class Authority:
    """A certificate authority with a fresh key."""

    def __init__(self, common_name: str = "dgdr-test-ca") -> None:
        """Make the key and the self-signed certificate."""
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
        builder = self._builder(self._name, self._key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        builder = builder.add_extension(_key_usage(signs_certificates=True), critical=True)
        self.certificate = builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    def server(self, common_name: str, hosts: Sequence[str]) -> Credential:
        """Sign a server certificate for DNS names and IP addresses."""
        names = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
        return self._sign(common_name, (), ExtendedKeyUsageOID.SERVER_AUTH, names)

    def client(self, common_name: str, organizations: Sequence[str] = ()) -> Credential:
        """Sign a client certificate: ``common_name`` is the Kubernetes user, ``organizations`` are its groups."""
        return self._sign(common_name, organizations, ExtendedKeyUsageOID.CLIENT_AUTH, None)

    def _sign(
        self,
        common_name: str,
        organizations: Sequence[str],
        usage: x509.ObjectIdentifier,
        names: x509.SubjectAlternativeName | None,
    ) -> Credential:
        key = ec.generate_private_key(ec.SECP256R1())
        attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in organizations]
        subject = x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
        builder = self._builder(subject, key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(_key_usage(signs_certificates=False), critical=True)
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        if names is not None:
            builder = builder.add_extension(names, critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        return Credential(certificate.public_bytes(serialization.Encoding.PEM), _private_pem(key))

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        """Return what every certificate has; Python 3.13 refuses one without the two key identifiers."""
        now = dt.datetime.now(dt.UTC)
        issuer = self._key.public_key()
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _CLOCK_SKEW)
            .not_valid_after(now + _LIFETIME)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer), critical=False)
        )


def signing_key() -> SigningKey:
    """Return a fresh key for the tokens of service accounts."""
    key = ec.generate_private_key(ec.SECP256R1())
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return SigningKey(_private_pem(key), public)


def _private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )
