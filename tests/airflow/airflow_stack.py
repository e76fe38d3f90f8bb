"""A real Airflow on loopback: API server, scheduler with its executor, triggerer, each a process of its own."""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import closing, suppress
from http import HTTPStatus
from pathlib import Path
from typing import Any, TypeVar

import psutil
from airflow_plane import with_parent

import curtsy.airflow

T = TypeVar("T")
DAGS = Path(__file__).parent / "dags"
EXAMPLE = Path(curtsy.airflow.__file__).parent / "examples" / "crawl_process_replay.py"
#: an empty database of this version of Airflow, made with the environment: migrating takes longer than all tests
MIGRATED = Path(sys.prefix) / "airflow-empty.db"
#: tasks that may run at once; more than any test needs workers for
PARALLELISM = 4


class DatabaseLocked(AssertionError):
    """Airflow waited in vain for another of its parts that writes to SQLite. It has changed nothing."""


class Airflow:
    """One AIRFLOW_HOME. `close` ends all of its processes."""

    def __init__(self, home: Path, connection: dict[str, Any], **variables: str) -> None:
        self.home = home
        home.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self.parts: dict[str, subprocess.Popen[bytes]] = {}
        self.environment = os.environ | self._settings() | variables
        self.environment["AIRFLOW_CONN_CURTSY_DEFAULT"] = json.dumps({"conn_type": "curtsy", **connection})
        self._token: str | None = None

    def _settings(self) -> dict[str, str]:
        given = {
            "CORE__DAGS_FOLDER": str(self.home / "dags"),
            "CORE__EXECUTOR": "LocalExecutor",
            "CORE__PARALLELISM": str(PARALLELISM),
            "CORE__LOAD_EXAMPLES": "False",
            "CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{self.port}/execution/",
            "CORE__FERNET_KEY": base64.urlsafe_b64encode(os.urandom(32)).decode(),
            "CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
            "CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
            "CORE__TEST_CONNECTION": "Enabled",
            "DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{self.home}/airflow.db",
            "API__HOST": "127.0.0.1",
            "API__PORT": str(self.port),
            "API__BASE_URL": f"http://127.0.0.1:{self.port}",
            "API__SECRET_KEY": os.urandom(16).hex(),
            "API__WORKERS": "1",
            "API_AUTH__JWT_SECRET": os.urandom(16).hex(),
            "SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.3",
            "TRIGGERER__JOB_HEARTBEAT_SEC": "1",
            # Our triggers wait for it before they fire (trigger.settle_s); 5 unless set.
            "WORKERS__MIN_HEARTBEAT_INTERVAL": "1",
            # A triggerer that was killed is known to be dead after so many seconds; 30 unless set.
            "TRIGGERER__TRIGGERER_HEALTH_CHECK_THRESHOLD": "6",
            "LOGGING__LOGGING_LEVEL": os.environ.get("AIRFLOW__LOGGING__LOGGING_LEVEL", "WARNING"),
            "USAGE_DATA_COLLECTION__ENABLED": "False",
        }
        return {"AIRFLOW_HOME": str(self.home), "PYTHONWARNINGS": "ignore"} | {
            f"AIRFLOW__{name}": value for name, value in given.items()
        }

    # Processes

    def start(self) -> None:
        """Until the API server answers and the DAGs are known: those of the tests, and the example of the package."""
        shutil.copytree(DAGS, self.home / "dags", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(EXAMPLE, self.home / "dags")
        if MIGRATED.exists():
            shutil.copy(MIGRATED, self.home / "airflow.db")
        else:
            self.run("db", "migrate")
        # Its parts share the file. Readers and a writer do not lock each other out then.
        with closing(sqlite3.connect(self.home / "airflow.db")) as db:
            db.execute("PRAGMA journal_mode = WAL")
        self.begin("api-server", "api-server")
        self.begin("dag-processor", "dag-processor")
        self.begin("scheduler", "scheduler", "--skip-serve-logs")
        self.begin("triggerer", "triggerer", "--skip-serve-logs")
        query = "SELECT 1 FROM dag WHERE dag_id IN ('curtsy_example', 'own_requests', 'mapped_requests')"
        self.until(lambda: self._answers() and len(self.rows(query)) == 3, 150)
        # Nothing changes any more, and parsing again would only cost time.
        self.kill("dag-processor")

    def begin(self, name: str, *words: str) -> None:
        with (self.home / f"{name}.log").open("ab") as said:
            self.parts[name] = subprocess.Popen(
                self._command(*words), env=self.environment, stdout=said, stderr=said, cwd=self.home,
                start_new_session=True, preexec_fn=with_parent,  # noqa: PLW1509
            )  # fmt: skip

    def run(self, *words: str) -> str:
        done = subprocess.run(
            self._command(*words), env=self.environment, cwd=self.home, capture_output=True, text=True, timeout=180,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout

    @staticmethod
    def _command(*words: str) -> list[str]:
        return [sys.executable, "-m", "airflow", *words]

    def kill(self, name: str) -> None:
        """The part and all its children, without a word."""
        process = self.parts.pop(name)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def stand_still(self, name: str) -> None:
        """The part and all its children, as on a machine that has no time for them."""
        os.killpg(self.parts[name].pid, signal.SIGSTOP)

    def go_on(self, name: str) -> None:
        os.killpg(self.parts[name].pid, signal.SIGCONT)

    def follows(self, port: int) -> bool:
        """Whether a trigger is connected to that port of this machine."""
        with suppress(psutil.Error):
            family = psutil.Process(self.parts["triggerer"].pid).children(recursive=True)
            return any(at.raddr and at.raddr.port == port for one in family for at in one.net_connections())
        return False

    def close(self) -> None:
        for name, process in list(self.parts.items()):
            with suppress(ProcessLookupError):
                self.kill(name)
            process.wait()

    def said(self) -> str:
        """The last words of all parts, and of the tasks that failed."""
        logs = [*self.home.glob("*.log"), *sorted(self.home.glob("logs/dag_id=*/**/*.log"))]
        return "\n".join(
            f"--- {path.relative_to(self.home)}\n{path.read_text('utf-8', 'replace')[-2500:]}" for path in logs
        )

    def told(self, dag: str, run: str) -> str:
        """What the tasks of a run and their triggers have logged."""
        logs = self.home.glob(f"logs/dag_id={dag}/run_id={run}/**/*.log")
        return "\n".join(path.read_text("utf-8", "replace") for path in logs)

    # Its API

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """The answer. Airflow's database on SQLite can be locked for longer than it waits: then it is asked again."""
        for _ in range(5):
            with suppress(DatabaseLocked):
                return self._ask(method, path, body)
        return self._ask(method, path, body)

    def _ask(self, method: str, path: str, body: Any) -> Any:
        if self._token is None and path != "/auth/token":
            self._token = self.ask("GET", "/auth/token")["access_token"]
        headers = {"Content-Type": "application/json"}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            said = error.read()[:2000]
            locked = error.code == HTTPStatus.INTERNAL_SERVER_ERROR and b"Database error" in said
            raise (DatabaseLocked if locked else AssertionError)(f"{method} {path}: {error.code} {said!r}") from error

    def _answers(self) -> bool:
        try:
            return bool(self.ask("GET", "/api/v2/monitor/health")["scheduler"]["status"] == "healthy")
        except (OSError, AssertionError):
            return False

    def trigger(self, dag: str, run: str = "one", **conf: Any) -> None:
        self.ask("POST", f"/api/v2/dags/{dag}/dagRuns", {"dag_run_id": run, "logical_date": None, "conf": conf})

    def xcom(self, dag: str, task: str, key: str = "return_value", run: str = "one", at: int = -1) -> Any:
        path = (
            f"/api/v2/dags/{dag}/dagRuns/{run}/taskInstances/{task}/xcomEntries/{key}?map_index={at}&deserialize=true"
        )
        return self.ask("GET", path)["value"]

    # Its database

    def rows(self, query: str, *values: Any) -> list[Any]:
        with closing(sqlite3.connect(f"file:{self.home / 'airflow.db'}?mode=ro", uri=True, timeout=30)) as db:
            return db.execute(query, values).fetchall()

    def states(self, dag: str) -> dict[tuple[str, str, int], str | None]:
        """(run, task, map index) -> state"""
        found = self.rows("SELECT run_id, task_id, map_index, state FROM task_instance WHERE dag_id = ?", dag)
        return {(run, task, at): state for run, task, at, state in found}

    def state(self, dag: str, task: str, run: str = "one") -> str | None:
        return self.states(dag).get((run, task, -1))

    def run_states(self, dag: str) -> list[str]:
        return [state for (state,) in self.rows("SELECT state FROM dag_run WHERE dag_id = ?", dag)]

    def tries(self, dag: str, runs: str = "%") -> set[int]:
        """What task instances have needed; one that deferred and went on has needed one."""
        query = "SELECT try_number FROM task_instance WHERE dag_id = ? AND run_id LIKE ?"
        return {n for (n,) in self.rows(query, dag, runs)}

    def events(self, dag: str, event: str) -> list[str]:
        """What Airflow's own log tells of such an event."""
        found = self.rows("SELECT coalesce(extra, '') FROM log WHERE dag_id = ? AND event = ?", dag, event)
        return [extra for (extra,) in found]

    def followers(self) -> list[int | None]:
        """Of all triggers that wait: by which triggerer."""
        return [id for (id,) in self.rows("SELECT triggerer_id FROM trigger")]

    def occupied(self) -> int:
        """Worker slots that tasks hold in their pools, as Airflow counts them."""
        return int(self.rows(
            "SELECT coalesce(sum(pool_slots), 0) FROM task_instance WHERE state IN ('queued', 'running')"
        )[0][0])  # fmt: skip

    def until(self, look: Callable[[], T], within_s: float = 90, every_s: float = 0.2) -> T:
        """Waits for something to be so; a part that died meanwhile is told with everybody's last words."""
        deadline = time.monotonic() + within_s
        while not (found := look()):
            died = [name for name, process in self.parts.items() if process.poll() is not None]
            assert not died, f"{died} ended: {self.said()}"
            assert time.monotonic() < deadline, f"it did not happen in {within_s} s: {self.said()}"
            time.sleep(every_s)
        return found

    def until_run(self, dag: str, wanted: str = "success", runs: int = 1, within_s: float = 120) -> None:
        def ended() -> bool:
            states = self.run_states(dag)
            return len(states) >= runs and all(state in ("success", "failed") for state in states)

        self.until(ended, within_s)
        assert set(self.run_states(dag)) == {wanted}, self.said()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])
