"""The functions of the libraries, by library.

Each line is an expression and what comes of it; the values are those of the libraries'
documentation or follow from it.
"""

import pytest

from support.expressions import COMPILE, FAILS, Outcome, outcome

A = 'device.attributes["gpu.example.com"]'


def cases(*lines: tuple[str, Outcome]) -> pytest.MarkDecorator:
    """One test per line."""
    return pytest.mark.parametrize(("expression", "expected"), lines)


@cases(
    ("int('12') == 12 && int('-7') == -7 && int('+7') == 7 && int('007') == 7", True),
    ("int(['x'][0]) == 1", FAILS),
    ("int('x') == 1", COMPILE),
    ("int([''][0]) == 1", FAILS),
    ("int([' 1'][0]) == 1", FAILS),
    ("int(['1_0'][0]) == 10", FAILS),
    ("int(['9223372036854775808'][0]) == 1", FAILS),
    ("int(['٣'][0]) == 3", FAILS),
    ("int(3.9) == 3 && int(-3.9) == -3 && int(5u) == 5", True),
    ("int([1e19][0]) == 1", FAILS),
    ("int([0.0][0] / [0.0][0]) == 1", FAILS),
    ("int([18446744073709551615u][0]) == 1", FAILS),
    ("int(timestamp('1970-01-01T00:01:00Z')) == 60 && int(duration('1s')) == 1000000000", True),
    (f"int({A}.healthy) == 1", FAILS),
    ("int(true) == 1", COMPILE),
    ("uint('5') == 5u && uint(3.9) == 3u && uint(5) == 5u", True),
    ("uint([-1][0]) == 1u", FAILS),
    ("uint(-1) == 1u", COMPILE),
    ("uint(['-1'][0]) == 1u", FAILS),
    ("uint([-0.5][0]) == 0u", FAILS),
    (
        "double('1.5') == 1.5 && double('1e3') == 1000.0 && double(2) == 2.0 && double(2u) == 2.0",
        True,
    ),
    ("double('inf') > 1e308 && double('-Infinity') < -1e308 && double('0x1p-2') == 0.25", True),
    ("double(['1e999'][0]) > 1.0", FAILS),
    ("double(['x'][0]) > 1.0", FAILS),
    ("double([' 1'][0]) > 1.0", FAILS),
    (
        "string(12) == '12' && string(-1) == '-1' && string(7u) == '7' && string(true) == 'true'",
        True,
    ),
    ("string(1.5) == '1.5' && string(2.0) == '2' && string(1e6) == '1e+06'", True),
    ("string(1e-5) == '1e-05' && string(123456.0) == '123456' && string(-0.1) == '-0.1'", True),
    ("string(1.0 / 0.0) == '+Inf' && string(0.0 / 0.0) == 'NaN'", True),
    ("string(b'\\xc3\\xa9') == 'é'", True),
    ("string([b'\\xff'][0]) == ''", FAILS),
    ("string(duration('90s')) == '90s' && string(duration('1.5s')) == '1.5s'", True),
    ("string(timestamp('2024-01-02T03:04:05Z')) == '2024-01-02T03:04:05Z'", True),
    (f"string({A}.firmware) == '1.12.3'", FAILS),
    ("string([1]) == ''", COMPILE),
    ("bytes('é') == b'\\xc3\\xa9'", True),
    ("bool('true') && bool('T') && bool('1') && !bool('False') && !bool('0')", True),
    ("bool(['yes'][0])", FAILS),
    ("dyn(1) == 1 && dyn([1]) == [1]", True),
    ("duration('1h30m') == duration('90m') && duration(1000) == duration('1us')", True),
    ("duration(['x'][0]) == duration('1s')", FAILS),
    ("timestamp(60) == timestamp('1970-01-01T00:01:00Z')", True),
    ("timestamp(['x'][0]) == timestamp(0)", FAILS),
)
def test_conversions(expression: str, expected: Outcome) -> None:
    """A constant that does not convert is refused when compiling, any other when evaluating."""
    assert outcome(expression) == expected


