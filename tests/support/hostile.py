"""A page that asks for places it must not reach, in every way a page can ask."""

from __future__ import annotations

import socket
from typing import Any

from private_places import Listener
from small_site import Say


def hostile(http: str, udp: int, name: str) -> str:
    """`http`: `//host:port` of a place that must not be reached."""
    ws = f"ws:{http}"
    http = f"http:{http}"
    return f"""<!doctype html>
    <link rel=prefetch href={http}/prefetch><link rel=preload as=script href={http}/preload.js>
    <link rel=preload as=font crossorigin href={http}/preload.woff><link rel=modulepreload href={http}/module.js>
    <link rel=preconnect href={http}><link rel=dns-prefetch href={http}><link rel=prerender href={http}/prerender>
    <link rel=stylesheet href={http}/s.css><link rel=icon href={http}/icon.png><link rel=manifest href={http}/m>
    <meta http-equiv=refresh content="1; url={http}/refresh">
    <style>@import url({http}/import.css); p {{ background: url({http}/back.png) }}
      @font-face {{ font-family: f; src: url({http}/font.woff) }} p {{ font-family: f }}</style>
    <script type=speculationrules>{{"prefetch": [{{"source": "list", "urls": ["{http}/rules"]}}],
      "prerender": [{{"source": "list", "urls": ["{http}/rules2"]}}]}}</script>
    <p>text<img src={http}/img.png><iframe src={http}/frame></iframe><object data={http}/o></object>
    <embed src={http}/e><video src={http}/v.mp4 autoplay></video><audio src={http}/a.mp3 autoplay></audio>
    <iframe srcdoc="<img src={http}/srcdoc.png><script>fetch('{http}/srcdoc').catch(() => 0)</script>"></iframe>
    <script src={http}/script.js></script><script type=module src={http}/module2.js></script>
    <a id=ping href=/nowhere ping={http}/ping></a><form id=form action={http}/form method=post target=f></form>
    <iframe name=f></iframe><svg><image href={http}/svg.png></image><use href={http}/use.svg#x></use></svg>
    <script>
      const attempt = (what) => {{ try {{ const p = what(); if (p && p.catch) p.catch(() => 0); }} catch (e) {{}} }};
      attempt(() => fetch('{http}/fetch'));
      attempt(() => fetch('{http}/fetch2', {{mode: 'no-cors', keepalive: true}}));
      attempt(() => fetch('{http}/fetch3', {{method: 'POST', headers: {{'X-A': 'b'}}, body: 'x'}}));
      attempt(() => {{ const x = new XMLHttpRequest(); x.open('GET', '{http}/xhr'); x.send(); }});
      attempt(() => new WebSocket('{ws}/socket'));
      attempt(() => new EventSource('{http}/events'));
      attempt(() => navigator.sendBeacon('{http}/beacon', 'x'));
      attempt(() => {{ new Image().src = '{http}/image'; }});
      attempt(() => window.open('{http}/popup'));
      attempt(() => document.getElementById('ping').click());
      attempt(() => document.getElementById('form').submit());
      attempt(() => navigator.serviceWorker.register('/{name}/sw.js'));
      attempt(() => import('{http}/import.js'));
      attempt(() => {{ new Worker(URL.createObjectURL(new Blob(["fetch('{http}/worker').catch(() => 0);"
        + "new WebSocket('{ws}/worker-socket'); importScripts('{http}/imported.js')"]))); }});
      attempt(() => new SharedWorker('/{name}/shared.js'));
      attempt(() => new WebTransport('https://127.0.0.1:{udp}/').ready);
      attempt(() => {{
        const peer = new RTCPeerConnection({{iceServers: [{{urls: 'stun:127.0.0.1:{udp}'}},
          {{urls: 'turn:127.0.0.1:{udp}', username: 'u', credential: 'c'}}]}});
        peer.createDataChannel('x');
        peer.createOffer().then((offer) => peer.setLocalDescription(offer)); }});
      attempt(() => fetch('/{name}/leads-there'));
      for (const kind of ['script', 'iframe']) attempt(() => {{
        const one = document.createElement(kind); one.src = '/{name}/leads-there'; document.body.append(one); }});
      setTimeout(() => attempt(() => {{ location = '{http}/location'; }}), 300);
      setTimeout(() => document.body.append(' done'), 600);
    </script>"""


def write(site: dict[str, Any], udp: int, target: str, name: str = "hostile") -> None:
    script = (("Content-Type", "text/javascript"),)
    worker = f"fetch('http:{target}/sw'); addEventListener('fetch', (e) => e.respondWith(fetch('http:{target}/sw2')))"
    site[f"/{name}"] = Say(hostile(target, udp, name).encode())
    site[f"/{name}/leads-there"] = Say(b"", 302, (("Location", f"http:{target}/redirected"),))
    site[f"/{name}/sw.js"] = Say(worker.encode(), 200, script)
    site[f"/{name}/shared.js"] = Say(f"fetch('http:{target}/s'); new WebSocket('ws:{target}/s')".encode(), 200, script)


def reached(datagrams: socket.socket) -> bool:
    try:
        return bool(datagrams.recv(2048))
    except BlockingIOError:
        return False


def port_of(listener: Listener) -> int:
    return int(listener._sockets[0].getsockname()[1])
