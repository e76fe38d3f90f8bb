"""A private RabbitMQ for one test: loopback ports and a folder of its own, and a port mapper that ends with it."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path
from types import TracebackType

#: Debian's command on PATH insists on a user of its own; the program behind it does not
_PROGRAM = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
START_S = 60.0


def find() -> str | None:
    return str(_PROGRAM) if _PROGRAM.exists() else shutil.which("rabbitmq-server")


class RabbitMQ:
    """`with RabbitMQ(folder) as rabbit`: a broker at `rabbit.url`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._port, self._mapper_port, between_port = (_free_port() for _ in range(3))
        self._env = os.environ | {
            "HOME": str(folder),
            "ERL_EPMD_PORT": str(self._mapper_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": f"test{os.getpid()}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self._port),
            "RABBITMQ_DIST_PORT": str(between_port),
            "RABBITMQ_BASE": str(folder),
            "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(folder / "logs"),
            "RABBITMQ_PID_FILE": str(folder / "pid"),
            "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq"),
            "RABBITMQ_CONF_ENV_FILE": str(folder / "environment"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
        }
        self._processes: list[subprocess.Popen[bytes]] = []

    @property
    def url(self) -> str:
        return f"amqp://guest:guest@127.0.0.1:{self._port}//"

    def __enter__(self) -> RabbitMQ:
        program = find()
        assert program is not None
        self.folder.mkdir(parents=True)
        (self.folder / "plugins").write_text("[].\n")
        (self.folder / "environment").write_text("")
        try:
            # In the foreground: the server finds it and starts none of its own, which would outlive it.
            self._start("epmd", "-port", str(self._mapper_port), "-address", "127.0.0.1")
            self._wait(self._mapper_port)
            self._start(program)
            self._wait(self._port)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        while self._processes:
            process = self._processes.pop()
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(START_S)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def _start(self, *words: str) -> None:
        with (self.folder / "said").open("ab") as said:
            started = subprocess.Popen(
                words, cwd=self.folder, env=self._env, stdin=subprocess.DEVNULL, stdout=said, stderr=said,
                start_new_session=True,
            )  # fmt: skip
        self._processes.append(started)

    def _wait(self, port: int) -> None:
        deadline = time.monotonic() + START_S
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return
            said = (self.folder / "said").read_text("utf-8", "replace")[-3000:]
            assert self._processes[-1].poll() is None, said
            assert time.monotonic() < deadline, said
            time.sleep(0.05)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