@cases(
    ("timestamp(0) + duration('1h') == timestamp(3600)", True),
    ("duration('1h') + timestamp(0) == timestamp(3600)", True),
    ("timestamp(3600) - duration('1h') == timestamp(0)", True),
    ("timestamp(3600) - timestamp(0) == duration('1h')", True),
    ("duration('1h') + duration('1m') - duration('1m') == duration('60m')", True),
    ("timestamp('9999-12-31T23:59:59Z') + duration('1s') == timestamp(0)", FAILS),
    ("duration(9223372036854775807) + duration('1ns') == duration('0')", FAILS),
    ("timestamp('2024-02-29T13:14:15.678Z').getFullYear() == 2024", True),
    ("cel.bind(t, timestamp('2024-02-29T13:14:15.678Z'), t.getMonth() == 1 && t.getDate() == 29"
     " && t.getDayOfMonth() == 28 && t.getDayOfWeek() == 4 && t.getDayOfYear() == 59)", True),
    ("cel.bind(t, timestamp('2024-02-29T13:14:15.678Z'), t.getHours() == 13"
     " && t.getMinutes() == 14 && t.getSeconds() == 15 && t.getMilliseconds() == 678)", True),
    ("timestamp(0).getHours('+05:30') == 5 && timestamp(0).getMinutes('+05:30') == 30", True),
    ("timestamp(0).getHours('UTC') == 0", True),
    ("timestamp(0).getHours('No/Where') == 0", FAILS),
    ("duration('90s').getMinutes() == 1 && duration('90s').getSeconds() == 90", True),
    ("duration('2h').getHours() == 2 && duration('1s').getMilliseconds() == 1000", True),
    ("duration('1h').getFullYear() == 1", COMPILE),
    ("dyn(duration('2h')).getHours() == 2 && dyn(timestamp(7200)).getHours() == 2", True),
    (f"{A}.model.getHours() == 2", FAILS),
)  # fmt: skip
def test_times(expression: str, expected: Outcome) -> None:
    """Timestamps and durations add up, and have parts."""
    assert outcome(expression) == expected


@cases(
    ("'hello'.contains('ell') && 'hello'.startsWith('he') && 'hello'.endsWith('lo')", True),
    ("'hello'.contains('') && ''.contains('')", True),
    (f"{A}.model.startsWith('A') && {A}.model.endsWith('0') && {A}.model.contains('10')", True),
    (f"{A}.index.startsWith('A')", FAILS),
    (f"'A'.startsWith({A}.index)", FAILS),
    ("'hello'.charAt(0) == 'h' && 'hello'.charAt(5) == '' && 'é😀'.charAt(1) == '😀'", True),
    ("'hello'.charAt(6) == ''", FAILS),
    ("'hello'.charAt(-1) == ''", FAILS),
    ("'hello'.indexOf('l') == 2 && 'hello'.indexOf('x') == -1 && 'hello'.indexOf('') == 0", True),
    (
        "'hello'.indexOf('l', 3) == 3 && 'hello'.indexOf('l', 9) == -1 && ''.indexOf('a') == -1",
        True,
    ),
    ("'hello'.indexOf('', 3) == 3", True),
    ("'hello'.indexOf('l', -1) == 2", FAILS),
    ("'hello'.lastIndexOf('l') == 3 && 'hello'.lastIndexOf('') == 5", True),
    ("'hello'.lastIndexOf('l', 2) == 2 && 'hello'.lastIndexOf('l', 1) == -1", True),
    ("'hello'.lastIndexOf('l', 9) == -1 && 'hello'.lastIndexOf('lo', 4) == 3", True),
    ("'hello'.lastIndexOf('l', -1) == 2", FAILS),
    ("'TacoCÆt'.lowerAscii() == 'tacocÆt' && 'tacocæt'.upperAscii() == 'TACOCæT'", True),
    ("'hello'.replace('l', 'L') == 'heLLo' && 'hello'.replace('l', 'L', 1) == 'heLlo'", True),
    ("'hello'.replace('l', 'L', 0) == 'hello' && 'hello'.replace('l', 'L', -1) == 'heLLo'", True),
    ("'ab'.replace('', '-') == '-a-b-' && 'ab'.replace('', '-', 2) == '-a-b'", True),
    ("'a,b,c'.split(',') == ['a', 'b', 'c'] && 'a,b,c'.split(',', 2) == ['a', 'b,c']", True),
    ("'a,b'.split(',', 0) == [] && 'a,b'.split(',', -1) == ['a', 'b']", True),
    (
        "'ab'.split('') == ['a', 'b'] && 'abc'.split('', 2) == ['a', 'bc'] && ''.split('') == []",
        True,
    ),
    (
        "''.split(',') == [''] && 'ab'.split('', 5) == ['a', 'b']"
        " && 'a,b'.split(',', 1) == ['a,b']",
        True,
    ),
    ("'tacocat'.substring(4) == 'cat' && 'tacocat'.substring(0, 4) == 'taco'", True),
    ("'abc'.substring(3) == '' && 'abc'.substring(1, 1) == ''", True),
    ("'abc'.substring(4) == ''", FAILS),
    ("'abc'.substring(2, 1) == ''", FAILS),
    ("'abc'.substring(0, 4) == ''", FAILS),
    ("' \\t\\u00a0x\\u3000\\n'.trim() == 'x' && '\\u200bx'.trim() == '\\u200bx'", True),
    ("['a', 'b'].join() == 'ab' && ['a', 'b'].join('-') == 'a-b' && [].join(',') == ''", True),
    (f"{A}.links.join('') == 'xy'", True),
    (f"{A}.numa.join('') == ''", FAILS),
    ("[1].join() == '1'", COMPILE),
    ("strings.quote('a\"\\n\\\\') == '\"a\\\\\"\\\\n\\\\\\\\\"'", True),
    ("'abc'.reverse() == 'cba'", COMPILE),
)
def test_strings(expression: str, expected: Outcome) -> None:
    """String functions, version 2: positions count code points; reverse is not there."""
    assert outcome(expression) == expected


