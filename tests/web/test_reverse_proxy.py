"""Behind a real nginx with TLS: the block of docs/how-to/deploy.md works as it is printed."""

from __future__ import annotations

import http.client
import re
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode

import pytest
from certificates import Authority
from served import Served, serving
from waiting import wait_for

from curtsy.store import keys
from curtsy.store.engine import Store
from curtsy.web import auth

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
pytestmark = pytest.mark.skipif(NGINX is None, reason="nginx is not installed")
DOCS = Path(__file__).parents[2] / "docs" / "how-to" / "deploy.md"
NAME = "crawler.test"
BARE = "location / { proxy_pass http://127.0.0.1:8080; }"


def printed() -> str:
    """The block of nginx in the docs."""
    found = re.search(r"^ {6}location / \{\n.*?^ {6}\}\n", DOCS.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[0]


@contextmanager
def nginx(folder: Path, authority: Authority, block: str, backend: int) -> Iterator[int]:
    """An nginx with TLS in front of the backend; its port."""
    folder.mkdir()
    certificate, key = authority.issue(NAME)
    with closing(socket.create_server(("127.0.0.1", 0))) as probe:
        port = int(probe.getsockname()[1])
    config = folder / "nginx.conf"
    config.write_text(
        f"daemon off; pid {folder}/pid; error_log {folder}/error.log; events {{}}\n"
        f"http {{ access_log off; client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2;\n"
        f"fastcgi_temp_path {folder}/t3; uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5;\n"
        f"server {{ listen 127.0.0.1:{port} ssl; ssl_certificate {certificate}; ssl_certificate_key {key};\n"
        f"{block.replace(':8080', f':{backend}')} }} }}\n"
    )
    with subprocess.Popen([str(NGINX), "-c", str(config), "-e", f"{folder}/error.log"]) as server:
        try:
            wait_for(lambda: _answers(port) or None)
            yield port
        finally:
            server.terminate()


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except ConnectionRefusedError:
        return False
    return True


@dataclass
class Browser:
    """A client of the proxy that keeps one cookie, as browsers do."""

    port: int
    authority: Authority
    cookie: str = ""
    set_cookie: str = ""
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def host(self) -> str:
        return f"{NAME}:{self.port}"

    def ask(self, method: str, path: str, form: dict[str, str] | None = None, **headers: str) -> tuple[int, str]:
        context = ssl.create_default_context(cafile=str(self.authority.file))
        context.check_hostname = False
        given = {"Host": self.host, "Accept": "text/html", "Cookie": self.cookie, **headers}
        body = None
        if form is not None:
            body = urlencode(form)
            given |= {"Origin": f"https://{self.host}", "Content-Type": "application/x-www-form-urlencoded"}
        with closing(http.client.HTTPSConnection("127.0.0.1", self.port, context=context, timeout=30)) as connection:
            connection.request(method, path, body, given)
            answer = connection.getresponse()
            text = answer.read().decode()
            self.set_cookie = answer.headers.get("Set-Cookie") or ""
            if self.set_cookie:
                self.cookie = self.set_cookie.partition(";")[0]
            self.headers = dict(answer.headers)
            return answer.status, text

    def sign_in(self, key: str) -> int:
        _, page = self.ask("GET", "/sign-in")
        return self.ask("POST", "/sign-in", {"csrf": _token(page), "key": key, "next": "/crawls"})[0]


def _token(page: str) -> str:
    found = re.search(r'name="csrf" value="([^"]+)"', page)
    assert found is not None
    return found[1]


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """As the docs say."""
    found = re.search(r"CURTSY_API_PROXIES=([0-9.]+)", DOCS.read_text("utf-8"))
    assert found is not None
    with serving(tmp_path / "served", f"sqlite:///{tmp_path}/x.sqlite", processes=1, api_proxies=found[1]) as running:
        yield running


def new_key(tmp_path: Path, *scopes: str) -> str:
    with Store.open(f"sqlite:///{tmp_path}/x.sqlite") as store:
        text, stored = auth.new_key("person", scopes, int(time.time() * 1000), None)
        store.run(keys.create, stored)
    return text


def test_a_person_signs_in_and_out_through_the_printed_block(
    tmp_path: Path, served: Served, authority: Authority
) -> None:
    key = new_key(tmp_path, "write")
    with nginx(tmp_path / "nginx", authority, printed(), served.port) as port:
        browser = Browser(port, authority)
        assert browser.ask("GET", "/crawls")[0] == 303, "to the sign-in page"
        assert browser.sign_in(key) == 303
        assert "; Secure" in browser.set_cookie
        status, page = browser.ask("GET", "/crawls")
        assert (status, "Sign out" in page) == (200, True)
        stolen = Browser(port, authority, cookie=browser.cookie)
        assert stolen.ask("GET", "/crawls")[0] == 200
        assert browser.ask("POST", "/sign-out", {"csrf": _token(page)})[0] == 303
        assert stolen.ask("GET", "/crawls")[0] == 303, "the server has ended the session"
        status, _ = browser.ask("GET", "/v1/crawls", Authorization=f"Bearer {key}")
        assert status == 200


def test_uploads_and_events_pass_the_printed_block_unbuffered(
    tmp_path: Path, served: Served, authority: Authority
) -> None:
    key = new_key(tmp_path, "write")
    with nginx(tmp_path / "nginx", authority, printed(), served.port) as port:
        context = ssl.create_default_context(cafile=str(authority.file))
        context.check_hostname = False
        bearer = {"Authorization": f"Bearer {key}", "Host": f"{NAME}:{port}"}
        with closing(http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=30)) as connection:
            lines = ["{}", *(f'"https://h{n}.test/"' for n in range(5_000))]
            ndjson = bearer | {"Content-Type": "application/x-ndjson"}
            connection.request("POST", "/v1/crawls", "\n".join(lines), ndjson)
            answer = connection.getresponse()
            assert (answer.status, answer.read()[:6]) == (202, b'{"id":')
            connection.request("GET", "/v1/crawls/last/events", headers=bearer)
            events = connection.getresponse()
            assert events.status == 200
            assert b"event: " in events.readline() + events.readline() + events.readline()


def test_a_keyless_admin_does_not_become_public_through_a_bare_proxy(
    tmp_path: Path, served: Served, authority: Authority
) -> None:
    with nginx(tmp_path / "nginx", authority, BARE, served.port) as port:
        browser = Browser(port, authority)
        assert browser.ask("GET", "/v1/crawls")[0] == 401
        assert browser.ask("GET", "/crawls")[0] == 303
        assert browser.ask("GET", "/healthz")[0] == 200


def test_with_require_key_this_machine_needs_one_too(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/x.sqlite"
    with (
        serving(tmp_path / "served", url, "--require-key", processes=1) as served,
        closing(http.client.HTTPConnection("127.0.0.1", served.port, timeout=30)) as connection,
    ):
        connection.request("GET", "/v1/crawls")
        assert connection.getresponse().status == 401
