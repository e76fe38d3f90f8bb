"""Real PDF files from Debian packages, downloaded once into the judge's cache with `apt-get download`."""

from __future__ import annotations

import gzip
import shutil
import subprocess
from pathlib import Path

from tests.judge.places import CACHE

#: small packages with PDF files of several typesetters, in several languages
PACKAGES = (
    "bzip2-doc", "debian-policy", "developers-reference-de", "developers-reference-ja", "python-reportlab-doc",
    "r-cran-colorspace", "r-cran-lmtest", "r-cran-multcomp", "r-cran-sandwich", "r-cran-strucchange", "r-cran-xtable",
    "r-cran-zoo",
)  # fmt: skip


def files() -> list[Path]:
    """All PDF files of the packages that could be downloaded."""
    for package in PACKAGES:
        _download(package)
    return sorted(path for path in (CACHE / "pdf").rglob("*.pdf") if path.is_file() and not path.is_symlink())


def _download(package: str) -> None:
    folder = CACHE / "pdf" / package
    if folder.is_dir():
        return
    work = CACHE / "work" / package
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    got = subprocess.run(["apt-get", "-q", "download", package], cwd=work, capture_output=True, check=False)
    debs = list(work.glob("*.deb"))
    if got.returncode or not debs:
        print(f"{package}: not downloaded", flush=True)
        return
    subprocess.run(["dpkg-deb", "-x", debs[0], work / "tree"], check=True)
    folder.mkdir(parents=True)
    for path in (work / "tree").rglob("*.pdf*"):
        if path.is_symlink() or not path.is_file():
            continue
        body = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        if body.startswith(b"%PDF"):
            (folder / path.name.removesuffix(".gz")).write_bytes(body)
    shutil.rmtree(work)
