"""Quantities, versions, addresses, networks, URLs and formats.

What may live here: one row per function of the API server's own libraries that deal in
values of their own, bound to the modules that implement these.

Source: the CEL libraries quantity, semver (version 1), ip, cidr, url and format of the
Kubernetes API server.
"""

from typing import Final

from dra_core.cel import cost
from dra_core.cel.formats import FORMATS, Format, named_format
from dra_core.cel.library import Row, function, member
from dra_core.cel.network import (
    Cidr,
    IpAddress,
    is_canonical_ip,
    is_cidr,
    is_ip,
    parse_cidr,
    parse_ip,
)
from dra_core.cel.problems import EvalProblem
from dra_core.cel.urls import Url, is_url, parse_url
from dra_core.cel.values import NONE, MapValue, OptionalValue
from dra_core.cel.versions import SemVer, is_semver, parse_semver
from dra_core.values.quantity import Quantity, is_quantity


def _as_integer(quantity: Quantity) -> int:
    units = quantity.as_integer()
    if units is None:
        raise EvalProblem(f"{quantity} is not a whole number of 64 bits")
    return units


def _query(url: Url) -> MapValue:
    return MapValue((name, tuple(values)) for name, values in url.query().items())


def _validate(format_: Format, text: str) -> OptionalValue:
    problems = format_.validate(text)
    return NONE if problems is None else OptionalValue(tuple(problems))


def _named(name: str) -> OptionalValue:
    found = named_format(name)
    return NONE if found is None else OptionalValue(found)


def _always(value: Format) -> Row:
    return function(f"format.{value.name}", "", "format", lambda: value)


_QUANTITIES: Final = (
    function("quantity", "string", "quantity", Quantity.parse, cost=cost.SCAN),
    function("isQuantity", "string", "bool", is_quantity, cost=cost.SCAN),
    function("sign", "quantity", "int", Quantity.sign),
    member("asInteger", "quantity", "int", _as_integer),
    member("asApproximateFloat", "quantity", "double", Quantity.as_approximate_float),
    member("isInteger", "quantity", "bool", Quantity.is_integer),
    member("isGreaterThan", "quantity, quantity", "bool", Quantity.__gt__),
    member("isLessThan", "quantity, quantity", "bool", Quantity.__lt__),
    member("compareTo", "quantity, quantity", "int", Quantity.compare),
    member("add", "quantity, quantity", "quantity", Quantity.add),
    member("add", "quantity, int", "quantity", Quantity.add),
    member("sub", "quantity, quantity", "quantity", Quantity.sub),
    member("sub", "quantity, int", "quantity", Quantity.sub),
)

_VERSIONS: Final = (
    function("semver", "string", "semver", parse_semver, cost=cost.SCAN),
    function("semver", "string, bool", "semver", parse_semver, cost=cost.SCAN),
    function("isSemver", "string", "bool", is_semver, cost=cost.SCAN),
    function("isSemver", "string, bool", "bool", is_semver, cost=cost.SCAN),
    member("isGreaterThan", "semver, semver", "bool", SemVer.is_greater_than),
    member("isLessThan", "semver, semver", "bool", SemVer.is_less_than),
    member("compareTo", "semver, semver", "int", SemVer.compare),
    member("major", "semver", "int", SemVer.major_int),
    member("minor", "semver", "int", SemVer.minor_int),
    member("patch", "semver", "int", SemVer.patch_int),
)

_ADDRESSES: Final = (
    function("ip", "string", "ip", parse_ip, cost=cost.SCAN),
    function("isIP", "string", "bool", is_ip, cost=cost.SCAN),
    function("ip.isCanonical", "string", "bool", is_canonical_ip, cost=cost.SCAN_TWICE),
    function("string", "ip", "string", str),
    member("family", "ip", "int", lambda a: a.family),
    member("isUnspecified", "ip", "bool", IpAddress.is_unspecified),
    member("isLoopback", "ip", "bool", IpAddress.is_loopback),
    member("isLinkLocalMulticast", "ip", "bool", IpAddress.is_link_local_multicast),
    member("isLinkLocalUnicast", "ip", "bool", IpAddress.is_link_local_unicast),
    member("isGlobalUnicast", "ip", "bool", IpAddress.is_global_unicast),
    function("cidr", "string", "cidr", parse_cidr, cost=cost.SCAN),
    function("isCIDR", "string", "bool", is_cidr, cost=cost.SCAN),
    function("string", "cidr", "string", str),
    member("containsIP", "cidr, string", "bool", Cidr.contains_ip, cost=cost.CIDR_IP),
    member("containsIP", "cidr, ip", "bool", Cidr.contains_ip, cost=cost.CIDR_IP),
    member("containsCIDR", "cidr, string", "bool", Cidr.contains_cidr, cost=cost.CIDR_CIDR),
    member("containsCIDR", "cidr, cidr", "bool", Cidr.contains_cidr, cost=cost.CIDR_CIDR),
    member("ip", "cidr", "ip", Cidr.ip),
    member("prefixLength", "cidr", "int", lambda a: a.prefix_length),
    member("masked", "cidr", "cidr", Cidr.masked),
)

_URLS: Final = (
    function("url", "string", "url", parse_url, cost=cost.SCAN),
    function("isURL", "string", "bool", is_url),
    member("getScheme", "url", "string", lambda a: a.scheme),
    member("getHost", "url", "string", lambda a: a.host),
    member("getHostname", "url", "string", lambda a: a.hostname),
    member("getPort", "url", "string", lambda a: a.port),
    member("getEscapedPath", "url", "string", lambda a: a.escaped_path),
    member("getQuery", "url", "map(string, list(string))", _query),
)

_FORMATS: Final = (
    *(_always(format_) for format_ in FORMATS.values()),
    function("format.named", "string", "optional(format)", _named),
    member("validate", "format, string", "optional(list(string))", _validate, cost=cost.VALIDATE),
)

ROWS: Final = (*_QUANTITIES, *_VERSIONS, *_ADDRESSES, *_URLS, *_FORMATS)