@cases(
    ("'%s-%d-%s'.format(['a', 1, true]) == 'a-1-true'", True),
    ("'100%%'.format([]) == '100%'", True),
    ("'%.2f'.format([1.236]) == '1.24' && '%f'.format([1.5]) == '1.500000'", True),
    ("'%.1f'.format([1234567.25]) == '1,234,567.2'", True),
    ("'%.3e'.format([1052.033]) == '1.052\\u202f×\\u202f10⁰³'", True),
    ("'%x %X %x %x'.format([255, 255u, 'hi', b'hi']) == 'ff FF 6869 6869'", True),
    ("'%b %b %o'.format([5, true, 8]) == '101 1 10'", True),
    ("'%x %b'.format([-255, -5]) == '-ff -101'", True),
    ("'%s'.format([[1, 2]]) == '[1, 2]' && '%s'.format([['a', 'b']]) == '[\"a\", \"b\"]'", True),
    ("'%s'.format([{'b': 1, 'a': 2}]) == '{\"a\":2, \"b\":1}'", True),
    ("'%s %s'.format([null, int]) == 'null int'", True),
    ("'%s'.format([1.5]) == '1.5' && '%s'.format([[1.5]]) == '[1.500000]'", True),
    ("'%s'.format([[duration('1s')]]) == '[duration(\"1s\")]'", True),
    ("'%f'.format(['NaN']) == 'NaN' && '%f'.format(['Infinity']) == '∞'", True),
    ("'%s'.format([]) == ''", COMPILE),
    ("'%s'.format([1, 2]) == ''", COMPILE),
    ("'%d'.format(['a']) == ''", COMPILE),
    ("'%d'.format([1.5]) == ''", COMPILE),
    ("'%q'.format([1]) == ''", COMPILE),
    ("'%'.format([1]) == ''", COMPILE),
    ("'%.f'.format([1.0]) == ''", COMPILE),
    ("'%s'.format([device.capacity]) == ''", FAILS),
    (f"'%d'.format([{A}.model]) == ''", FAILS),
    (f"'%s'.format([{A}.firmware]) == ''", FAILS),
    (f"{A}.model.format([1]) == 'A100'", True),
    (f"'%s'.format({A}.links) == 'x'", True),
    (f"'%s%s%s'.format({A}.links) == 'x'", FAILS),
)
def test_format(expression: str, expected: Outcome) -> None:
    """Clauses are checked against literal arguments when compiling, else when evaluating."""
    assert outcome(expression) == expected


@cases(
    ("'abc'.matches('b') && matches('abc', '^a.c$') && !'abc'.matches('^b')", True),
    (f"{A}.model.matches('^A[0-9]+$')", True),
    (f"{A}.index.matches('3')", FAILS),
    (f"{A}.model.matches({A}.model)", True),
    ("'a'.matches(['('][0])", FAILS),
    ("'a'.matches('(')", COMPILE),
    ("'a'.matches('(?=a)')", COMPILE),
    ("'a'.find('(') == ''", COMPILE),
    ("'abc 123'.find('[0-9]+') == '123' && 'abc'.find('x') == ''", True),
    ("'a1b2'.findAll('[0-9]') == ['1', '2'] && 'a1b2'.findAll('[0-9]', 1) == ['1']", True),
    (
        "'a1'.findAll('x') == [] && 'a1'.findAll('[0-9]', 0) == []"
        " && 'a1'.findAll('1', -1) == ['1']",
        True,
    ),
    (f"{A}.index.find('3') == '3'", FAILS),
    (f"{A}.index.findAll('3') == ['3']", FAILS),
    ("'a'.find(['('][0]) == ''", FAILS),
)
def test_patterns(expression: str, expected: Outcome) -> None:
    """A literal pattern is checked when compiling, any other when it is used."""
    assert outcome(expression) == expected


