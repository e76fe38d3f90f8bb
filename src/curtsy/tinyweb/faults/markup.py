"""Hosts whose markup controls links and indexing."""

from __future__ import annotations

from curtsy.tinyweb.answers import Pages, html, redirect, reply
from curtsy.tinyweb.faults.registry import fault, host_of, ordinary, page


@fault(
    "meta-refresh",
    "/go refreshes to /there at once, /later after 30 s, /self to itself, /quoted with odd quoting",
    "targets are links: /there and /quoted-target are done; /self is requested once",
    ends={"/": "done", "/go": "done", "/there": "done", "/self": "done", "/quoted-target": "done"},
)
def _refresh() -> Pages:
    def refreshing(content: str) -> str:
        return f'<meta http-equiv="refresh" content="{content}">'

    return ordinary("/go", "/later", "/self", "/quoted", "/header") | {
        "/go": page("Go", top=refreshing("0; url=/there")),
        "/there": page("There"),
        "/later": page("Later", top=refreshing("30;URL=/there")),
        "/self": page("Self", top=refreshing("0")),
        "/quoted": page("Quoted", top=refreshing("1, URL='/quoted-target'")),
        "/quoted-target": page("Quoted target"),
        "/header": reply(200, b"<title>Header</title><p>Refresh by header.", headers=(("Refresh", "0; url=/there"),)),
    }


@fault(
    "base-href",
    "base elements: to a folder, to another host, two of them, and one after the first link",
    "links follow the first base: /folder/leaf is done; the other host is out of scope",
    unwanted=("/leaf", "/second/leaf-two"),
    ends={"/": "done", "/folder/leaf": "done", "/first/leaf-two": "done"},
)
def _base() -> Pages:
    outside = f"http://{host_of('redirect-outside')}/"
    return ordinary("/based", "/away", "/both") | {
        "/based": page("Based", "leaf", top='<base href="/folder/">'),
        "/folder/leaf": page("Leaf"),
        "/away": page("Away", "", top=f'<base href="{outside}">'),
        "/both": page("Both", "leaf-two", top='<base target="_top"><base href="/first/"><base href="/second/">'),
        "/first/leaf-two": page("Leaf two"),
    }


@fault(
    "nofollow",
    "links with rel=nofollow, and a page with meta robots nofollow",
    "/hidden and /behind, linked only so, are never requested",
    unwanted=("/hidden", "/behind", "/behind-tag", "/behind-name"),
    ends={"/": "done", "/closed": "done", "/closed-tag": "done"},
)
def _nofollow() -> Pages:
    top = '<meta name="robots" content="index, NoFollow">'
    own = '<meta name="Curtsy" content="nofollow">'
    hidden = '<!doctype html><title>Rel</title><a rel="ugc NOFOLLOW" href="/hidden">hidden</a> <a href="/one">one</a>'
    tag = (("X-Robots-Tag", "otherbot: noindex"), ("X-Robots-Tag", "nofollow"))
    behind_tag = b'<title>By header</title><a href="/behind-tag">behind</a>'
    return ordinary("/rel", "/closed", "/closed-tag", "/closed-name") | {
        "/rel": html(hidden),
        "/closed": page("Closed", "/behind", top=top),
        "/closed-tag": reply(200, behind_tag, headers=tag),
        "/closed-name": page("Closed to curtsy", "/behind-name", top=own),
        **{path: page("Hidden") for path in ("/hidden", "/behind", "/behind-tag", "/behind-name")},
    }


@fault(
    "noindex",
    "noindex by meta robots, by meta for curtsy, by X-Robots-Tag, by X-Robots-Tag for curtsy; one for another robot",
    "skipped as noindex with their links followed; the one for another robot is done",
    ends={
        "/": "done",
        "/meta": "skipped noindex",
        "/own": "skipped noindex",
        "/tag": "skipped noindex",
        "/own-tag": "skipped noindex",
        "/none": "skipped noindex",
        "/other": "done",
        "/behind-meta": "done",
    },
)
def _noindex() -> Pages:
    body = b"<!doctype html><title>By header</title><p>Not for an index.</p>"

    def tagged_page(value: str) -> Pages:
        return {"/": reply(200, body, headers=(("X-Robots-Tag", value),))}

    return ordinary("/meta", "/own", "/tag", "/own-tag", "/none", "/other") | {
        "/meta": page("Meta", "/behind-meta", top='<meta name="robots" content="noindex">'),
        "/behind-meta": page("Linked from a page that is not kept"),
        "/own": page("Own", top='<meta name="curtsy" content="noindex, follow">'),
        "/tag": tagged_page("noindex")["/"],
        "/own-tag": tagged_page("curtsy: noindex")["/"],
        "/none": page("None", top='<META NAME="ROBOTS" CONTENT="NONE">'),
        "/other": tagged_page("otherbot: noindex")["/"],
    }


