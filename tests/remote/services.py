"""Small loopback services that hand out credentials, or lie: each path is a function of the request
that answers (status, body) or (status, body, headers).
"""
import datetime
import http.server
import json
import threading

SECRET = "s3cr3t"  # part of every secret here, so that texts can be searched for it


def iso(seconds, now=None):
    """That many seconds from now, as AWS writes it."""
    now = now or datetime.datetime.now(datetime.timezone.utc)
    return (now + datetime.timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def keys(name, life=3600, token="Token", **more):
    """A set as containers and instances hand it out."""
    return {"AccessKeyId": name, "SecretAccessKey": f"{SECRET}-of-{name}",
            token: f"{SECRET}-token-of-{name}", "Expiration": iso(life), **more}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def serve(self):
        size = int(self.headers.get("Content-Length") or 0)
        self.body = self.rfile.read(size)
        service = self.server.service
        with service.lock:
            service.requests.append((self.command, self.path, dict(self.headers), self.body))
            service.busy += 1
            service.busiest = max(service.busiest, service.busy)
        try:
            answer = service.answer(self)
        finally:
            with service.lock:
                service.busy -= 1
        if answer is None:  # say nothing, and hang up
            self.close_connection = True
            return
        status, body, *headers = answer
        body = json.dumps(body) if isinstance(body, dict) else body
        body = body.encode() if isinstance(body, str) else body
        headers = dict(headers[0]) if headers else {}
        self.send_response_only(status)
        self.send_header("Date", headers.pop("Date", self.date_time_string()))
        self.send_header("Content-Length", headers.pop("Content-Length", str(len(body))))
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        try:
            self.wfile.write(body)
        except OSError:
            pass  # it has heard enough

    do_GET = do_PUT = do_POST = serve

    def log_message(self, *args):
        pass


class Service:
    """with Service(answer) as service: … service.url, service.requests …"""

    def __init__(self, answer, tls=None):
        self.answer = answer
        self.lock = threading.Lock()
        self.requests, self.busy, self.busiest = [], 0, 0
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.service = self
        if tls:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        scheme = "https" if tls else "http"
        self.url = f"{scheme}://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={
            "poll_interval": 0.05})

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()
