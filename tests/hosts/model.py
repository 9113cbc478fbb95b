"""A model on loopback that wants exactly the tool calls that a test tells it to want.

It speaks as much of the Anthropic Messages API as Claude Code needs. Every conversation that offers tools goes through the
steps of the test: one step for each answer the model has already given. A step is a shell command (one call of the tool
`Bash`) or a function, which is called first and returns the command. After the last step the model is content.
"""

import http.server
import json
import threading


class Model:
    """Serves on a free port while it is used as a context."""

    def __init__(self, *steps):
        self.steps = steps
        self.results = []
        self.last = {}
        handler = type("Handler", (_Handler,), {"model": self})
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def heard(self):
        """Everything that the host reported back as results of calls, as one text."""
        return "\n".join(self.results)

    def answer(self, request):
        """The content of the next message, and why it ends."""
        messages = request.get("messages", [])
        self.last = request if request.get("tools") else self.last
        blocks = [
            (message.get("role"), block)
            for message in messages
            if isinstance(message.get("content"), list)
            for block in message["content"]
        ]
        self.results = [json.dumps(block.get("content")) for _, block in blocks if block.get("type") == "tool_result"]
        given = sum(1 for role, block in blocks if role == "assistant" and block.get("type") == "tool_use")
        if not request.get("tools") or given >= len(self.steps):
            return {"type": "text", "text": "Done."}, "end_turn"
        step = self.steps[given]
        command = step() if callable(step) else step
        call = {
            "type": "tool_use",
            "id": f"toolu_test{given:04d}",
            "name": "Bash",
            "input": {"command": command, "description": "A step of the test"},
        }
        return call, "tool_use"


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self._send(200, "text/plain", b"")

    def do_GET(self):
        self._send(404, "application/json", b"{}")

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
        path = self.path.split("?")[0]
        if path.endswith("/count_tokens"):
            self._send(200, "application/json", b'{"input_tokens": 1}')
        elif path.endswith("/messages"):
            self._message(body)
        else:
            self._send(404, "application/json", b"{}")

    def _message(self, request):
        block, stop = self.model.answer(request)
        message = {
            "id": "msg_test",
            "type": "message",
            "role": "assistant",
            "model": request.get("model", "test"),
            "content": [block],
            "stop_reason": stop,
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
        if not request.get("stream"):
            self._send(200, "application/json", json.dumps(message).encode())
            return
        if block["type"] == "text":
            empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            empty = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        begun = {**message, "content": [], "stop_reason": None}
        events = [
            {"type": "message_start", "message": begun},
            {"type": "content_block_start", "index": 0, "content_block": empty},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {
                "type": "message_delta",
                "delta": {"stop_reason": stop, "stop_sequence": None},
                "usage": {"output_tokens": 1},
            },
            {"type": "message_stop"},
        ]
        stream = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
        self._send(200, "text/event-stream", stream.encode())

    def _send(self, status, kind, body):
        try:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        except (BrokenPipeError, ConnectionResetError):
            pass  # the host was killed, which some tests do
