"""The real Claude Code behind a gate, offline: every case says whether the tool ran and what the model was told."""

import json
import os
import pathlib
import signal
import subprocess
import threading
import time

import gate as gates
from gate import Gate, until
from model import Model

COMMAND, HTTP = "command hook", "HTTP hook"


class Case:
    """One run of Claude Code in a folder of its own. The tool would run without asking if it were not for the hook."""

    def __init__(self, claude, program, folder):
        self.claude, self.program, self.folder = claude, program, pathlib.Path(folder)
        self.folder.mkdir(parents=True)
        self.mark = self.folder / "the-tool-ran"
        self.touch = f"echo x >> {self.mark}"

    def hook(self, way, url, host="claude-code", query="", deadline=None, on_failure="block"):
        """The entry of the settings, as the guide spells it."""
        if way == COMMAND:
            words = [str(self.program), "gate", host] + ([f"--deadline {deadline}"] if deadline else [])
            entry = {"type": "command", "command": " ".join(words)}
        else:
            entry = {
                "type": "http",
                "url": f"{url}/api/hooks/{host}{query}",
                "headers": {"Authorization": "Bearer $GATEPOST_TOKEN"},
                "allowedEnvVars": ["GATEPOST_TOKEN"],
            }
        if on_failure:
            entry["onFailure"] = on_failure
        return {**entry, "timeout": 86400}

    def start(self, model, hook, url, token=gates.AGENT, more=()):
        """Starts it; nothing of this machine's own configuration is seen by it."""
        settings = self.folder / "settings.json"
        entry = [{"matcher": "*", "hooks": [hook]}]
        settings.write_text(json.dumps({"hooks": {"PreToolUse": entry, "PostToolUse": entry}}))
        home = self.folder / "home"
        (home / "config").mkdir(parents=True, exist_ok=True)
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "CLAUDE_CONFIG_DIR": str(home / "config"),
            "ANTHROPIC_BASE_URL": model.url,
            "ANTHROPIC_API_KEY": "none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "HTTPS_PROXY": "http://127.0.0.1:9",
            "NO_PROXY": "127.0.0.1",
            "GATEPOST_URL": url,
            "GATEPOST_TOKEN": token,
        }
        words = [self.claude, "-p", "Do it.", "--output-format", "json", "--model", "claude-sonnet-4-5"]
        words += ["--settings", str(settings), "--allowedTools", "Bash", *more]
        with open(self.folder / "output.txt", "ab") as output:
            return subprocess.Popen(
                words, cwd=self.folder, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )

    def run(self, model, hook, url, token=gates.AGENT, meanwhile=None, more=()):
        """Runs it to its end, with something else beside it."""
        child = self.start(model, hook, url, token, more)
        beside = threading.Thread(target=meanwhile, daemon=True) if meanwhile else None
        if beside:
            beside.start()
        try:
            child.wait(timeout=120)
        except subprocess.TimeoutExpired:
            child.kill()
            raise AssertionError("Claude Code did not end") from None
        if beside:
            beside.join(timeout=30)
        if not model.results:
            raise AssertionError("the tool was never called:\n" + (self.folder / "output.txt").read_text())

    def session(self):
        """The session of the last run."""
        return json.loads((self.folder / "output.txt").read_text().splitlines()[-1])["session_id"]

    def ran(self):
        """How often the tool ran."""
        return len(self.mark.read_text().splitlines()) if self.mark.exists() else 0


def expect(case, model, ran, *words):
    """The whole outcome of a case."""
    heard = model.heard()
    if case.ran() != ran:
        raise AssertionError(f"the tool ran {case.ran()} times, not {ran}; the model was told: {heard}")
    for word in words:
        if word not in heard:
            raise AssertionError(f"the model was not told {word!r} but: {heard}")


def approve(case, gate, way):
    """An approval lets the call run, once, and is consumed."""
    with gate, Model(case.touch) as model:
        case.run(model, case.hook(way, gate.url), gate.url, meanwhile=lambda: gate.respond("approve"))
        expect(case, model, 1)
        (request,) = gate.requests()
        assert request["status"] == "approved" and request["consumed_at"], request
        assert request["agent_id"] == "claude-code" and request["tool_name"] == "Bash", request


def edited(case, gate, way):
    """A person changes the input: just that runs, once, the model hears what was changed, and what ran is on record."""
    with gate, Model(case.touch) as model:
        twice = f"{case.touch}; {case.touch}"
        change = lambda: gate.respond("approve", command=twice)
        case.run(model, case.hook(way, gate.url), gate.url, meanwhile=change)
        expect(case, model, 2)
        told = json.dumps(model.last)
        assert "Dana Kim changed /command from" in told, f"the model does not hear of it: {told}"
        (request,) = gate.requests()
        assert request["edit"]["tool_args"]["command"] == twice, request
        assert request["tool_args"]["command"] == case.touch and request["consumed_at"], request
        assert (request["outcome"] or {}).get("status") == "succeeded", request


