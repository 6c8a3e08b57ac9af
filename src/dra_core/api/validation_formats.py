"""Formats of names and values: what the API accepts as a label, a subdomain, a version.

What may live here: one function per format, from a text to what is wrong with it
(``None``: nothing). No object, no path.

Lengths are bytes of UTF-8, as the API server counts them. Every pattern is tried on
texts of limited length only.
"""

import re
from typing import Final

from semver import Version

MAX_LABEL: Final = 63
MAX_SUBDOMAIN: Final = 253
MAX_DRIVER: Final = 63
"""DriverNameMaxLength."""
MAX_POOL: Final = 253
"""PoolNameMaxLength."""
MAX_IDENTIFIER: Final = 32
"""DeviceMaxIDLength."""
MAX_ATTRIBUTE: Final = 64
"""DeviceAttributeMaxValueLength."""

_DNS_LABEL = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_match_dns_label = re.compile(_DNS_LABEL).fullmatch
_match_subdomain = re.compile(rf"{_DNS_LABEL}(?:\.{_DNS_LABEL})*").fullmatch
_match_identifier = re.compile(r"[A-Za-z_][A-Za-z0-9_]*").fullmatch
_match_label_part = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?").fullmatch
_match_uuid = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}").fullmatch


def length(text: str) -> int:
    """Bytes of the text in UTF-8."""
    return len(text.encode("utf-8", "surrogatepass"))


def too_long(text: str, limit: int) -> str | None:
    """Longer than ``limit`` bytes?"""
    return f"must not be longer than {limit} bytes" if length(text) > limit else None


def dns_label(text: str) -> str | None:
    """An RFC 1123 label: names of devices, requests, counters."""
    if not text:
        return "is required"
    if problem := too_long(text, MAX_LABEL):
        return problem
    if _match_dns_label(text):
        return None
    return "must be a DNS label: a-z, 0-9 and '-', with a letter or digit at both ends"


def subdomain(text: str) -> str | None:
    """An RFC 1123 subdomain: names of objects and nodes."""
    if not text:
        return "is required"
    if problem := too_long(text, MAX_SUBDOMAIN):
        return problem
    if _match_subdomain(text):
        return None
    return "must be a DNS subdomain: DNS labels of a-z, 0-9 and '-' separated by '.'"


def driver_name(text: str) -> str | None:
    """A driver: a subdomain of up to 63 bytes, in which upper case is accepted."""
    return subdomain(text.lower()) or too_long(text, MAX_DRIVER)


def pool_name(text: str) -> str | None:
    """A pool: subdomains separated by slashes."""
    if not text:
        return "is required"
    if problem := too_long(text, MAX_POOL):
        return problem
    if all(_match_subdomain(part) for part in text.split("/")):
        return None
    return "must be DNS subdomains separated by '/'"


def qualified_name(text: str) -> str | None:
    """An attribute or capacity: a C identifier, with or without a domain."""
    domain, slash, name = text.rpartition("/")
    if slash and (problem := driver_name(domain)):
        return f"its domain {problem}"
    if problem := too_long(name, MAX_IDENTIFIER):
        return f"its name {problem}"
    if _match_identifier(name):
        return None
    return "its name must be letters, digits and '_', not starting with a digit"


def fully_qualified_name(text: str) -> str | None:
    """An attribute of a constraint: the domain is required."""
    return qualified_name(text) if "/" in text else "must be a domain and a name: domain/name"


def label_key(text: str) -> str | None:
    """The key of a label, taint, or condition: a name with or without a domain."""
    prefix, slash, name = text.rpartition("/")
    if slash and (problem := subdomain(prefix)):
        return f"its prefix {problem}"
    if not name:
        return "is required"
    if problem := too_long(name, MAX_LABEL):
        return f"its name {problem}"
    if _match_label_part(name):
        return None
    return "must be letters, digits, '-', '_' and '.', with a letter or digit at both ends"


def label_value(text: str) -> str | None:
    """The value of a label or taint; may be empty."""
    if problem := too_long(text, MAX_LABEL):
        return problem
    if not text or _match_label_part(text):
        return None
    return "must be letters, digits, '-', '_' and '.', with a letter or digit at both ends"


def version(text: str) -> str | None:
    """A semantic version, strictly."""
    if problem := too_long(text, MAX_ATTRIBUTE):
        return problem
    return None if Version.is_valid(text) else "must be a semantic version such as 1.2.3"


def uid(text: str) -> str | None:
    """A UUID in its normal form."""
    return None if _match_uuid(text) else "must be a UUID in lower case"


def extended_resource_name(text: str) -> str | None:
    """A resource that devices of a class serve: ``domain/name``, not of Kubernetes itself."""
    if "/" not in text or "kubernetes.io/" in text:
        return "must be domain/name with a domain other than kubernetes.io"
    if text.startswith("requests."):
        return "must not start with 'requests.'"
    # Quotas put this prefix in front of it, and the result has to be a label key, too.
    return label_key(f"requests.{text}")
