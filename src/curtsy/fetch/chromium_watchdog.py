"""The parent of a browser: runs on the bare interpreter, and leaves no process of the browser behind.

Started as a program by chromium.py, never imported. It imports only the standard library.
Arguments: descriptor that the worker holds the other end of, the browser's profile folder, the browser's command...

It waits until the worker closes its end (or dies) or the browser ends, kills all descendants, and removes the
profile. If it is killed itself, the kernel kills the browser.
"""

import ctypes
import os
import select
import shutil
import signal
import struct
import sys

PR_SET_PDEATHSIG, PR_SET_SECCOMP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 22, 36, 38
SECCOMP_MODE_FILTER = 2
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | 13  # EACCES
LOAD, IF_EQUAL, IF_AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06
#: by machine: audit architecture, numbers of connect and sendto
SYSCALLS = {"x86_64": (0xC000003E, 42, 44), "aarch64": (0xC00000B7, 203, 206)}
IO_URING_SETUP = 425
#: x86_64 has a second number for each call, from here on
SECOND_NUMBERS = 0x40000000

libc = ctypes.CDLL(None, use_errno=True)


def seal() -> bool:
    """From now on the kernel prevents this process and its descendants from connecting or sending to an address.

    Socket pairs, and connections that others make to a port here, still work.
    """
    known = SYSCALLS.get(os.uname().machine)
    if known is None:
        return False
    architecture, connect, sendto = known
    steps = [
        (LOAD, 0, 0, 4),  # the architecture
        (IF_EQUAL, 0, 10, architecture),
        (LOAD, 0, 0, 0),  # the call's number
        (IF_AT_LEAST, 8, 0, SECOND_NUMBERS),
        (IF_EQUAL, 7, 0, connect),
        (IF_EQUAL, 6, 0, IO_URING_SETUP),
        (IF_EQUAL, 0, 4, sendto),
        (LOAD, 0, 0, 48),  # the address given to sendto, in two halves
        (IF_EQUAL, 0, 3, 0),
        (LOAD, 0, 0, 52),
        (IF_EQUAL, 0, 1, 0),
        (RETURN, 0, 0, ALLOW),
        (RETURN, 0, 0, REFUSE),
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code)))
    return not libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) and not libc.prctl(
        PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0
    )


def start(command: list[str]) -> int:
    parent = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setsid()
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        if os.getppid() == parent:
            os.write(1, b"sealed\n" if seal() else b"open\n")
            os.execv(command[0], command)
    finally:
        os._exit(127)


def descendants() -> list[int]:
    children: dict[int, list[int]] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                parent = int(file.read().rpartition(b")")[2].split()[1])
        except (OSError, IndexError):
            continue
        children.setdefault(parent, []).append(int(name))
    found, at = [os.getpid()], 0
    while at < len(found):
        found += children.get(found[at], ())
        at += 1
    return found[1:]


def end_all() -> None:
    """Orphans among the descendants become our children; without children, nothing is left."""
    while True:
        for pid in descendants():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:
            os.waitpid(-1, 0)
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return


def main(alive: str, profile: str, *command: str) -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    os.set_inheritable(int(alive), False)
    browser = start(list(command))
    watched = select.poll()
    watched.register(int(alive), select.POLLIN | select.POLLHUP)
    watched.register(os.pidfd_open(browser), select.POLLIN)
    watched.poll()
    end_all()
    shutil.rmtree(profile, ignore_errors=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
