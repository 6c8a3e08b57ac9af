"""URLs as CEL selectors see them.

What may live here: the value of the Kubernetes ``url`` library and its parser.
Nothing here knows the CEL compiler.

The rules are those of Go's ``net/url`` (1.26), which the reference uses twice: the
text as a whole must be a request URI, that is an absolute URI or an absolute path,
and only then is a fragment cut off. Python's ``urllib.parse`` accepts and splits
differently, so it is not used.

Escapes denote bytes, and a host, path or query can spell bytes that are no UTF-8.
Work is done on one character per byte (Latin-1); results are decoded at the end,
where such a byte becomes one lone surrogate (``surrogateescape``).

Source: Kubernetes CEL library ``kubernetes.urls``; RFC 3986 and RFC 6874.
"""

import ipaddress
import string
from collections.abc import Callable
from typing import Final

import attrs

from dra_core.cel.quoting import shown
from dra_core.errors import CelValueError

MAX_QUERY_PARAMETERS: Final = 10_000
"""With more parameters the reference sees an empty query (GODEBUG urlmaxqueryparams)."""

_ALPHANUMERIC: Final = frozenset(string.ascii_letters + string.digits)
_UNRESERVED: Final = _ALPHANUMERIC | frozenset("-_.~")
_HEX: Final = frozenset(string.hexdigits)
_PATH_PLAIN: Final = _UNRESERVED | frozenset("$&+,/:;=@")
_PATH_ENCODED: Final = _PATH_PLAIN | frozenset("!'()*[]%")
_HOST_PLAIN: Final = _UNRESERVED | frozenset("!$&'()*+,;=:[]<>\"")
_USER_PLAIN: Final = _UNRESERVED | frozenset("$&+,;=")
_USERINFO: Final = _UNRESERVED | frozenset(":!$&'()*+,;=%@")
_FRAGMENT_PLAIN: Final = _UNRESERVED | frozenset("$&+,/:;=?@!()*")


@attrs.frozen
class Url:
    """A parsed URL. Two URLs are equal if they print alike.

    ``text`` is the normalised spelling, the other fields are what the accessors of
    the CEL library return: ``scheme`` in lower case, ``host`` with port and
    brackets, ``hostname`` and ``port`` apart, ``escaped_path``. ``raw_query`` is
    the query as written, see ``query()``.
    """

    text: str
    scheme: str = attrs.field(eq=False)
    host: str = attrs.field(eq=False)
    hostname: str = attrs.field(eq=False)
    port: str = attrs.field(eq=False)
    escaped_path: str = attrs.field(eq=False)
    raw_query: str = attrs.field(eq=False)

    def __str__(self) -> str:
        return self.text

    def query(self) -> dict[str, list[str]]:
        """The query parameters: key to values, both unescaped, in the order written.

        Parameters with a broken escape or a semicolon are left out.
        """
        raw = _to_bytes(self.raw_query)
        if raw.count("&") >= MAX_QUERY_PARAMETERS:
            return {}
        parameters: dict[str, list[str]] = {}
        for pair in raw.split("&"):
            key, _, value = pair.partition("=")
            if not pair or ";" in pair or not (_escapes_valid(key) and _escapes_valid(value)):
                continue
            values = parameters.setdefault(_to_text(_unescaped(key.replace("+", " "))), [])
            values.append(_to_text(_unescaped(value.replace("+", " "))))
        return parameters


def parse_url(text: str) -> Url:
    """The URL that ``text`` spells.

    Raises ``CelValueError`` if it is neither an absolute URI nor an absolute path.
    Cost: linear in the text.
    """
    raw = _to_bytes(text)
    try:
        _split(raw, via_request=True)
        raw, _, fragment = raw.partition("#")
        parts = _split(raw, via_request=False)
        if not _escapes_valid(fragment):
            raise _Malformed("invalid escape in the fragment")
    except _Malformed as error:
        raise CelValueError(f"not a URL: {error}: {shown(text)}") from error
    return parts.finish(fragment)


