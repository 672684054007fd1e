"""The proxy: passes requests on to a server, and does to them what the rules say."""
import asyncio
import threading

from . import faults, wire
from .server import Server


class Seen:
    """A request that came, and what became of it."""

    def __init__(self, head):
        self.method, self.path, self.query = head.method, head.path, head.query
        self.headers = {k.lower(): v for k, v in head.headers if k.lower() != "authorization"}
        self.status = self.fault = None
        self.sent_bytes = self.got_bytes = 0

    def __repr__(self):
        fault = type(self.fault).__name__ if self.fault else "-"
        return f"{self.method} {self.path} {self.query} -> {self.status} {fault}"


class Exchange:
    """One request on one connection of a client."""

    def __init__(self, proxy, reader, writer, head):
        self.proxy, self.reader, self.writer, self.request = proxy, reader, writer, head
        self.seen = Seen(head)
        self.at = 0       # where the fault wants to act, in bytes
        self.unread = head.length != 0 and (head.length or head.get("transfer-encoding"))

    async def send(self, data):
        self.writer.write(data)
        self.seen.sent_bytes += len(data)
        await self.writer.drain()

    async def drain_request(self, head):
        """Reads the body that nobody wants."""
        if self.unread:
            await self.go_on(head)
            async for _ in wire.pieces(self.reader, head, False):
                pass
            self.unread = False

    async def go_on(self, head):
        if (head.get("expect") or "").lower() == "100-continue":
            await self.send(b"HTTP/1.1 100 Continue\r\n\r\n")

    async def respond(self, head, status, body, headers=()):
        """An answer of our own."""
        await self.drain_request(head)
        self.seen.status = status
        await self.send(wire.answer_head(status, len(body), [
            ("Content-Type", "application/xml"), *headers]).raw())
        if head.method != "HEAD":
            await self.send(body)

    def reset(self):
        wire.reset(self.writer)
        raise faults.Ended

    def close(self):
        self.writer.close()
        raise faults.Ended

    async def stall(self):
        """Until the client gives up."""
        self.proxy.stalled += 1
        while await wire.read_some(self.reader, wire.PIECE_BYTES):
            pass
        raise faults.Ended


class Proxy(Server):
    """upstream: (host, port) of the server; it may go away and come again."""

    def __init__(self, upstream, port=None):
        super().__init__()
        self.upstream, self.port = upstream, port
        self.lock = threading.Lock()
        self.rules, self.log = [], []
        self.now = self.most = self.connections = self.connections_most = self.stalled = 0

    # What tests do

    def add(self, *rules):
        with self.lock:
            self.rules += rules
        return rules[0]

    def clear(self):
        """No rules, and nothing seen."""
        with self.lock:
            self.rules, self.log = [], []
            self.most = self.now
            self.connections_most = self.connections
            self.stalled = 0

    def seen(self, method=None, path=None, query=None, status=None, without=None):
        """The requests that were so, in their order."""
        with self.lock:
            return [s for s in self.log
                    if (method is None or s.method in method.split())
                    and (path is None or path in s.path) and (query is None or query in s.query)
                    and (without is None or without not in s.query)
                    and (status is None or s.status == status)]

    def count(self, **what):
        return len(self.seen(**what))

    # What it does

    def fault_of(self, exchange):
        with self.lock:
            self.log.append(exchange.seen)
            for rule in self.rules:
                fault = rule.take(exchange.request)
                if fault:
                    return fault
        return None

    async def serve(self, reader, writer):
        self.connections += 1
        self.connections_most = max(self.connections_most, self.connections)
        server = None
        try:
            while True:
                head = await wire.Head.read(reader)
                if head is None:
                    return
                self.now += 1
                self.most = max(self.most, self.now)
                try:
                    server = await self.exchange(Exchange(self, reader, writer, head), server)
                finally:
                    self.now -= 1
                if (head.get("connection") or "").lower() == "close":
                    writer.close()
                    return
        except faults.Ended:
            pass
        finally:
            self.connections -= 1
            if server:
                server[1].transport.abort()

    async def exchange(self, exchange, server):
        """Does one; the connection to the server, for the next."""
        head = exchange.request
        fault = exchange.seen.fault = self.fault_of(exchange)
        if fault and await fault.before(exchange, head):
            return server
        for last in (False, True):
            if server is None or server[0].at_eof():
                try:
                    server = await asyncio.open_connection(*self.upstream,
                                                           limit=wire.HEAD_BYTES_MAX * 4)
                except OSError:
                    exchange.reset()
                last = True
            try:
                server[1].write(head.raw())
                await self.upload(exchange, fault, server[1])
                answer = await self.answer_of(exchange, server[0])
                break
            except (wire.Gone, OSError):
                # The server may have closed a connection that was idle: once more, if that can be.
                server = None
                if last or exchange.seen.got_bytes:
                    exchange.reset()
        return await self.give(exchange, fault, answer, server)

    async def upload(self, exchange, fault, writer):
        head = exchange.request
        if fault:
            await fault.upload(exchange, 0)
        if not exchange.unread:
            return
        await exchange.go_on(head)
        is_chunked = head.length is None
        try:
            async for piece in wire.pieces(exchange.reader, head, False):
                if getattr(fault, "flips", False) and not exchange.seen.got_bytes:
                    piece = bytes([piece[0] ^ 1]) + piece[1:]
                exchange.seen.got_bytes += len(piece)
                if fault:
                    await fault.upload(exchange, exchange.seen.got_bytes)
                writer.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n" if is_chunked
                             else piece)
                await writer.drain()
            if is_chunked:
                writer.write(b"0\r\n\r\n")
                await writer.drain()
        except ConnectionError:
            if exchange.reader.at_eof():
                raise
            # The server went away while it was sent: it may have said why.
        exchange.unread = False

    async def answer_of(self, exchange, reader):
        while True:
            answer = await wire.Head.read(reader)
            if answer is None:
                raise wire.Gone("no answer")
            if not answer.first.startswith("HTTP/"):  # Swift ends answers to HEAD with a chunk
                raise wire.Gone("no head")
            if answer.status >= 200:
                exchange.seen.status = answer.status
                return answer

    async def give(self, exchange, fault, answer, server):
        has_body = answer.has_body(exchange.request.method)
        body = wire.pieces(server[0], answer, True) if has_body else nothing()
        is_framed = answer.length is not None or not has_body
        if not is_framed:  # so that the client is told where it ends, too
            whole = b"".join([piece async for piece in body])
            answer = answer.without("transfer-encoding").with_header("Content-Length",
                                                                     str(len(whole)))
            body = nothing(whole)
        try:
            await (fault or faults.Fault()).answer(exchange, answer, body)
        except wire.Gone:
            exchange.reset()
        if (answer.get("connection") or "").lower() == "close":
            server[1].transport.abort()
            server = None
            exchange.close()
        return server


async def nothing(*some):
    for piece in some:
        yield piece
