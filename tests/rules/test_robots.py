"""robots.txt: RFC 9309 as tables, and Google's matcher where the RFC is silent."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curtsy.rules.robots import MAX_BYTES, Robots
from curtsy.rules.urls import normalise

SITE = "http://a.test"


def allows(rules: str | bytes, path: str, agent: str = "curtsy") -> bool:
    data = rules if isinstance(rules, bytes) else rules.encode()
    return Robots.parse(data).allows(SITE + path, agent)


def star(*lines: str) -> str:
    return "\n".join(("User-agent: *", *lines))


@pytest.mark.parametrize(
    ("rule", "path", "matches"),
    [
        ("/", "/anything", True),
        ("/fish", "/fish.html", True),
        ("/fish", "/Fish", False),
        ("/fish", "/catfish", False),
        ("/fish/", "/fish", False),
        ("/fish/", "/fish/?id=1", True),
        ("fish", "/fish", False),
        ("*fish", "/catfish", True),
        ("/*.php", "/folder/any.php?x", True),
        ("/*.php", "/", False),
        ("/*.php$", "/a.php", True),
        ("/*.php$", "/a.php?x", False),
        ("/*.php$", "/a.php5.php", True),
        ("/fish*.php", "/fishheads/catfish.php?p", True),
        ("/a*b*c", "/axxbyyc", True),
        ("/a*b*c", "/axxcyyb", False),
        ("/a*a$", "/a", False),
        ("/a*a$", "/aa", True),
        ("/x$", "/x", True),
        ("/x$", "/xy", False),
        ("/x$y", "/x$y", True),
        ("/x$y", "/x", False),
        ("/**", "/q", True),
        ("/*$", "/q", True),
        ("/a%2A", "/a*", True),
        ("/a%2A", "/ab", False),
        ("/a%24", "/a$", True),
        ("/a%24", "/a", False),
        ("/%7Ejoe", "/~joe", True),
        ("/~joe", "/%7Ejoe", True),
        ("/%62%61%7A", "/baz", True),
        ("/a%3cd", "/a%3Cd", True),
        ("/a%2fb", "/a/b", False),
        ("/ツ", "/%E3%83%84", True),
        ("/%e3%83%84", "/%E3%83%84", True),
        ("/%zz", "/%zz", True),
        ("/my folder/", "/my%20folder/x", True),
        ("/my folder/", "/my folder/x", True),
        ("/my%20folder/", "/my%20folder/x", True),
        ("/my folder/", "/my+folder/x", False),
        ('/a<b>"c"{d}^e`f|g', "/a%3Cb%3E%22c%22%7Bd%7D%5Ee%60f%7Cg", True),
        ("/a{b}", "/a%7bb%7d", True),
        ("/*?q={term}$", "/s?q=%7Bterm%7D", True),
        ("/a\\b", "/a%5Cb", True),
        ("/a\\b", "/a/b", False),
        ("/?q='x", "/?q=%27x", True),
        ("/straße", "/stra%C3%9Fe", True),
        ("/[a]", "/%5Ba%5D", False),
        ("/?q=*&x", "/?q=1&x", True),
        ("", "/", False),
    ],
)
def test_a_rule_matches_paths_by_prefix_and_wildcards(rule: str, path: str, matches: bool) -> None:
    assert allows(star(f"Disallow: {rule}"), path) != matches


@pytest.mark.parametrize(
    ("lines", "path", "allowed"),
    [
        (["Disallow: /a", "Allow: /a/b"], "/a/b/c", True),
        (["Allow: /a/b", "Disallow: /a"], "/a/b/c", True),
        (["Allow: /a", "Disallow: /a/b"], "/a/b/c", False),
        (["Disallow: /a", "Allow: /a"], "/a", True),
        (["Allow: /*.html", "Disallow: /a/b"], "/a/b/c.html", True),
        (["Allow: /a*c", "Disallow: /a/b"], "/a/b/c", True),
        (["Allow: /*", "Disallow: /a/b"], "/a/b/c", False),
        (["Disallow: /*/b", "Allow: /a/b"], "/a/b", True),
        (["Disallow: /", "Allow: /$"], "/", True),
        (["Disallow: /", "Allow: /$"], "/x", False),
        (["Disallow: /", "Allow:"], "/x", False),
        (["Disallow:", "Disallow: /x"], "/x", False),
        (["Disallow: /", "Allow: /dir/index.html"], "/dir/", True),
        (["Disallow: /", "Allow: /dir/index.htm"], "/dir/", True),
        (["Disallow: /", "Allow: /dir/index.html"], "/dir/x", False),
        (["Disallow: /"], "/robots.txt", True),
        (["Disallow: /"], "/robots.txt?x", False),
    ],
)
def test_the_longest_match_wins_and_allow_wins_ties(lines: list[str], path: str, allowed: bool) -> None:
    assert allows(star(*lines), path) is allowed


@pytest.mark.parametrize(
    ("rules", "agent", "allowed"),
    [
        ("User-agent: curtsy\nDisallow: /", "curtsy", False),
        ("User-agent: CURTSY\nDisallow: /", "Curtsy", False),
        ("User-agent: curtsy\nDisallow: /", "Curtsy/1.0 (+http://x)", False),
        ("User-agent: curtsy/2.1\nDisallow: /", "curtsy", False),
        ("User-agent: curtsy bot\nDisallow: /", "curtsy", False),
        ("User-agent: curtsybot\nDisallow: /", "curtsy", True),
        ("User-agent: curt\nDisallow: /", "curtsy", True),
        ("User-agent: *\nDisallow: /", "curtsy", False),
        ("User-agent: * x\nDisallow: /", "curtsy", False),
        ("User-agent: *bot\nDisallow: /", "curtsy", True),
        ("User-agent: *\nDisallow: /\nUser-agent: curtsy\nAllow: /", "curtsy", True),
        ("User-agent: *\nDisallow: /\nUser-agent: curtsy\nDisallow:", "curtsy", True),
        ("User-agent: *\nDisallow: /\nUser-agent: curtsy", "curtsy", True),
        (
            "User-agent: curtsy\nDisallow: /y\nUser-agent: *\nAllow: /\nUser-agent: curtsy\nDisallow: /x",
            "curtsy",
            False,
        ),
        ("User-agent: other\nUser-agent: curtsy\nDisallow: /", "curtsy", False),
        ("User-agent: other\n\nUser-agent: curtsy\n\nDisallow: /", "other", False),
        ("Disallow: /", "curtsy", True),
        ("Disallow: /\nUser-agent: *\nAllow: /", "curtsy", True),
        ("", "curtsy", True),
    ],
)
def test_groups_are_chosen_by_product_token_and_merged(rules: str, agent: str, allowed: bool) -> None:
    assert allows(rules, "/x", agent) is allowed


@pytest.mark.parametrize(
    "between", ["Crawl-delay: 5", "Sitemap: http://a.test/s", "Host: a.test", "<br />", "# note", "Noindex: /q", "junk"]
)
def test_other_lines_do_not_end_a_group(between: str) -> None:
    rules = f"User-agent: curtsy\n{between}\nUser-agent: other\n{between}\nDisallow: /x\n{between}\nDisallow: /y"
    for agent in ("curtsy", "other"):
        assert not allows(rules, "/x", agent)
        assert not allows(rules, "/y", agent)


@pytest.mark.parametrize(
    "line",
    [
        "Disallow: /x", "disallow:/x", "DISALLOW : /x", "  Disallow:\t/x  ", "disallow /x", "disallow\t/x",
        "Disallow: /x # why", "Disallow: /x#why", "dissallow: /x", "dissalow: /x", "disalow: /x", "diasllow: /x",
        "disallaw: /x", "Disallowed: /x", "Disallow: /x\0rest", "Disallow: /x\v",
    ],
)  # fmt: skip
def test_lines_are_read_as_people_write_them(line: str) -> None:
    assert not allows(star(line), "/x")


@pytest.mark.parametrize(
    "line", ["useragent: curtsy", "user agent: curtsy", "User-agent curtsy", "User-Agents: curtsy"]
)
def test_agents_are_read_as_people_write_them(line: str) -> None:
    assert not allows(f"{line}\nDisallow: /", "/x")


@pytest.mark.parametrize("line", ["disallow / x", "disallow", ": /x", "dis allow: /x", "#Disallow: /x", "disallow/x"])
def test_lines_that_say_nothing_are_ignored(line: str) -> None:
    assert allows(star(line), "/x")


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n", "\n\r", "\r\r\n"])
def test_all_line_ends_count(end: str) -> None:
    assert not allows(end.join(("User-agent: *", "Disallow: /x", "Disallow: /y")), "/y")


@pytest.mark.parametrize(
    ("data", "allowed"),
    [
        (b"\xef\xbb\xbfUser-agent: *\nDisallow: /", False),
        (b"\xef\xbbUser-agent: *\nDisallow: /", False),
        (b"\xefUser-agent: *\nDisallow: /", False),
        (b"\xef\x11\xbfUser-agent: *\nDisallow: /", True),
        (b"User-agent: *\n\xef\xbb\xbfDisallow: /", True),
        (b"User-agent: *\nDisallow: /\xff\xfe\nDisallow: /x", False),
        (b"\xff\xfeU\0s\0e\0r\0", True),
    ],
)
def test_byte_order_marks_and_bad_bytes_never_raise(data: bytes, allowed: bool) -> None:
    assert allows(data, "/x") is allowed


def test_undecodable_octets_match_their_escapes() -> None:
    assert not allows(b"User-agent: *\nDisallow: /caf\xe9", "/caf%E9")


def test_what_lies_beyond_the_limit_is_not_read() -> None:
    head = b"User-agent: *\nDisallow: /x\n"
    padding = b"#" * 99 + b"\n"
    filled = head + padding * ((MAX_BYTES - len(head)) // 100 + 1)
    assert not allows(filled + b"Disallow: /y\n", "/x")
    assert allows(filled + b"Disallow: /y\n", "/y")
    cut = head + b"#" * (MAX_BYTES - len(head) - 12) + b"\nDisallow: /private\n"
    assert allows(cut, "/other")


def test_a_line_is_cut_and_does_not_hide_the_next() -> None:
    rules = star("Disallow: /" + "x" * 20_000, "Disallow: /y")
    assert not allows(rules, "/y")
    assert not allows(rules, "/" + "x" * 20_000)


@pytest.mark.parametrize(
    ("rules", "delay_s"),
    [
        ("User-agent: *\nCrawl-delay: 5", 5.0),
        ("User-agent: *\nCrawl-delay: 0.5\nDisallow: /x", 0.5),
        ("User-agent: *\nDisallow: /x\nCrawl-delay: 2", 2.0),
        ("User-agent: *\nCrawl-delay: 1\nCrawl-delay: 3", 3.0),
        ("User-agent: *\nCrawl-delay: soon", None),
        ("User-agent: *\nCrawl-delay: -1", None),
        ("User-agent: *\nCrawl-delay: nan", None),
        ("User-agent: *\nCrawl-delay: inf", None),
        ("User-agent: other\nCrawl-delay: 9\n\nUser-agent: *\nDisallow: /x", None),
        ("User-agent: other\nUser-agent: curtsy\nCrawl-delay: 9", 9.0),
        ("User-agent: *\nCrawl-delay: 9\nUser-agent: curtsy\nDisallow: /x", None),
        ("Crawl-delay: 9", None),
    ],
)
def test_crawl_delay_holds_for_the_agents_before_it(rules: str, delay_s: float | None) -> None:
    assert Robots.parse(rules.encode()).delay("Curtsy/1.0") == delay_s


def test_sitemaps_stand_anywhere() -> None:
    rules = (
        "Sitemap: http://a.test/1.xml\nUser-agent: x\nsite-map: /2.xml\nDisallow: /\nSITEMAP:http://b.test/3.xml?a:b"
    )
    assert Robots.parse(rules.encode()).sitemaps == ("http://a.test/1.xml", "/2.xml", "http://b.test/3.xml?a:b")


def test_the_deciding_line_can_be_shown() -> None:
    robots = Robots.parse(star("Disallow: /a  # secret", "Allow: /a/b").encode())
    assert robots.rule(SITE + "/a/x", "curtsy") == "Disallow: /a"
    assert robots.rule(SITE + "/a/b", "curtsy") == "Allow: /a/b"
    assert robots.rule(SITE + "/", "curtsy") is None


def test_the_two_verdicts_without_a_file() -> None:
    assert Robots.ALLOW_ALL.allows(SITE + "/x", "curtsy")
    assert not Robots.FORBID_ALL.allows(SITE + "/x", "curtsy")


@pytest.mark.parametrize(
    ("url", "allowed"),
    [("http://a.test", False), ("http://a.test?q", False), ("http://a.test/x#/y", True), ("//a.test/x", True)],
)
def test_the_path_is_found_in_any_url(url: str, allowed: bool) -> None:
    assert Robots.parse(star("Disallow: /", "Allow: /x").encode()).allows(url, "curtsy") is allowed


def test_wildcards_take_linear_time() -> None:
    robots = Robots.parse(star("Disallow: /" + "a*" * 8_000 + "b$", "Disallow: /" + "*a" * 8_000 + "$").encode())
    started = time.process_time()
    assert robots.allows(SITE + "/" + "a" * 7_000, "curtsy")
    assert time.process_time() - started < 1


def test_many_rules_are_looked_up_by_length() -> None:
    robots = Robots.parse(star(*(f"Disallow: /folder-{n}/" for n in range(15_000))).encode())
    robots.allows(SITE + "/", "curtsy")
    started = time.process_time()
    for n in range(1_000):
        assert not robots.allows(f"{SITE}/folder-{n}/x", "curtsy")
    assert time.process_time() - started < 0.5


_TEXT = st.text(alphabet="/ab*$%2A", max_size=12)


@given(_TEXT, _TEXT)
def test_matching_agrees_with_a_simple_matcher(pattern: str, path: str) -> None:
    pattern, path = "/" + pattern.replace("%", ""), "/" + path.replace("%", "").replace("*", "").replace("$", "")

    def simple(p: str, s: str) -> bool:
        if not p:
            return True
        if p == "$":
            return not s
        if p[0] == "*":
            return any(simple(p[1:], s[at:]) for at in range(len(s) + 1))
        return bool(s) and s[0] == p[0] and simple(p[1:], s[1:])

    assert allows(star(f"Disallow: {pattern}"), path) != simple(pattern, path)


@pytest.mark.parametrize("path", ["/my folder/x", '/a<b>"c"', "/a{b}^c`d", "/a|b", "/straße", "/?q='x", "/?q={a}|b"])
def test_a_rule_holds_for_the_url_that_a_link_of_the_same_text_becomes(path: str) -> None:
    url = normalise(SITE + path)
    assert url is not None
    assert not Robots.parse(star(f"Disallow: {path}").encode()).allows(url, "curtsy")