def is_url(text: str) -> bool:
    """Is the text an absolute URI or an absolute path? ``parse_url`` accepts it then,
    except for a broken escape in a fragment."""
    return url_problem(text) is None


def url_problem(text: str) -> str | None:
    """Why the text is not a request URI, or None if it is one."""
    try:
        _split(_to_bytes(text), via_request=True)
    except _Malformed as error:
        return str(error)
    return None


class _Malformed(Exception):
    """The text is not a URL; caught in this module."""


@attrs.frozen
class _Parts:
    """A URL split into pieces, one character per byte. ``userinfo`` None: no "@"."""

    scheme: str = ""
    opaque: str = ""
    userinfo: str | None = None
    host: str = ""
    path: str = ""
    omit_host: bool = False
    force_query: bool = False
    query: str = ""

    def finish(self, fragment: str) -> Url:
        hostname, port = _split_port(self.host)
        return Url(
            _to_text(self._spelled(fragment)),
            _to_text(self.scheme),
            _to_text(self.host),
            _to_text(hostname),
            _to_text(port),
            _to_text(self._escaped_path()),
            _to_text(self.query),
        )

    def _escaped_path(self) -> str:
        # A path keeps its spelling unless a character in it should have been escaped.
        if all(char in _PATH_ENCODED for char in self.path) or self.path == "*":
            return self.path
        return _escaped(_unescaped(self.path), _PATH_PLAIN)

    def _spelled(self, fragment: str) -> str:
        text = f"{self.scheme}:" if self.scheme else ""
        text += self.opaque or self._hierarchy(text)
        if self.force_query or self.query:
            text += "?" + self.query
        if fragment:
            plain = all(char in _FRAGMENT_PLAIN | set("'[]%") for char in fragment)
            text += "#" + (fragment if plain else _escaped(_unescaped(fragment), _FRAGMENT_PLAIN))
        return text

    def _hierarchy(self, before: str) -> str:
        path = self._escaped_path()
        text = ""
        if (before or self.host or self.userinfo is not None) and not (
            self.omit_host and not self.host and self.userinfo is None
        ):
            if self.host or path or self.userinfo is not None:
                text += "//"
            if self.userinfo is not None:
                text += _spelled_userinfo(self.userinfo) + "@"
            text += _escaped(self.host, _HOST_PLAIN)
        if path and path[0] != "/" and self.host:
            text += "/"
        return text + path


def _split(raw: str, via_request: bool) -> _Parts:
    """Split a URL. Raises ``_Malformed``.

    ``via_request``: a request URI, in which "//" begins a path if there is no scheme.
    """
    if any(char < " " or char == "\x7f" for char in raw):
        raise _Malformed("a control character")
    if not raw:
        raise _Malformed("empty")
    if raw == "*":
        return _Parts(path="*")
    scheme, rest = _split_scheme(raw)
    rest, question, query = rest.partition("?")
    force_query = bool(question) and not query
    if not rest.startswith("/"):
        if not scheme:
            raise _Malformed("neither a scheme nor a leading slash")
        return _Parts(scheme, opaque=rest, force_query=force_query, query=query)
    userinfo: str | None = None
    host = ""
    may_have_authority = bool(scheme) or not (via_request or rest.startswith("///"))
    has_authority = may_have_authority and rest.startswith("//")
    if has_authority:
        authority, slash, rest = rest[2:].partition("/")
        rest = slash + rest
        userinfo, host = _split_authority(authority, scheme)
    if not _escapes_valid(rest):
        raise _Malformed("invalid escape in the path")
    omit_host = bool(scheme) and not has_authority
    return _Parts(scheme, "", userinfo, host, rest, omit_host, force_query, query)


def _split_scheme(raw: str) -> tuple[str, str]:
    scheme, colon, rest = raw.partition(":")
    if not scheme and colon:
        raise _Malformed("a scheme is missing before the colon")
    is_scheme = (
        bool(colon)
        and scheme[0] in string.ascii_letters
        and all(char in _ALPHANUMERIC or char in "+-." for char in scheme)
    )
    return (scheme.lower(), rest) if is_scheme else ("", raw)


