"""URLs: what is one, what its parts are, how it prints. The rules are those of Go."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_core.cel.urls import MAX_QUERY_PARAMETERS, Url, is_url, parse_url
from dra_core.errors import CelValueError


@pytest.mark.parametrize(
    ("text", "scheme", "host", "hostname", "port", "path"),
    [
        ("https://user:pass@example.com:80/path?query=val#fragment",
         "https", "example.com:80", "example.com", "80", "/path"),
        ("/absolute-path", "", "", "", "", "/absolute-path"),
        ("https://example.com", "https", "example.com", "example.com", "", ""),
        ("HTTPS://Example.com/", "https", "Example.com", "Example.com", "", "/"),
        ("https://example.com:/", "https", "example.com:", "example.com", "", "/"),
        ("https://127.0.0.1:80/", "https", "127.0.0.1:80", "127.0.0.1", "80", "/"),
        ("https://[::1]:80/", "https", "[::1]:80", "::1", "80", "/"),
        ("https://[::1]/", "https", "[::1]", "::1", "", "/"),
        ("https://[::ffff:1.2.3.4]/", "https", "[::ffff:1.2.3.4]", "::ffff:1.2.3.4", "", "/"),
        ("https://[fe80::1%25eth%2d0]:1/", "https", "[fe80::1%eth-0]:1", "fe80::1%eth-0", "1", "/"),
        ("https://[fe80::1%25a%25]/", "https", "[fe80::1%a%]", "fe80::1%a%", "", "/"),
        ("https://h/path with spaces/", "https", "h", "h", "", "/path%20with%20spaces/"),
        ("https://h/a%2Fb", "https", "h", "h", "", "/a%2Fb"),
        ("https://h/a%2fb", "https", "h", "h", "", "/a%2fb"),
        ("https://h/é", "https", "h", "h", "", "/%C3%A9"),
        ("https://h/%C3%A9 [x]", "https", "h", "h", "", "/%C3%A9%20%5Bx%5D"),
        ("https://h/a!b'(c)*[d]", "https", "h", "h", "", "/a!b'(c)*[d]"),
        ('https://h/"', "https", "h", "h", "", "/%22"),
        ("https://h%C3%A9/", "https", "hé", "hé", "", "/"),
        ("https://hé/", "https", "hé", "hé", "", "/"),
        ("https:///x", "https", "", "", "", "/x"),
        ("https://@h/", "https", "h", "h", "", "/"),
        ("https://a@b@h/", "https", "h", "h", "", "/"),
        ("mailto:joe@example.com", "mailto", "", "", "", ""),
        ("mailto:", "mailto", "", "", "", ""),
        ("file:/etc/passwd", "file", "", "", "", "/etc/passwd"),
        ("a+b-c.1://h", "a+b-c.1", "h", "h", "", ""),
        ("*", "", "", "", "", "*"),
        ("//h/p", "", "h", "h", "", "/p"),
        ("///p", "", "", "", "", "///p"),
        ("mongodb://a:1,b:2/db", "mongodb", "a:1,b:2", "a:1,b", "2", "/db"),
        ("/a:b", "", "", "", "", "/a:b"),
    ],
)  # fmt: skip
def test_parts(text: str, scheme: str, host: str, hostname: str, port: str, path: str) -> None:
    """A URL is split into its parts; what it lacks is empty."""
    url = parse_url(text)
    assert is_url(text)
    assert (url.scheme, url.host, url.hostname, url.port) == (scheme, host, hostname, port)
    assert url.escaped_path == path


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "empty"),
        ("../relative-path", "scheme"),
        ("relative", "scheme"),
        ("?x=1", "scheme"),
        ("#f", "scheme"),
        ("**", "scheme"),
        ("ht tp://h", "scheme"),
        ("1http://h", "scheme"),
        ("é://h", "scheme"),
        (":x", "scheme"),
        ("https://a:b:c/", "port"),
        ("https://h:80:80/", "port"),
        ("http://::1/", "port"),
        ("https://h:x/", "port"),
        ("https://h:-1/", "port"),
        ("https://h:１/", "port"),
        ("https://[::1]x/", "port"),
        ("https://[::1]:x/", "port"),
        ("mongodb://a:1,b:x/db", "port"),
        ("https://[::1/", "bracket"),
        ("https://x[::1]/", "bracket"),
        ("https://[1.2.3.4]/", "IPv6"),
        ("https://[x]/", "IPv6"),
        ("https://[]/", "IPv6"),
        ("https://[fe80::1%eth0]/", "escape"),
        ("https://[fe80::1%25]/", "zone"),
        ("https://[fe80::1%25%41]/x%", "escape"),
        ("https://[fe80::1%25%00]/", "escape"),
        ("https://[fe80::1%25%C3]/", "escape"),
        ("https://a b/", "character"),
        ("https://a\\b/", "character"),
        ("https://a^b/", "character"),
        ("https://h%41/", "escape"),
        ("https://h%zz/", "escape"),
        ("https://h%4", "escape"),
        ("https://h/%zz", "escape"),
        ("https://h/%", "escape"),
        ("https://a b@h/", "user"),
        ("https://é@h/", "user"),
        ("https://a%zz@h/", "escape"),
        ("https://h#f", "character"),
        ("https://h/\x00", "control"),
        ("https://h/\n", "control"),
        ("https://h/\x7f", "control"),
    ],
)
def test_refused(text: str, problem: str) -> None:
    """A relative reference or a malformed part is no URL."""
    assert not is_url(text)
    with pytest.raises(CelValueError, match=problem):
        parse_url(text)


def test_broken_fragment() -> None:
    """A broken escape in a fragment is found only by the parser, as in the reference."""
    assert is_url("https://h/?#%zz")
    with pytest.raises(CelValueError, match="fragment"):
        parse_url("https://h/?#%zz")


def test_malformed_host_without_scheme() -> None:
    """After "//" the parser expects a host, but the test sees only a path."""
    assert is_url("//a b/c")
    with pytest.raises(CelValueError, match="character"):
        parse_url("//a b/c")


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("https://h/path?k1=a&k2=b&k2=c", {"k1": ["a"], "k2": ["b", "c"]}),
        ("https://h/path?key with spaces=value with spaces",
         {"key with spaces": ["value with spaces"]}),
        ("https://h/path?", {}),
        ("https://h/path", {}),
        ("https://h?x=1&y=2", {"x": ["1"], "y": ["2"]}),
        ("https://h/?a+b=c+d%2B", {"a b": ["c d+"]}),
        ("https://h/?a", {"a": [""]}),
        ("https://h/?=b", {"": ["b"]}),
        ("https://h/?a=b=c", {"a": ["b=c"]}),
        ("https://h/?&&a=1&", {"a": ["1"]}),
        ("https://h/?a=1;b=2&c=3", {"c": ["3"]}),
        ("https://h/?a=%zz&b=1", {"b": ["1"]}),
        ("https://h/?%zz=1&b=1", {"b": ["1"]}),
        ("https://h/?a=%C3%A9é", {"a": ["éé"]}),
        ("https://h/?a=%FF", {"a": ["\udcff"]}),
        ("https://h/?a=1?b=2", {"a": ["1?b=2"]}),
        ("https://h/?a=1#x=2", {"a": ["1"]}),
        ("mailto:x?subject=a", {"subject": ["a"]}),
        ("/p?a=1", {"a": ["1"]}),
    ],
)  # fmt: skip
def test_query(text: str, query: dict[str, list[str]]) -> None:
    """Parameters are unescaped; malformed ones are left out."""
    assert parse_url(text).query() == query


def test_query_order() -> None:
    """Parameters keep the order in which they are written."""
    assert list(parse_url("/?b=1&a=2&b=3").query()) == ["b", "a"]


def test_query_of_too_many_parameters() -> None:
    """More parameters than the reference's limit are as none."""
    most = "/?" + "&".join(["a=1"] * MAX_QUERY_PARAMETERS)
    assert len(parse_url(most).query()["a"]) == MAX_QUERY_PARAMETERS
    assert parse_url(most + "&a=1").query() == {}


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("https://user@example.com:8080/path?x=1&y=2#f", None),
        ("HTTPS://h/", "https://h/"),
        ("https://h/a b", "https://h/a%20b"),
        ("https://h/a?", None),
        ("https://h/a#", "https://h/a"),
        ("https://h?a", None),
        ("file:/x", None),
        ("file:///x", None),
        ("mailto:a@b?c", None),
        ("/p", None),
        ("//h/p", None),
        ("///p", None),
        ("//", ""),
        ("//?a", "?a"),
        ("*", None),
        ("https://a:b@h/", None),
        ("https://a:@h/", None),
        ("https://%41@h/", "https://A@h/"),
        ("https://a%3Ab@h/", None),
        ("https://hé/", "https://h%C3%A9/"),
        ("https://[fe80::1%25eth0]/", None),
        ("https://h/?#a b", "https://h/?#a%20b"),
        ("https://h/?#a'[b]", None),
        ("https://h/?#%41", None),
    ],
)
def test_printed(text: str, printed: str | None) -> None:
    """A URL prints normalised: scheme in lower case, what must be escaped escaped."""
    assert str(parse_url(text)) == (text if printed is None else printed)


