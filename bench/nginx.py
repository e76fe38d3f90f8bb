"""Our own nginx for a benchmark: one worker on a loopback port, its files in a folder of ours, ended by us."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.site import Site

CONFIG = """{user}
worker_processes 1;
worker_rlimit_nofile {files};
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log error;
events {{ worker_connections {connections}; multi_accept on; }}
http {{
  log_format pages '$host$request_uri $status $sent_http_content_type';
{more}
  access_log {log};
  sendfile on;
  tcp_nopush on;
  keepalive_timeout {keepalive_s};
  keepalive_requests 1000000;
  types {{
    text/html html htm; text/plain txt; text/css css; text/javascript js;
    image/png png; image/gif gif; image/svg+xml svg; application/pdf pdf;
  }}
  charset {charset};
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  server {{
    listen {address}:{port} {listen} backlog=4096;
    server_name _;
    root {site}/$host;
    index index.html;
  }}
}}
"""


def find() -> str:
    """The path of nginx; as root it is installed from Debian's packages where it is missing."""
    # Debian keeps /usr/sbin out of an ordinary user's PATH.
    path = os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin"
    if shutil.which("nginx", path=path) is None and os.geteuid() == 0 and shutil.which("apt-get"):
        subprocess.run(["apt-get", "install", "-y", "-q", "nginx-light"], check=True, stdout=subprocess.DEVNULL)
    found = shutil.which("nginx", path=path)
    if found is None:
        raise SystemExit("nginx is missing. Install it (Debian: apt-get install nginx-light) and run this again.")
    return found


@contextmanager
def serving(site: Site, folder: Path) -> Iterator[None]:
    """nginx serves the site until the block ends."""
    with serving_folder(site.folder, site.port, folder, charset="utf-8"):
        yield


@contextmanager
def serving_folder(
    root: Path, port: int, folder: Path, *, log: Path | None = None, log_format: str = "pages",
    charset: str = "off", listen: str = "", address: str = "127.0.0.1", more: str = "", keepalive_s: int = 65,
) -> Iterator[None]:  # fmt: skip
    """nginx serves `root/<host>` of every host until the block ends.

    `log`: one line per request. `listen`: options of the port, such as `ssl`. `more`: lines for the section http.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = min(65536, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    config = CONFIG.format(
        user="user root;" if os.geteuid() == 0 else "",
        folder=folder,
        files=files,
        connections=files // 2,
        port=port,
        site=root.resolve(),
        log="off" if log is None else f"{log} {log_format}",
        charset=charset,
        listen=listen,
        address=address,
        more=more,
        keepalive_s=keepalive_s,
    )
    (folder / "nginx.conf").write_text(config)
    argv = [find(), "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")]
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL)
    try:
        wait_until_open(process, port)
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=20)


def wait_until_open(process: subprocess.Popen[bytes], port: int) -> None:
    """Wait until a server that was started accepts connections."""
    for _ in range(200):
        if process.poll() is not None:
            raise SystemExit(
                f"The server ended at once (exit {process.returncode}): is port {port} taken? Give --port."
            )
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise SystemExit("The server did not open its port within 10 s.")
