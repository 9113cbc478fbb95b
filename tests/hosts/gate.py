"""A Gatepost server of a test: its own folder, a local channel, an agent, an operator; started, stopped and killed at will."""

import json
import os
import pathlib
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request

AGENT = "agent-token-of-the-test"
OPERATOR = "operator-token-of-the-test"

CONFIG = """
server: {{ listen: "127.0.0.1:{port}", key: {{ file: gatepost.key }} }}
storage: {{ url: "sqlite://gatepost.db" }}
auth:
  tokens:
    - {{ name: coder, secret: {agent}, role: agent }}
    - {{ name: dana, secret: {operator}, role: operator, operator: dana }}
operators: [ {{ id: dana, name: Dana Kim, roles: [ops] }} ]
channels: [ {{ name: inbox, kind: local }} ]
policy:
  default: confirm
  confirm: {{ channels: [inbox], approvers: {{ roles: [ops] }}, timeout: {timeout} }}
  rules:
    - {{ name: shell, tools: [Bash], effect: confirm, accepts_edits: [/command] }}
"""


class Gate:
    """Runs while it is used as a context."""

    def __init__(self, program, folder, timeout="5m"):
        self.program = program
        self.folder = pathlib.Path(folder)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.folder.mkdir(parents=True)
        config = CONFIG.format(port=self.port, agent=AGENT, operator=OPERATOR, timeout=timeout)
        (self.folder / "gatepost.yaml").write_text(config)
        self.child = None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.kill()

    def start(self):
        """Starts it and waits until it answers."""
        with open(self.folder / "output.txt", "ab") as output:
            self.child = subprocess.Popen(
                [self.program, "serve", "--config", "gatepost.yaml"],
                cwd=self.folder,
                env={"PATH": os.environ["PATH"]},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        until(lambda: self.child.poll() is not None or self._ready(), 20, "the server is ready")
        if self.child.poll() is not None:
            raise AssertionError("gatepost did not start:\n" + (self.folder / "output.txt").read_text())

    def kill(self):
        """Ends it without warning."""
        if self.child and self.child.poll() is None:
            self.child.send_signal(signal.SIGKILL)
            self.child.wait()

    def _ready(self):
        try:
            with urllib.request.urlopen(self.url + "/readyz", timeout=2) as answer:
                return answer.status == 200
        except OSError:
            return False

    def call(self, method, path, body=None):
        """One request of the operator."""
        request = urllib.request.Request(
            self.url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"authorization": f"Bearer {OPERATOR}", "content-type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{method} {path}: {error.code} {error.read()!r}") from None

    def requests(self, status=None):
        """The confirmation requests, newest first."""
        query = f"?status={status}" if status else ""
        return self.call("GET", "/api/confirmations" + query)["items"]

    def pending(self):
        """The one request that waits; waits for it."""
        until(lambda: self.requests("pending"), 40, "a request waits")
        return self.requests("pending")[0]["id"]

    def respond(self, decision, reason=None, **edited):
        """Answers the one request that waits; `edited` are arguments in place of those that it holds."""
        body = {"decision": decision, **({"reason": reason} if reason else {})}
        if edited:
            (request,) = self.requests("pending") if self.pending() else ()
            body["edited_args"] = {**request["tool_args"], **edited}
        self.call("POST", f"/api/confirmations/{self.pending()}/respond", body)


def until(true, seconds, what):
    """Waits for a condition."""
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.1)
