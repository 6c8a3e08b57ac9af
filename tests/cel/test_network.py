"""IP addresses and networks: what is one, how they print, what is in what."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_core.cel.network import (
    Cidr,
    IpAddress,
    is_canonical_ip,
    is_cidr,
    is_ip,
    parse_cidr,
    parse_ip,
)
from dra_core.errors import CelValueError


@pytest.mark.parametrize(
    ("text", "family", "printed"),
    [
        ("127.0.0.1", 4, "127.0.0.1"),
        ("0.0.0.0", 4, "0.0.0.0"),
        ("255.255.255.255", 4, "255.255.255.255"),
        ("::", 6, "::"),
        ("::1", 6, "::1"),
        ("1::", 6, "1::"),
        ("2001:DB8::ABCD", 6, "2001:db8::abcd"),
        ("2001:db8::0:0:0:abcd", 6, "2001:db8::abcd"),
        ("1:2:3:4:5:6:7:8", 6, "1:2:3:4:5:6:7:8"),
        ("1:2:3:4:5:6:7::", 6, "1:2:3:4:5:6:7:0"),
        ("::2:3:4:5:6:7:8", 6, "0:2:3:4:5:6:7:8"),
        ("1:0:0:2:0:0:0:3", 6, "1:0:0:2::3"),
        ("1:0:0:2:3:0:0:4", 6, "1::2:3:0:0:4"),
        ("::1.2.3.4", 6, "::102:304"),
        ("64:ff9b::1.2.3.4", 6, "64:ff9b::102:304"),
        ("1:2:3:4:5:6:1.2.3.4", 6, "1:2:3:4:5:6:102:304"),
        ("0001::", 6, "1::"),
    ],
)
def test_addresses(text: str, family: int, printed: str) -> None:
    """An address has a family and prints in its one canonical form."""
    address = parse_ip(text)
    assert address.family == family
    assert str(address) == printed
    assert is_ip(text)
    assert is_canonical_ip(text) == (text == printed)
    assert parse_ip(printed) == address


@pytest.mark.parametrize(
    "text",
    [
        "", "x", "1", "1.2.3", "1.2.3.4.5", "127.0.0.256", "01.2.3.4", "1.2.3.04", "1.2.3.",
        ".1.2.3", "1..2.3", "1.2.3.4 ", " 1.2.3.4", "1.2.3.4\n", "0x1.2.3.4", "1.2.3.4/32",
        "１.2.3.4", ":::1", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "1::2:3:4:5:6:7:8", "::1::",
        "12345::", "00001::", "g::", "1:2:3:4:5:6:7:1.2.3.4", "::1.2.3", "::01.2.3.4",
        "::1.2.3.4:5", "fe80::1%eth0", "fe80::1%", "1.2.3.4%eth0", "%eth0", "::ffff:1.2.3.4",
        "::ffff:0102:0304", "::FFFF:0:0", "[::1]", "1:", ":1", "1" * 10_000, "::" + "0" * 10_000,
    ],
)  # fmt: skip
def test_no_addresses(text: str) -> None:
    """Leading zeros, zones, IPv4-mapped addresses, blanks and other texts are refused."""
    assert not is_ip(text)
    with pytest.raises(CelValueError) as caught:
        parse_ip(text)
    assert len(caught.value.problem) < 200
    with pytest.raises(CelValueError):
        is_canonical_ip(text)


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("0.0.0.0", "unspecified"),
        ("::", "unspecified"),
        ("127.0.0.1", "loopback"),
        ("127.255.255.255", "loopback"),
        ("::1", "loopback"),
        ("192.168.0.1", "global"),
        ("10.0.0.1", "global"),
        ("2001:db8::abcd", "global"),
        ("fd00::1", "global"),
        ("fec0::1", "global"),
        ("0.0.0.1", "global"),
        ("::2", "global"),
        ("255.255.255.255", ""),
        ("224.0.0.1", "local-multicast"),
        ("224.0.1.1", ""),
        ("239.0.0.1", ""),
        ("240.0.0.1", "global"),
        ("ff02::1", "local-multicast"),
        ("ff12::1", "local-multicast"),
        ("ff05::1", ""),
        ("ff00::1", ""),
        ("169.254.169.254", "local-unicast"),
        ("169.253.1.1", "global"),
        ("fe80::1", "local-unicast"),
        ("febf::1", "local-unicast"),
        ("fd80::1", "global"),
    ],
)
def test_kinds(text: str, kinds: str) -> None:
    """Every address is of one kind at most; private addresses count as global."""
    address = parse_ip(text)
    found = {
        "unspecified": address.is_unspecified(),
        "loopback": address.is_loopback(),
        "local-multicast": address.is_link_local_multicast(),
        "local-unicast": address.is_link_local_unicast(),
        "global": address.is_global_unicast(),
    }
    assert [kind for kind, holds in found.items() if holds] == kinds.split()


def test_addresses_are_equal_by_family_and_value() -> None:
    """0.0.0.1 is not ::1; spellings of one address are equal and one key."""
    assert parse_ip("0.0.0.1") != parse_ip("::1")
    assert parse_ip("2001:DB8::1") == parse_ip("2001:db8:0::1")
    assert len({parse_ip("2001:DB8::1"), parse_ip("2001:db8:0::1")}) == 1


@pytest.mark.parametrize(
    ("text", "printed", "length", "masked"),
    [
        ("192.168.0.0/16", "192.168.0.0/16", 16, "192.168.0.0/16"),
        ("192.168.0.1/24", "192.168.0.1/24", 24, "192.168.0.0/24"),
        ("10.1.2.3/0", "10.1.2.3/0", 0, "0.0.0.0/0"),
        ("10.1.2.3/32", "10.1.2.3/32", 32, "10.1.2.3/32"),
        ("::1/128", "::1/128", 128, "::1/128"),
        ("2001:DB8::1/32", "2001:db8::1/32", 32, "2001:db8::/32"),
        ("::/0", "::/0", 0, "::/0"),
    ],
)
def test_networks(text: str, printed: str, length: int, masked: str) -> None:
    """A network keeps its address as written; masking clears what is beyond the prefix."""
    network = parse_cidr(text)
    assert is_cidr(text)
    assert str(network) == printed
    assert network.prefix_length == length
    assert str(network.masked()) == masked
    assert (network == network.masked()) == (printed == masked)
    assert network.ip() == parse_ip(printed.partition("/")[0])


@pytest.mark.parametrize(
    "text",
    [
        "", "/", "10.0.0.0", "10.0.0.0/", "10.0.0.0/33", "::1/129", "10.0.0.0/-1", "10.0.0.0/+8",
        "10.0.0.0/08", "10.0.0.0/00", "10.0.0.0/8 ", "10.0.0.0/ 8", "10.0.0.0/x", "10.0.0.0/8/8",
        "10.0.0/8", "10.0.0.0/255.0.0.0", "fe80::1%eth0/64", "::ffff:1.2.3.4/96", "10.0.0.0/１",
        "10.0.0.0/²", "/8", "10.0.0.0/" + "1" * 10_000,
    ],
)  # fmt: skip
def test_no_networks(text: str) -> None:
    """A prefix length is a plain number in range; the address must be one."""
    assert not is_cidr(text)
    with pytest.raises(CelValueError):
        parse_cidr(text)


@pytest.mark.parametrize(
    ("network", "inner", "expected"),
    [
        ("10.0.0.0/8", "10.1.0.0/16", True),
        ("192.168.0.0/16", "192.168.10.0/24", True),
        ("192.168.1.0/24", "192.168.2.0/24", False),
        ("192.168.0.0/24", "192.168.0.0/24", True),
        ("192.168.0.0/24", "192.168.0.0/16", False),
        ("192.168.0.9/24", "192.168.0.1/25", True),
        ("0.0.0.0/0", "1.2.3.4/32", True),
        ("::/0", "1.2.3.4/32", False),
        ("0.0.0.0/0", "::/0", False),
        ("2001:db8::/32", "2001:db8:1::/48", True),
    ],
)
def test_networks_in_networks(network: str, inner: str, expected: bool) -> None:
    """A network contains another of its family with the same prefix and no fewer bits."""
    assert parse_cidr(network).contains_cidr(parse_cidr(inner)) is expected
    assert parse_cidr(network).contains_cidr(inner) is expected


@pytest.mark.parametrize(
    ("network", "address", "expected"),
    [
        ("192.168.0.0/24", "192.168.0.1", True),
        ("192.168.0.0/24", "192.168.1.1", False),
        ("10.0.0.0/8", "10.2.3.4", True),
        ("0.0.0.0/0", "::", False),
        ("::/0", "0.0.0.0", False),
        ("2001:db8::/32", "2001:db8::1", True),
        ("192.168.0.77/24", "192.168.0.1", True),
    ],
)
def test_addresses_in_networks(network: str, address: str, expected: bool) -> None:
    """A network contains the addresses of its family that share its prefix."""
    assert parse_cidr(network).contains_ip(parse_ip(address)) is expected
    assert parse_cidr(network).contains_ip(address) is expected


def test_malformed_argument_is_an_error() -> None:
    """Asking for a text that is no address or network fails rather than saying no."""
    with pytest.raises(CelValueError):
        parse_cidr("10.0.0.0/8").contains_ip("x")
    with pytest.raises(CelValueError):
        parse_cidr("10.0.0.0/8").contains_cidr("10.0.0.0")


v4 = st.integers(0, 2**32 - 1).map(lambda value: IpAddress(4, value))
v6 = st.integers(0, 2**128 - 1).filter(lambda value: value >> 32 != 0xFFFF)
addresses = v4 | v6.map(lambda value: IpAddress(6, value))


@st.composite
def networks(draw: st.DrawFn) -> Cidr:
    address = draw(addresses)
    return Cidr(address, draw(st.integers(0, 32 if address.family == 4 else 128)))


@given(addresses)
def test_address_round_trip(address: IpAddress) -> None:
    """An address prints as a canonical text that parses to it."""
    assert parse_ip(str(address)) == address
    assert is_canonical_ip(str(address))


@given(networks())
def test_network_round_trip(network: Cidr) -> None:
    """A network prints as a text that parses to it, and contains itself and its address."""
    assert parse_cidr(str(network)) == network
    assert network.contains_ip(network.ip())
    assert network.contains_cidr(network)
    assert network.masked().masked() == network.masked()


@given(networks(), networks())
def test_containment_agrees_with_ipaddress(one: Cidr, other: Cidr) -> None:
    """One network contains another exactly if it is a supernet."""
    left = ipaddress.ip_network(str(one), strict=False)
    right = ipaddress.ip_network(str(other), strict=False)
    expected = one.address.family == other.address.family and right.subnet_of(left)  # type: ignore[arg-type]
    assert one.contains_cidr(other) == expected


def textbook_ip(text: str) -> bool:
    """Is this an address, by the grammar of RFC 4291 and decimal octets without zeros?"""
    if ":" not in text:
        return is_dotted(text)
    if "." in text:
        prefix, _, quad = text.rpartition(":")
        if not is_dotted(quad):
            return False
        text = f"{prefix}:0:0"
    left, ellipsis, right = text.partition("::")
    groups = [part for half in (left, right) if half for part in half.split(":")]
    hexadecimal = all(
        1 <= len(part) <= 4 and set(part) <= set("0123456789abcdefABCDEF") for part in groups
    )
    return hexadecimal and (len(groups) <= 7 if ellipsis else len(groups) == 8)


def is_dotted(text: str) -> bool:
    parts = text.split(".")
    return len(parts) == 4 and all(part in OCTETS for part in parts)


OCTETS = frozenset(map(str, range(256)))


@given(
    st.text(alphabet="012f:.", max_size=16)
    | st.lists(st.sampled_from(["0", "1", "ffff", ":", "::", "1.2.3.4", "."]), max_size=17).map(
        "".join
    )
)
def test_agrees_with_the_textbook(text: str) -> None:
    """A text is an address exactly by the textbook's grammar, IPv4-mapped ones left out."""
    expected = textbook_ip(text)
    if expected and ":" in text and int(ipaddress.IPv6Address(text)) >> 32 == 0xFFFF:
        expected = False
    assert is_ip(text) == expected
