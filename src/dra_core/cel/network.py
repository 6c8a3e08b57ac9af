"""IP addresses and networks as CEL selectors see them.

What may live here: the values of the Kubernetes ``ip`` and ``cidr`` libraries and
their parsers. Nothing here knows the CEL compiler.

``ipaddress`` reads the digits; what the reference (Go's ``netip``) treats
differently is checked here: no zones, no IPv4-mapped IPv6 addresses, prefix lengths
in plain decimal without sign or leading zero, and a network may have bits set
beyond its prefix.

Source: Kubernetes CEL libraries ``kubernetes.net.ip`` and ``net.cidr``.
"""

import ipaddress
from typing import Final

import attrs

from dra_core.cel.quoting import shown
from dra_core.errors import CelValueError

_BITS: Final = {4: 32, 6: 128}
_MAX_TEXT: Final = 64
"""No address or network needs more characters; longer texts are refused unread."""


@attrs.frozen
class IpAddress:
    """An IP address: ``family`` 4 or 6, ``value`` its bits as an integer."""

    family: int
    value: int

    def __str__(self) -> str:
        return str(_stdlib_address(self))

    def is_unspecified(self) -> bool:
        """``0.0.0.0`` or ``::``."""
        return self.value == 0

    def is_loopback(self) -> bool:
        """In ``127.0.0.0/8``, or ``::1``."""
        return self._top(8) == 127 if self.family == 4 else self.value == 1

    def is_multicast(self) -> bool:
        """In ``224.0.0.0/4`` or ``ff00::/8``."""
        return self._top(4) == 0xE if self.family == 4 else self._top(8) == 0xFF

    def is_link_local_multicast(self) -> bool:
        """In ``224.0.0.0/24``, or link-local scope (``ff?2::/16``) of IPv6 multicast."""
        if self.family == 4:
            return self._top(24) == 0xE00000
        return self._top(16) & 0xFF0F == 0xFF02

    def is_link_local_unicast(self) -> bool:
        """In ``169.254.0.0/16`` or ``fe80::/10``."""
        return self._top(16) == 0xA9FE if self.family == 4 else self._top(10) == 0x3FA

    def is_global_unicast(self) -> bool:
        """Not unspecified, broadcast, loopback, multicast or link-local. Private counts."""
        return not (
            self.is_unspecified()
            or (self.family == 4 and self.value == 0xFFFFFFFF)
            or self.is_loopback()
            or self.is_multicast()
            or self.is_link_local_unicast()
        )

    def _top(self, bits: int) -> int:
        return self.value >> (_BITS[self.family] - bits)


@attrs.frozen
class Cidr:
    """A network in CIDR notation. Bits of ``address`` beyond the prefix may be set."""

    address: IpAddress
    prefix_length: int

    def __str__(self) -> str:
        return f"{self.address}/{self.prefix_length}"

    def ip(self) -> IpAddress:
        """The address as written, bits beyond the prefix included."""
        return self.address

    def masked(self) -> "Cidr":
        """The same network with the bits beyond the prefix cleared."""
        shift = _BITS[self.address.family] - self.prefix_length
        value = self.address.value >> shift << shift
        return Cidr(IpAddress(self.address.family, value), self.prefix_length)

    def contains_ip(self, ip: IpAddress | str) -> bool:
        """Is the address in this network? Raises ``CelValueError`` for a malformed text."""
        address = parse_ip(ip) if isinstance(ip, str) else ip
        return self._covers(address)

    def contains_cidr(self, cidr: "Cidr | str") -> bool:
        """Is the network part of this one? Raises ``CelValueError`` for a malformed text."""
        other = parse_cidr(cidr) if isinstance(cidr, str) else cidr
        return self.prefix_length <= other.prefix_length and self._covers(other.address)

    def _covers(self, address: IpAddress) -> bool:
        if address.family != self.address.family:
            return False
        shift = _BITS[address.family] - self.prefix_length
        return address.value >> shift == self.address.value >> shift


def parse_ip(text: str) -> IpAddress:
    """The address that ``text`` spells.

    Raises ``CelValueError`` if it is none, has a zone, or is an IPv4-mapped IPv6 address.
    """
    if "%" in text:
        raise CelValueError(f"an IP address with a zone is not allowed: {shown(text)}")
    try:
        if len(text) > _MAX_TEXT:
            raise ipaddress.AddressValueError("too long")
        parsed = ipaddress.ip_address(text)
    except ValueError as error:
        raise CelValueError(f"not an IP address: {shown(text)}") from error
    address = IpAddress(parsed.version, int(parsed))
    if address.family == 6 and address.value >> 32 == 0xFFFF:
        raise CelValueError(f"an IPv4-mapped IPv6 address is not allowed: {shown(text)}")
    return address


def is_ip(text: str) -> bool:
    """Would ``parse_ip`` accept the text?"""
    try:
        parse_ip(text)
    except CelValueError:
        return False
    return True


def is_canonical_ip(text: str) -> bool:
    """Is the address written as its value prints? Raises ``CelValueError`` if it is none."""
    return str(parse_ip(text)) == text


def parse_cidr(text: str) -> Cidr:
    """The network that ``text`` spells, ``address/prefix length``.

    Raises ``CelValueError`` if it is none, or its address is IPv4-mapped IPv6.
    """
    address_text, slash, bits = text.rpartition("/")
    if not slash:
        raise CelValueError(f"not a network in CIDR notation, no '/': {shown(text)}")
    address = parse_ip(address_text)
    plain = bits.isascii() and bits.isdigit() and (bits == "0" or bits[0] != "0")
    if not plain or len(bits) > 3 or int(bits) > _BITS[address.family]:
        raise CelValueError(f"the prefix length is not valid: {shown(text)}")
    return Cidr(address, int(bits))


def is_cidr(text: str) -> bool:
    """Would ``parse_cidr`` accept the text?"""
    try:
        parse_cidr(text)
    except CelValueError:
        return False
    return True


def _stdlib_address(ip: IpAddress) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    if ip.family == 4:
        return ipaddress.IPv4Address(ip.value)
    return ipaddress.IPv6Address(ip.value)