@fault(
    "canonical",
    "pages that name a canonical address: by link element, by Link header, relative, and on another host",
    "canonical targets in scope are links; the pages themselves are done",
    ends={"/": "done", "/copy": "done", "/original": "done"},
)
def _canonical() -> Pages:
    outside = f"http://{host_of('redirect-outside')}/"
    return ordinary("/copy", "/copy?session=9", "/by-header", "/elsewhere") | {
        "/copy": page("Copy", top='<link rel="canonical" href="original">'),
        "/copy?session=9": page("Copy", top='<link rel="canonical" href="/original">'),
        "/original": page("Original"),
        "/by-header": reply(200, b"<title>Copy</title>", headers=(("Link", '</original>; rel="canonical"'),)),
        "/elsewhere": page("Elsewhere", top=f'<link rel="canonical" href="{outside}">'),
    }


@fault(
    "link-elements",
    "links in area, iframe, frame, link rel=next and alternate, svg a, and in comments, scripts and templates",
    "the first are followed; what is in comments and scripts is not a link",
    unwanted=("/in-comment", "/in-script", "/in-textarea"),
    ends={"/": "done", "/in-area": "done", "/in-iframe": "done", "/in-next": "done", "/in-alternate": "done"},
)
def _elements() -> Pages:
    body = (
        '<!doctype html><title>Elements</title><link rel="next" href="/in-next">'
        '<link rel="alternate" hreflang="de" href="/in-alternate"><link rel="stylesheet" href="/style.css">'
        '<map name="m"><area href="/in-area"></map><iframe src="/in-iframe"></iframe>'
        '<!-- <a href="/in-comment">no</a> --><script>var a = \'<a href="/in-script">\';</script>'
        '<textarea><a href="/in-textarea">no</a></textarea>'
        '<a href="/in-entity?a=1&amp;b=2">entity</a><a href=/in-bare>bare</a><A HREF="/IN-UPPER">upper</A>'
    )
    frames = '<!doctype html><title>Frames</title><frameset><frame src="/in-frame"></frameset>'
    found = ("/in-next", "/in-alternate", "/in-area", "/in-iframe", "/in-bare", "/IN-UPPER", "/in-frame")
    return ordinary("/elements", "/frames") | {
        "/elements": html(body),
        "/frames": html(frames),
        "/in-entity?a=1&b=2": page("Entity"),
        "/style.css": reply(200, b"p{}", "text/css"),
        **{path: page("Found") for path in found},
    }


@fault(
    "broken-html",
    "HTML with unclosed tags, tags within tags, a 100,000-fold nesting, NUL bytes and half an attribute at its end",
    "no crash and no hang; what can be read is read",
    ends={"/": "done", "/nested": "done", "/nul": "done", "/unclosed": "done", "/behind": "done"},
)
def _broken_html() -> Pages:
    return ordinary("/unclosed", "/nested", "/nul", "/half") | {
        "/unclosed": html(
            '<title>Unclosed<p><b><a href="/behind">behind</a></title><a href="/behind">again<table><td>'
        ),
        "/nested": html("<!doctype html><title>Nested</title>" + "<div>" * 100_000 + '<a href="/behind">deep</a>'),
        "/nul": reply(200, b'<!doctype html><title>N\0l</title>\0<a hr\0ef="/x" href="/behind">\0</a>'),
        "/half": html('<!doctype html><title>Half</title><a href="/one">one</a><a href="/tw'),
        "/behind": page("Behind"),
    }


@fault(
    "soft-404",
    "every unknown address redirects to the home page or answers 200 with the same words",
    "finite: nothing links to more of them",
    ends={"/": "done", "/lost": "done"},
)
def _soft_404() -> Pages:
    return ordinary("/lost", "/moved") | {"/moved": redirect("/"), "*": page("We could not find that page")}
