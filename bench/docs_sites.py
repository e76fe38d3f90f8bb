"""Real documentation sites from Debian packages, one folder per host, for nginx.

apt-get downloads the newest version of each package, and dpkg-deb unpacks it once into `.cache/bench-sites`. Nothing is
installed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from bench.measure import RunFailed

CACHE = Path(__file__).parent.parent / ".cache" / "bench-sites"
DOMAIN = "docs.test"
_LIMIT_S = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """A package that contains a site."""

    host: str
    #: its name, with the version of the software as a group if the name has one
    name: str
    #: the folder that has the home page; the last group of the name replaces {}
    folder: str


PACKAGES = (
    Package(host="postgresql", name=r"postgresql-doc-(\d+)", folder="usr/share/doc/postgresql-doc-{}/html"),
    Package(host="vim", name=r"vim-doc", folder="usr/share/doc/vim/html"),
    Package(host="python", name=r"python(3\.\d+)-doc", folder="usr/share/doc/python{}/html"),
    Package(host="sqlite", name=r"sqlite3-doc", folder="usr/share/doc/sqlite3"),
    Package(host="apache", name=r"apache2-doc", folder="usr/share/doc/apache2-doc/manual"),
    Package(host="libstdcxx", name=r"libstdc\+\+-(\d+)-doc", folder="usr/share/doc/gcc-{}-base/libstdc++"),
)


def fetch(packages: tuple[Package, ...]) -> list[Path]:
    """The folders of the sites, downloaded where they are missing. RunFailed if that is not possible."""
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise RunFailed("The real sites come from Debian packages, but apt-get or dpkg-deb is missing.")
    CACHE.mkdir(parents=True, exist_ok=True)
    return [_root(package) for package in packages]


def link(packages: tuple[Package, ...], into: Path) -> list[str]:
    """Links `into/<host>` to the files of each package; returns the hosts."""
    hosts = [f"{package.host}.{DOMAIN}" for package in packages]
    for host, root in zip(hosts, fetch(packages), strict=True):
        (into / host).symlink_to(root.resolve(), target_is_directory=True)
    return hosts


def _root(package: Package) -> Path:
    """The folder with the home page, unpacked already or now."""
    unpacked = CACHE / package.host
    if (found := _home(package, unpacked)) is not None:
        return found
    name = _available(package.name)
    shutil.rmtree(unpacked, ignore_errors=True)
    unpacked.mkdir(parents=True)
    _run("apt-get", "download", "-q", name, folder=unpacked)
    for file in unpacked.glob("*.deb"):
        _run("dpkg-deb", "-x", file.name, ".", folder=unpacked)
        file.unlink()
    if (found := _home(package, unpacked)) is None:
        raise RunFailed(f"The package {name} has no home page in {package.folder}.")
    return found


def _home(package: Package, unpacked: Path) -> Path | None:
    pages = sorted(unpacked.glob(package.folder.replace("{}", "*") + "/index.html"))
    return pages[-1].parent if pages else None


def _available(pattern: str) -> str:
    """The name of the newest package; as root the lists of packages are read again where it is missing."""
    name = newest(pattern, _run("apt-cache", "pkgnames", folder=CACHE).split())
    if name is None and os.geteuid() == 0:
        _run("apt-get", "update", "-q", folder=CACHE)
        name = newest(pattern, _run("apt-cache", "pkgnames", folder=CACHE).split())
    if name is None:
        raise RunFailed(f"apt-get knows no package {pattern}. Run apt-get update as root, and try again.")
    return name


def newest(pattern: str, names: list[str]) -> str | None:
    """The name with the highest version."""
    found = [match for name in names if (match := re.fullmatch(pattern, name))]
    return max(found, key=_version).group() if found else None


def _version(match: re.Match[str]) -> list[int]:
    return [int(number) for text in match.groups() for number in text.split(".")]


def _run(*argv: str, folder: Path) -> str:
    try:
        done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=True, timeout=_LIMIT_S)
    except (subprocess.SubprocessError, OSError) as error:
        said = getattr(error, "stderr", None) or error
        raise RunFailed(f"{' '.join(argv)} failed: {said}") from error
    return done.stdout