def _split_authority(authority: str, scheme: str) -> tuple[str | None, str]:
    userinfo, at, host_text = authority.rpartition("@")
    host = _parse_host(host_text, scheme)
    if not at:
        return None, host
    if not all(char in _USERINFO for char in userinfo):
        raise _Malformed("invalid user information")
    if not _escapes_valid(userinfo):
        raise _Malformed("invalid escape in the user information")
    return userinfo, host


def _parse_host(host: str, scheme: str) -> str:
    bracket = host.rfind("[")
    if bracket > 0:
        raise _Malformed("a bracket inside the host")
    if bracket == 0:
        return _parse_bracketed(host)
    # A list of hosts with ports is common outside http: only there is every colon a port.
    colon = host.find(":") if scheme in ("http", "https") else host.rfind(":")
    if colon >= 0:
        _check_port(host[colon:])
    return _unescaped_host(host, _host_escape_allowed)


def _parse_bracketed(host: str) -> str:
    close = host.rfind("]")
    if close < 0:
        raise _Malformed("no closing bracket in the host")
    port = host[close + 1 :]
    _check_port(port)
    inner, percent, zone = host[1:close].partition("%25")
    address = _unescaped_host(inner, _host_escape_allowed)
    # ipaddress refuses some zones that are allowed here, so it does not see the zone.
    if not _is_ipv6(address):
        raise _Malformed("no IPv6 address in the brackets")
    if percent and not zone:
        raise _Malformed("an empty zone in the brackets")
    return f"[{address}{_unescaped_host(percent + zone, _zone_escape_allowed)}]{port}"


def _is_ipv6(text: str) -> bool:
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return "%" not in text


def _check_port(port: str) -> None:
    """Empty, or a colon and any number of digits."""
    digits = port[1:]
    if port and not (port[0] == ":" and (not digits or (digits.isascii() and digits.isdigit()))):
        raise _Malformed("invalid port")


def _host_escape_allowed(byte: str) -> bool:
    # In a host only bytes beyond ASCII may be escaped, and the percent sign of a zone.
    return byte >= "\x80" or byte == "%"


def _zone_escape_allowed(byte: str) -> bool:
    return byte in _HOST_PLAIN or byte in "% "


def _unescaped_host(text: str, allowed: Callable[[str], bool]) -> str:
    if not _escapes_valid(text):
        raise _Malformed("invalid escape in the host")
    pieces = text.split("%")
    if any(char < "\x80" and char not in _HOST_PLAIN for piece in pieces for char in piece):
        raise _Malformed("invalid character in the host")
    if not all(allowed(chr(int(piece[:2], 16))) for piece in pieces[1:]):
        raise _Malformed("invalid escape in the host")
    return _unescaped(text)


def _split_port(host: str) -> tuple[str, str]:
    name, colon, port = host.rpartition(":")
    if not colon or (port and not (port.isascii() and port.isdigit())):
        name, port = host, ""
    if name.startswith("[") and name.endswith("]"):
        name = name[1:-1]
    return name, port


def _spelled_userinfo(userinfo: str) -> str:
    name, colon, password = userinfo.partition(":")
    spelled = _escaped(_unescaped(name), _USER_PLAIN)
    return f"{spelled}:{_escaped(_unescaped(password), _USER_PLAIN)}" if colon else spelled


def _escapes_valid(text: str) -> bool:
    return all(
        len(piece) >= 2 and piece[0] in _HEX and piece[1] in _HEX for piece in text.split("%")[1:]
    )


def _unescaped(text: str) -> str:
    """Each escape replaced by its byte; every escape must be valid."""
    first, *pieces = text.split("%")
    return first + "".join(chr(int(piece[:2], 16)) + piece[2:] for piece in pieces)


def _escaped(text: str, plain: frozenset[str]) -> str:
    return "".join(char if char in plain else f"%{ord(char):02X}" for char in text)


def _to_bytes(text: str) -> str:
    return text.encode("utf-8", "surrogatepass").decode("latin-1")


def _to_text(raw: str) -> str:
    return raw.encode("latin-1").decode("utf-8", "surrogateescape")