@cases(
    ("[1, 2].isSorted() && ![2, 1].isSorted() && [].isSorted() && ['a', 'a'].isSorted()", True),
    ("[1, 2].sum() == 3 && [1.5, 0.5].sum() == 2.0 && [].sum() == 0 && [1u].sum() == 1u", True),
    ("[duration('1m'), duration('1s')].sum() == duration('61s')", True),
    ("[9223372036854775807, 1].sum() == 0", FAILS),
    ("['a'].sum() == 'a'", COMPILE),
    (f"{A}.links.sum() == 'xy'", FAILS),
    ("[3, 1, 2].max() == 3 && [3, 1, 2].min() == 1 && ['b', 'a'].min() == 'a'", True),
    ("[].min() == 1", FAILS),
    ("[dyn(1), dyn('a')].max() == 1", FAILS),
    ("[1, 2, 1].indexOf(1) == 0 && [1, 2, 1].lastIndexOf(1) == 2 && [1].indexOf(3) == -1", True),
    (f"{A}.numa.indexOf(2) == 1 && {A}.links.lastIndexOf('z') == -1", True),
    ("[[1], [2]].indexOf([2]) == 1", True),
    ("lists.range(3) == [0, 1, 2] && lists.range(0) == []", True),
    ("lists.range(-1) == []", FAILS),
    ("[1, 2, 3, 4].slice(1, 3) == [2, 3] && [1].slice(1, 1) == []", True),
    ("[1].slice(0, 2) == []", FAILS),
    ("[1, 2].slice(1, 0) == []", FAILS),
    ("[[1], [2, 3]].flatten() == [1, 2, 3] && [[[1]], [[2]]].flatten() == [[1], [2]]", True),
    ("[[[1]], [[2]]].flatten(2) == [1, 2] && [[1]].flatten(0) == [[1]]", True),
    ("[[1]].flatten(-1) == [1]", FAILS),
    ("[1, 2, 3].reverse() == [3, 2, 1] && [].reverse() == []", True),
    ("[1, 2, 1].distinct() == [1, 2] && ['b', 'a', 'b'].distinct() == ['b', 'a']", True),
    ("[dyn(1), dyn(1.0), dyn(true)].distinct().size() == 2", True),
    ("[3, 1, 2].sort() == [1, 2, 3] && ['b', 'a'].sort() == ['a', 'b'] && [].sort() == []", True),
    ("[[1]].sort() == []", COMPILE),
    ("[dyn(1), dyn('a')].sort().size() == 2", FAILS),
    (f"{A}.numa.includes(2) && !{A}.numa.includes(1) && {A}.numa.includes(0.0)", True),
    (f"{A}.model.includes('A100') && !{A}.model.includes('A')", True),
    (f"{A}.index.includes(3) && {A}.index.includes(3u) && !{A}.index.includes('3')", True),
    (f"{A}.firmware.includes(semver('1.12.3')) && !{A}.firmware.includes('1.12.3')", True),
    (f"{A}.builds.includes(semver('2.1.0+x'))", True),
    ("lists.range(48).includes(47)", True),
    ("lists.range(49).includes(47)", True),
    ("lists.range(48).includes(99)", False),
    ("lists.range(49).includes(48)", FAILS),
    ("sets.contains([1, 2], [1, 1.0]) == true", COMPILE),
    ("sets.contains([1, 2], [1, 1]) && sets.contains([], []) && !sets.contains([1], [2])", True),
    ("sets.equivalent([1, 2], [2, 1, 1]) && !sets.equivalent([1], [1, 2])", True),
    (f"sets.intersects({A}.numa, [2]) && !sets.intersects([], [1])", True),
    (f"sets.contains({A}.links, ['y']) && sets.equivalent({A}.links, ['y', 'x'])", True),
)
def test_lists_and_sets(expression: str, expected: Outcome) -> None:
    """The API server's lists, cel-go's lists version 3, sets, and ``includes``."""
    assert outcome(expression) == expected


