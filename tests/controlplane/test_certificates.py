"""Certificates carry the names and the identity that were asked for."""

import ipaddress

from cryptography import x509
from cryptography.x509.oid import NameOID

from tests.controlplane.certificates import Authority


def test_server_certificate_covers_its_names_and_addresses() -> None:
    authority = Authority()
    server = x509.load_pem_x509_certificate(authority.server("server", ["localhost", "127.0.0.1"]).certificate)
    names = server.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost"]
    assert names.get_values_for_type(x509.IPAddress) == [ipaddress.ip_address("127.0.0.1")]
    server.verify_directly_issued_by(x509.load_pem_x509_certificate(authority.certificate))


def test_client_certificate_names_user_and_groups() -> None:
    credential = Authority().client("system:node:one", ["system:nodes", "extra"])
    subject = x509.load_pem_x509_certificate(credential.certificate).subject
    assert [part.value for part in subject.get_attributes_for_oid(NameOID.COMMON_NAME)] == ["system:node:one"]
    assert [part.value for part in subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)] == [
        "system:nodes",
        "extra",
    ]
