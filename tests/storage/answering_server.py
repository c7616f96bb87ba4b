"""An HTTP server on loopback that answers as a test tells it to."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HANG = 0
"""In place of a status: no answer until the server stops."""
RESET = -1
"""In place of a status: the connection is closed without an answer."""


@dataclass
class AnsweringServer:
    """Gives the statuses of its script in order, the last one for ever; keeps what it was asked."""

    statuses: list[int]
    body: bytes = b""
    url: str = ""
    requests: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    """(method, path, headers in lower case) of each request."""
    stopping: threading.Event = field(default_factory=threading.Event)

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        length = int(request.headers.get("content-length") or 0)
        request.rfile.read(length)
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.requests.append((request.command, request.path, headers))
        status = self.statuses[min(len(self.requests), len(self.statuses)) - 1]
        if status == HANG:
            self.stopping.wait(60)
        if status in (HANG, RESET):
            request.close_connection = True
            return
        request.send_response(status)
        request.send_header("Content-Length", str(len(self.body)))
        request.send_header("ETag", '"x"')
        request.send_header("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")
        request.end_headers()
        request.wfile.write(self.body)


@contextmanager
def answering(*statuses: int, body: bytes = b"") -> Iterator[AnsweringServer]:
    """The server, running on a free port."""
    script = AnsweringServer(list(statuses), body)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do_PUT(self) -> None:
            script.answer(self)

        def do_GET(self) -> None:
            script.answer(self)

        def do_HEAD(self) -> None:
            script.answer(self)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        script.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield script
        finally:
            script.stopping.set()
            server.shutdown()
            thread.join()