def reject(case, gate, way):
    """A rejection blocks the call and tells the model who and why."""
    with gate, Model(case.touch) as model:
        say_no = lambda: gate.respond("reject", "change freeze until Monday")
        case.run(model, case.hook(way, gate.url), gate.url, meanwhile=say_no)
        expect(case, model, 0, "denied by Dana Kim", "change freeze until Monday", "[rejected_by_operator]")


def expire(case, gate, way):
    """Nobody answers: blocked at the rule's deadline."""
    with gate, Model(case.touch) as model:
        case.run(model, case.hook(way, gate.url), gate.url)
        expect(case, model, 0, "[expired]")


expire.timeout = "3s"


def wrong_token(case, gate, way):
    """A token that nobody knows blocks."""
    with gate, Model(case.touch) as model:
        case.run(model, case.hook(way, gate.url), gate.url, token="a-token-that-nobody-knows")
        expect(case, model, 0, "[not_authorised]")


def operators_token(case, gate, way):
    """A token that is not an agent's blocks."""
    with gate, Model(case.touch) as model:
        case.run(model, case.hook(way, gate.url), gate.url, token=gates.OPERATOR)
        expect(case, model, 0, "[not_authorised]")


def unknown_host(case, gate, way):
    """A host's name with a mistake in it blocks: as exit code 2, and as a denial."""
    with gate, Model(case.touch) as model:
        case.run(model, case.hook(way, gate.url, host="claude-kode"), gate.url)
        expect(case, model, 0)


def slow(case, gate, way):
    """Our own deadline comes before the host's: the call is left parked, and the request stays open."""
    with gate, Model(case.touch) as model:
        case.run(model, case.hook(way, gate.url, query="?hold=3", deadline=3), gate.url)
        expect(case, model, 0, "[pending]", gate.pending())


def soft_park(case, gate, way):
    """Approved after the hook gave up: the same call made again runs, exactly once."""
    with gate:
        def again():
            gate.respond("approve")
            return case.touch

        with Model(case.touch, again, case.touch) as model:
            case.run(model, case.hook(way, gate.url, query="?hold=2", deadline=2), gate.url)
            expect(case, model, 1, "[pending]")
            statuses = [request["status"] for request in gate.requests()]
            assert statuses == ["pending", "approved"], f"a third call is a new question: {statuses}"


def resumed(case, gate, way):
    """Approved after Claude Code had ended: the session is resumed, the same call is made again and runs."""
    with gate, Model(case.touch) as model:
        hook = case.hook(way, gate.url, query="?hold=2", deadline=2)
        case.run(model, hook, gate.url)
        expect(case, model, 0, "[pending]")
        gate.respond("approve")
        model.steps = (case.touch, case.touch)
        case.run(model, hook, gate.url, more=("--resume", case.session()))
        expect(case, model, 1)


def stopped(case, gate, way):
    """No server: the command denies; the HTTP hook blocks where the host honours onFailure."""
    with Model(case.touch) as model:
        case.run(model, case.hook(way, gate.url), gate.url)
        expect(case, model, 0)


def restarted(case, gate, way):
    """The server is killed and started again while people are asked: the command hook is still waiting."""

    def meanwhile():
        gate.pending()
        time.sleep(1)
        gate.kill()
        gate.start()
        gate.respond("approve")

    with gate, Model(case.touch) as model:
        case.run(model, case.hook(way, gate.url), gate.url, meanwhile=meanwhile)
        expect(case, model, 1)


def killed(case, gate, way):
    """Claude Code is killed while people are asked: the command hook withdraws the request."""
    with gate, Model(case.touch) as model:
        child = case.start(model, case.hook(way, gate.url), gate.url)
        gate.pending()
        time.sleep(1)
        child.send_signal(signal.SIGKILL)
        child.wait()
        until(lambda: gate.requests("cancelled"), 15, "the request is withdrawn")
        assert case.ran() == 0


def open_without_on_failure(case, gate, way):
    """Why the guide insists on onFailure: without it, and without a server, an HTTP hook lets the call RUN."""
    with Model(case.touch) as model:
        case.run(model, case.hook(way, gate.url, on_failure=None), gate.url)
        expect(case, model, 1)


restarted.ways = killed.ways = (COMMAND,)
open_without_on_failure.ways = (HTTP,)

CASES = [
    approve,
    edited,
    reject,
    expire,
    wrong_token,
    operators_token,
    unknown_host,
    slow,
    soft_park,
    resumed,
    stopped,
    restarted,
    killed,
    open_without_on_failure,
]


def check(claude, program, folder, only=""):
    """Runs every case both ways; tells how many failed."""
    failed = 0
    for number, case in enumerate(CASES):
        for way in getattr(case, "ways", (COMMAND, HTTP)):
            place = pathlib.Path(folder) / f"{number:02d}-{way.split()[0]}"
            name = f"{case.__name__}, {way}"
            if only not in name:
                continue
            gate = Gate(program, place / "gate", getattr(case, "timeout", "5m"))
            began = time.monotonic()
            try:
                case(Case(claude, program, place / "host"), gate, way)
                verdict = "ok"
            except AssertionError as error:
                failed += 1
                verdict = f"FAILED: {error}"
            finally:
                gate.kill()
            print(f"{name}: {verdict} ({time.monotonic() - began:.1f} s)", flush=True)
    return failed
