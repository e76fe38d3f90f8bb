"""`python -m tests.newcomer`: the tutorial, then 200 organizations from nothing to a bundle in a browser.

The settings are the defaults of Curtsy. 10 of the organizations are dead, 5 have a certificate that nobody trusts, 5
are slow. Exits with 1 if a command failed, a line is wider than 80 columns, the report does not open, or all of it
took longer than 5 minutes.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.newcomer import tutorial
from tests.newcomer.job import Size, do, open_report, timed

LIMIT_S = 300.0
#: commands of a job with dead sites that end with 1: it has dead letters
_ONE = ("crawl", "crawl-again")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.newcomer", description=__doc__)
    parser.add_argument("--organizations", type=int, default=200)
    parser.add_argument("--again", action="store_true", help="also crawl again and show what changed; not timed")
    options = parser.parse_args()
    size = Size(organizations=options.organizations, dead=10, untrusted=5, slow=5)
    wrong: list[str] = []
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="curtsy-newcomer-") as folder:
        for took in tutorial.run(Path(folder)):
            print(f"{timed(begun)}  tutorial: {took.step.heading.lstrip('# '):40} exit code {took.code}", flush=True)
            wrong += [took.problem] if took.problem else []
        for name, ran in do(Path(folder), size, again=options.again):
            print(f"{timed(begun)}  {name:20} exit code {ran.code}", flush=True)
            if ran.code != int(name in _ONE):
                wrong.append(f"{name}: exit code {ran.code}\n{ran.out}\n{ran.err}")
            wrong += [f"{name}: wider than 80 columns: {line}" for line in ran.wide]
            if name == "bundle":
                report = open_report(Path(folder) / "orgs" / "handover" / "report.html")
                print(f"{timed(begun)}  the report has {report.records} records; the first has {report.quotes} quotes")
                if not report.records or not report.quotes:
                    wrong.append("the report has no records or no quotes")
                if (took_s := time.monotonic() - begun) > LIMIT_S:
                    wrong.append(f"it took {took_s:.0f} s, more than {LIMIT_S:.0f} s")
    print("\n".join(wrong) or "Everything went well.")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
