"""The local model's server: a separate program, so that a fault in the model's library ends nothing else.

Started by local_model.py under valkey_watchdog.py, never imported.
Arguments: file of weights, file for the address, threads, tokens of context, name of the model.
"""

import json
import os
import secrets
import sys
import time


def main(weights: str, record: str, threads: str, context: str, name: str) -> None:
    watcher = os.getppid()
    import xllamacpp  # an optional extra

    # Other users, and pages in a browser, can reach a port on loopback: only the folder's owner can read the key.
    key = secrets.token_urlsafe(24)
    params = xllamacpp.CommonParams()
    params.model.path = weights
    params.model_alias = {name}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [key]
    params.n_ctx = int(context)
    params.n_parallel = 1
    params.n_threads_http = 4
    for cpu in (params.cpuparams, params.cpuparams_batch):
        cpu.n_threads = int(threads)
        cpu.poll = 0
    params.cache_ram_mib = 0
    params.verbosity = 1
    params.offline = True
    params.ui = False
    params.endpoint_slots = False
    server = xllamacpp.Server(params)
    _tell(record, {"url": f"{server.listening_address}/v1", "key": key, "pid": os.getpid(), "model": name})
    while watcher != 1 and os.getppid() == watcher:  # the watchdog ends us, unless it was killed itself
        time.sleep(1)


def _tell(path: str, what: dict[str, object]) -> None:
    new = os.open(f"{path}.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(new, "w") as file:
        json.dump(what, file)
    os.replace(f"{path}.new", path)


if __name__ == "__main__":
    main(*sys.argv[1:])
    os._exit(0)
