"""A child that is forked beside a busy thread finds no lock of that thread held."""

from __future__ import annotations

import subprocess
import sys

FORKS = 60
PROGRAM = f"""
import asyncio, os, threading, time
from curtsy.fleet import fork_safety as forks

held = threading.Lock()

async def work():
    while True:
        with held:
            time.sleep(0.003)
        await asyncio.sleep(0.0005)

def free():
    got = held.acquire(timeout=10)
    os._exit(0 if got else 1)

forks.run_in_thread(work, "busy")
stuck = 0
for _ in range({FORKS}):
    time.sleep(0.001)
    if (child := os.fork()) == 0:
        free()
    stuck += os.waitpid(child, 0)[1] != 0
print(stuck)
"""


def test_a_process_forks_while_the_thread_beside_it_waits() -> None:
    told = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=90)
    assert told.stdout == "0\n"