@cases(
    ("quantity('1Gi') == quantity('1024Mi') && isQuantity('1Ki') && !isQuantity('1KB')", True),
    ("quantity('x') == quantity('1')", FAILS),
    ("quantity('2').isGreaterThan(quantity('1')) && quantity('1').isLessThan(quantity('2'))", True),
    ("quantity('1').compareTo(quantity('2')) == -1 && sign(quantity('-1')) == -1", True),
    ("quantity('1').sign() == 1", COMPILE),
    ("quantity('1Ki').asInteger() == 1024 && quantity('1').isInteger()", True),
    ("quantity('1.5').asInteger() == 1", FAILS),
    ("!quantity('1.5').isInteger() && quantity('1.5').asApproximateFloat() == 1.5", True),
    (
        "quantity('1').add(quantity('500m')) == quantity('1.5')"
        " && quantity('1').sub(1) == quantity('0')",
        True,
    ),
    ("quantity('1e2147483648') == quantity('1')", FAILS),
    (
        "semver('1.2.3').major() == 1 && semver('1.2.3').minor() == 2"
        " && semver('1.2.3').patch() == 3",
        True,
    ),
    (
        "semver('1.2.3-a').isLessThan(semver('1.2.3'))"
        " && semver('1.2.3+a') == semver('1.2.3+b')",
        True,
    ),
    ("semver('v1.2', true) == semver('1.2.0') && isSemver('v1', true) && !isSemver('v1')", True),
    ("semver('x') == semver('1.0.0')", FAILS),
    (
        f"{A}.firmware.isGreaterThan(semver('1.9.0'))"
        f" && {A}.firmware.compareTo(semver('2.0.0')) == -1",
        True,
    ),
    (f"{A}.model.isGreaterThan(semver('1.9.0'))", FAILS),
    (f"{A}.firmware.isGreaterThan(quantity('1'))", FAILS),
    (
        "ip('127.0.0.1').isLoopback() && ip('::1').family() == 6 && isIP('1.2.3.4')"
        " && !isIP('x')",
        True,
    ),
    ("ip('x') == ip('1.2.3.4')", FAILS),
    ("ip('0.0.0.0').isUnspecified() && ip('169.254.0.1').isLinkLocalUnicast()", True),
    ("ip('224.0.0.1').isLinkLocalMulticast() && ip('8.8.8.8').isGlobalUnicast()", True),
    (
        "ip.isCanonical('::1') && !ip.isCanonical('0:0:0:0:0:0:0:1')"
        " && string(ip('::1')) == '::1'",
        True,
    ),
    (
        "cidr('10.0.0.0/8').containsIP('10.1.2.3')"
        " && cidr('10.0.0.0/8').containsIP(ip('10.1.2.3'))",
        True,
    ),
    (
        "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')"
        " && !cidr('10.1.0.0/16').containsCIDR(cidr('10.0.0.0/8'))",
        True,
    ),
    ("cidr('10.0.0.0/8').containsIP('x')", FAILS),
    (
        "cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8')"
        " && cidr('10.1.2.3/8').prefixLength() == 8",
        True,
    ),
    (
        "cidr('10.1.2.3/8').ip() == ip('10.1.2.3')"
        " && string(cidr('10.0.0.0/8')) == '10.0.0.0/8'",
        True,
    ),
    ("isCIDR('10.0.0.0/8') && !isCIDR('10.0.0.0/33')", True),
    ("cel.bind(u, url('https://u@h:80/a%20b?x=1&y=2&x=3#f'), u.getScheme() == 'https'"
     " && u.getHost() == 'h:80' && u.getHostname() == 'h' && u.getPort() == '80'"
     " && u.getEscapedPath() == '/a%20b' && u.getQuery() == {'x': ['1', '3'], 'y': ['2']})", True),
    ("isURL('https://a') && !isURL('a')", True),
    ("url('a') == url('https://a')", FAILS),
    ("format.dns1123Label().validate('a-b') == optional.none()", True),
    ("format.dns1123Label().validate('A_B').hasValue() && format.named('uuid').hasValue()", True),
    ("format.named('nosuch').hasValue()", False),
    ("format.named('date').value() == format.date()", True),
    ("ip == 1", COMPILE),
    ("lists == 1", COMPILE),
)  # fmt: skip
def test_values_of_the_api_server(expression: str, expected: Outcome) -> None:
    """Quantities, versions, addresses, networks, URLs and formats."""
    assert outcome(expression) == expected


@pytest.mark.parametrize(
    "expression",
    [
        "math.greatest(1, 2) == 2", "base64.encode(b'a') == ''",
        "regex.replace('a', 'b', 'c') == 'a'", "cel.block([1], 1)", "[1].existsOne(x, x == 1)",
        "device.`driver` == ''", "'a'.toJson()", "nosuch()", "1.nosuch()", "lists.nosuch()",
        "jsonpatch.escapeKey('a') == 'a'",
    ],
)  # fmt: skip
def test_what_is_absent(expression: str) -> None:
    """math, base64, regex.replace, cel.block and backticks are not there."""
    assert outcome(expression) == COMPILE
