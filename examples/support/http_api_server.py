"""The API server double behind a socket, so that real clients can talk to it.

    with HttpApiServer(ApiServer()) as shell:
        configuration.host = shell.url

Everything about HTTP that is not a socket is ``dra_core.testing.http_api``. All requests
go through one lock; a watch looks for changes every few milliseconds, and later by
``watch_delay``.
"""

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from dra_core.api.request import ApiRequest
from dra_core.testing import http_api
from dra_core.testing.api_server import ApiServer
from dra_core.testing.server_answers import RefusedError
from dra_core.testing.watch import Watch

POLL_SECONDS = 0.005

Send = Callable[[ApiRequest], tuple[int | None, Any]]


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    # The default of 5 turns clients away when a busy machine accepts them late.
    request_queue_size = 128


class HttpApiServer:
    """Serves ``server`` on a free port of the loopback interface while it is entered.

    ``send`` stands between clients and the server (``FaultyServer.send``). ``lock`` is held
    for every request; take it to use the server directly meanwhile. ``watch_delay`` is how
    many seconds watches lag behind.
    """

    def __init__(
        self, server: ApiServer, send: Send | None = None, *, watch_delay: float = 0.0
    ) -> None:
        self.server = server
        self.send = send
        self.watch_delay = watch_delay
        self.lock = threading.RLock()
        self.stopping = threading.Event()
        self._http = _Listener(("127.0.0.1", 0), _handler_for(self))
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True)

    @property
    def url(self) -> str:
        """Where it listens: ``http://127.0.0.1:…``."""
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def __enter__(self) -> "HttpApiServer":
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stopping.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


def _handler_for(shell: HttpApiServer) -> type[BaseHTTPRequestHandler]:
    class Handler(_Handler):
        api = shell

    return Handler


class _Handler(BaseHTTPRequestHandler):
    api: HttpApiServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def _answer(self) -> None:
        parts = urlsplit(self.path)
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        headers = {name.lower(): value for name, value in self.headers.items()}
        body = self.rfile.read(int(headers.get("content-length") or 0))
        with self.api.lock:
            answer = http_api.handle(
                self.api.server, self.command, parts.path, query, headers, body, send=self.api.send
            )
        if answer.status is None:
            self.close_connection = True
            return
        self.send_response(answer.status)
        self.send_header("Content-Type", "application/json")
        if answer.watch is not None:
            self._stream(answer.watch, float(query.get("timeoutSeconds") or 3600))
            return
        self.send_header("Content-Length", str(len(answer.content)))
        self.end_headers()
        self.wfile.write(answer.content)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer  # noqa: N815

    def _stream(self, watch: Watch, seconds: float) -> None:
        """Show changes, one a line, until the client goes, time is up, or we stop."""
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.close_connection = True
        polls = int(seconds / POLL_SECONDS)
        try:
            for _ in range(polls):
                lines, ended = self._lines(watch)
                if lines and self.api.watch_delay:
                    self.api.stopping.wait(self.api.watch_delay)
                if lines:
                    self.wfile.write(b"%x\r\n%b\r\n" % (len(lines), lines))
                    self.wfile.flush()
                if ended or self.api.stopping.wait(POLL_SECONDS):
                    break
            self.wfile.write(b"0\r\n\r\n")
        except ConnectionError:
            pass  # the client has seen enough

    def _lines(self, watch: Watch) -> tuple[bytes, bool]:
        """What there is to show now, and whether that is all there will be."""
        with self.api.lock:
            try:
                return b"".join(map(http_api.watch_line, watch.poll())), False
            except RefusedError as refused:
                return http_api.expired_line(refused), True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Requests are not worth a line."""
