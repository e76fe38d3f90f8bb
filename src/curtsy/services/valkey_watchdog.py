"""The parent of the embedded server: runs on the bare interpreter, needs 8 MB, wakes only when the users change.

Started as a program by valkey.py, never imported. It imports only the core of the standard library.
Arguments: users' lock file, descriptor that the server inherits, seconds to wait for users, socket, server command...
"""

import fcntl
import os
import signal
import sys
import time

#: the time without users is checked in this many parts
PARTS = 10


def start(command: list[str], alive: int) -> int:
    """The server inherits `alive`, so the lock lasts exactly as long as the server."""
    os.set_inheritable(alive, True)
    to_log = [(os.POSIX_SPAWN_DUP2, 2, 1)]
    pid = os.posix_spawn(command[0], command, os.environ, file_actions=to_log)
    os.close(alive)
    return pid


def unused(lock: int, grace_s: float) -> bool:
    """Blocks until the server has no users. Returns whether it still had none after the waiting time."""
    fcntl.flock(lock, fcntl.LOCK_EX)
    fcntl.flock(lock, fcntl.LOCK_UN)
    for part in range(PARTS):
        time.sleep(grace_s / PARTS)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        if part < PARTS - 1:
            fcntl.flock(lock, fcntl.LOCK_UN)
    return True  # still locked: no process enters while the server stops


def main(lock_file: str, alive: str, grace_s: str, socket: str, *command: str) -> None:
    if os.fork():
        os._exit(0)  # the process that started us need not reap us
    signal.pthread_sigmask(signal.SIG_SETMASK, ())  # the process that started us may have blocked some
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, lambda *_: os._exit(0))
    server = start(list(command), int(alive))
    signal.signal(signal.SIGTERM, lambda *_: os.kill(server, signal.SIGTERM))
    os.write(1, b"started\n")
    lock = os.open(lock_file, os.O_RDWR)
    while not unused(lock, float(grace_s)):
        # A signal can arrive just before the wait for the lock; then the server's end is noticed here.
        if os.waitpid(server, os.WNOHANG)[0]:
            return
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.kill(server, signal.SIGTERM)
    os.waitpid(server, 0)
    if os.path.exists(socket):
        os.unlink(socket)


if __name__ == "__main__":
    main(*sys.argv[1:])