def test_equal_if_printed_alike() -> None:
    """Two URLs are equal, and one key, if they print alike."""
    assert parse_url("HTTPS://h/a b") == parse_url("https://h/a%20b")
    assert hash(parse_url("HTTPS://h/a b")) == hash(parse_url("https://h/a%20b"))
    assert parse_url("https://h/a%2Fb") != parse_url("https://h/a/b")
    assert parse_url("https://h/a") != parse_url("https://h/a?")


def test_answers_of_recorded_selectors() -> None:
    """The recorded expressions about URLs hold."""
    url = parse_url("https://user@example.com:8080/path?x=1&y=2#f")
    assert url.host == "example.com:8080"
    assert url.scheme == "https"
    assert url.port == "8080"
    assert url.query()["x"] == ["1"]
    assert is_url("https://a.b")
    assert not is_url("../x")


url_texts = st.text(alphabet="ah1:/?#[]@%4&=+ .-é", max_size=24) | st.builds(
    "{}://{}/{}?{}".format,
    st.sampled_from(["http", "a", "mailto"]),
    st.text(alphabet="a1:[]%25@.", max_size=8),
    st.text(alphabet="a/%41 é[", max_size=8),
    st.text(alphabet="a=&%4+;", max_size=8),
)


def parsed_or_none(text: str) -> Url | None:
    try:
        return parse_url(text)
    except CelValueError:
        return None


@given(url_texts)
def test_printing_settles(text: str) -> None:
    """What a URL with a scheme prints parses again to the same URL."""
    url = parsed_or_none(text)
    if url is None:
        return
    assert is_url(text)
    if not url.scheme:
        return
    again = parsed_or_none(str(url))
    # A fragment next to the host is cut off before the host is looked at, so a text
    # without path may print as one that is no request URI.
    if again is not None:
        assert again == url
        assert again.query() == url.query()
    else:
        assert "#" in str(url)


@given(st.text(max_size=30))
def test_never_fails_otherwise(text: str) -> None:
    """No text makes the parser fail in any other way than by its own error."""
    parsed_or_none(text)
    parsed_or_none("http://" + text)
