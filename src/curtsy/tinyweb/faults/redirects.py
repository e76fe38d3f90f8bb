"""Hosts that redirect."""

from __future__ import annotations

from curtsy.tinyweb.answers import Pages, redirect, reply
from curtsy.tinyweb.faults.registry import fault, host_of, ordinary, page, to_this_server


@fault(
    "redirect-chain",
    "/start leads over five redirects (301, 302, 303, 307, 308) to /end",
    "each hop keeps the host's delay; /end is done, the others are done as redirect",
    ends={"/start": "done redirect", "/hop-1": "done redirect", "/end": "done"},
)
def _chain() -> Pages:
    return ordinary("/start") | {
        "/start": redirect("/hop-1", 301),
        "/hop-1": redirect("hop-2", 302),
        "/hop-2": redirect(f"http://{host_of('redirect-chain')}/hop-3", 303),
        "/hop-3": redirect(f"//{host_of('redirect-chain')}/hop-4", 307),
        "/hop-4": redirect("/end#part", 308),
        "/end": page("The end of the chain"),
    }


@fault(
    "redirect-long",
    "/hop/0 leads over thirty redirects",
    "aborted after max_redirects: skipped too_many_redirects",
    ends={"/": "done", "/hop/0": "done redirect", "/hop/10": "skipped too_many_redirects"},
)
def _long() -> Pages:
    hops: Pages = {f"/hop/{number}": redirect(f"/hop/{number + 1}") for number in range(30)}
    return ordinary("/hop/0") | hops | {"/hop/30": page("Too far")}


@fault(
    "redirect-loop",
    "/a leads to /b, /b to /c, /c to /a; /self to itself",
    "skipped as redirect_loop, each URL requested once",
    ends={"/": "done", "/a": "done redirect", "/c": "skipped redirect_loop", "/self": "skipped redirect_loop"},
)
def _loop() -> Pages:
    return ordinary("/a", "/self") | {
        "/a": redirect("/b"),
        "/b": redirect("/c", 301),
        "/c": redirect("/a", 307),
        "/self": redirect("/self"),
    }


@fault(
    "redirect-host",
    "the home page redirects to another host, /away to a third one",
    "the chain began at a seed: redirect-target joins the scope and its pages are done; /away leads out of scope",
    ends={"/": "done redirect", "/one": "done", "/away": "done redirect"},
)
def _host() -> Pages:
    target = f"http://{host_of('redirect-target')}/"
    return ordinary() | {"/": redirect(target, 301), "/away": redirect(f"http://{host_of('redirect-outside')}/")}


@fault("redirect-target", "where redirect-host leads", "its pages are done", seeds=(), ends={"/": "done"})
def _target() -> Pages:
    back = f"http://{host_of('redirect-host')}/"
    return ordinary(f"{back}one", f"{back}away")


@fault(
    "redirect-outside",
    "a host outside the scope, to which others only redirect",
    "never requested with scope host",
    seeds=(),
    unwanted=("/",),
)
def _outside() -> Pages:
    return ordinary()


@fault(
    "redirect-private",
    "redirects to private addresses: 10.0.0.1, 169.254.169.254, [::1] and this very server by its address",
    "none of them is requested: skipped forbidden_address (or out of scope)",
    ends={
        "/": "done",
        "/one": "done",
        "/ten": "done redirect",
        "/cloud": "done redirect",
        "/six": "done redirect",
        "/here": "done redirect",
    },
)
def _private() -> Pages:
    return ordinary("/ten", "/cloud", "/six", "/mapped", "/here") | {
        "/ten": redirect("http://10.0.0.1/"),
        "/cloud": redirect("http://169.254.169.254/latest/meta-data/"),
        "/six": redirect("http://[::1]/"),
        "/mapped": redirect("http://[::ffff:127.0.0.1]/"),
        "/here": to_this_server,
    }


@fault(
    "redirect-private-seed",
    "the home page redirects to this very server by its loopback address",
    "the scope would follow a seed, the guard does not: skipped forbidden_address",
    ends={"/": "done redirect|skipped forbidden_address"},
)
def _private_seed() -> Pages:
    return ordinary() | {"/": to_this_server}


@fault(
    "redirect-scheme",
    "redirects to ftp:, file:, javascript:, data: and mailto:",
    "skipped as bad_redirect; nothing but http and https is fetched",
    ends={"/": "done", **dict.fromkeys(("/ftp", "/file", "/script", "/data", "/mail"), "skipped bad_redirect")},
)
def _scheme() -> Pages:
    return ordinary("/ftp", "/file", "/script", "/data", "/mail") | {
        "/ftp": redirect(f"ftp://{host_of('redirect-scheme')}/file"),
        "/file": redirect("file:///etc/hostname"),
        "/script": redirect("javascript:alert(1)"),
        "/data": redirect("data:text/html,hello"),
        "/mail": redirect("mailto:someone@tinyweb.test"),
    }


@fault(
    "redirect-https",
    "/secure redirects to https on this host, where there is no TLS",
    "the other origin cannot be reached: /secure is done as redirect, its target a dead letter after host_patience",
    ends={"/": "done", "/one": "done", "/two": "done", "/secure": "done redirect"},
)
def _https() -> Pages:
    return ordinary("/secure") | {"/secure": redirect(f"https://{host_of('redirect-https')}/secure")}


@fault(
    "redirect-bad",
    "redirects without Location, with an empty one, with one that is no URL, and with raw UTF-8 in it",
    "no loop and no crash: bad_redirect, but for the UTF-8 one, which leads to /caf%C3%A9",
    ends={
        "/": "done",
        "/nowhere": "skipped bad_redirect",
        "/empty": "skipped bad_redirect",
        "/broken": "skipped bad_redirect",
        "/raw": "done redirect",
        "/caf%C3%A9": "done",
    },
)
def _bad() -> Pages:
    return ordinary("/nowhere", "/empty", "/broken", "/raw") | {
        "/nowhere": reply(302, b"Where?", "text/plain"),
        "/empty": redirect(""),
        "/broken": redirect("http://[half an address/"),
        "/raw": redirect("/café"),
        "/caf%C3%A9": page("Café"),
    }
