"""HTTP/1.1 as far as S3 clients and servers speak it: heads, bodies with a length or in chunks."""
import asyncio
import socket
import struct
import urllib.parse

HEAD_BYTES_MAX = 64 << 10
PIECE_BYTES = 128 << 10
NO_BODY = (204, 304)


class Gone(Exception):
    """The other side closed, or what it said is no HTTP."""


class Head:
    """The first line and the headers of a request or an answer."""

    def __init__(self, first, headers):
        self.first, self.headers = first, headers

    @classmethod
    async def read(cls, reader):
        """None when the other side closed before the first byte."""
        try:
            raw = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError as error:
            if not error.partial:
                return None
            raise Gone("closed within a head") from error
        except (asyncio.LimitOverrunError, OSError) as error:
            raise Gone(str(error)) from error
        first, *lines = raw[:-4].decode("latin-1").split("\r\n")
        headers = []
        for line in lines:
            name, _, value = line.partition(":")
            headers.append((name, value.strip()))
        return cls(first, headers)

    def get(self, name, other=None):
        for key, value in self.headers:
            if key.lower() == name:
                return value
        return other

    def without(self, *names):
        return Head(self.first, [(k, v) for k, v in self.headers if k.lower() not in names])

    def with_header(self, name, value):
        head = self.without(name.lower())
        head.headers.append((name, value))
        return head

    def raw(self):
        lines = [self.first, *(f"{k}: {v}" for k, v in self.headers)]
        return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"

    # Of a request

    @property
    def method(self):
        return self.first.split(" ", 1)[0]

    @property
    def target(self):
        return self.first.split(" ")[1]

    @property
    def path(self):
        return urllib.parse.unquote(self.target.partition("?")[0])

    @property
    def query(self):
        return dict(urllib.parse.parse_qsl(self.target.partition("?")[2], keep_blank_values=True))

    # Of an answer

    @property
    def status(self):
        return int(self.first.split(" ")[1])

    def has_body(self, method):
        return method != "HEAD" and self.status >= 200 and self.status not in NO_BODY

    # Of both

    @property
    def length(self):
        """Of the body; None: it comes in chunks, or to the end of the connection."""
        if "chunked" in (self.get("transfer-encoding") or ""):
            return None
        length = self.get("content-length")
        return int(length) if length is not None else None


def answer_head(status, length, headers=()):
    return Head(f"HTTP/1.1 {status} {'OK' if status < 300 else 'No'}",
                [("Content-Length", str(length)), *headers])


async def pieces(reader, head, is_answer):
    """The body as it comes; chunks without their frames."""
    if "chunked" in (head.get("transfer-encoding") or ""):
        async for piece in chunks(reader):
            yield piece
        return
    left = head.length
    if left is None and not is_answer:
        return
    while left is None or left:
        piece = await read_some(reader, PIECE_BYTES if left is None else min(left, PIECE_BYTES))
        if not piece:
            if left is None:
                return
            raise Gone("closed within a body")
        if left is not None:
            left -= len(piece)
        yield piece


async def chunks(reader):
    while True:
        line = await reader.readline()
        if not line:
            raise Gone("closed within chunks")
        left = int(line.split(b";")[0], 16)
        if not left:
            while (await reader.readline()).strip():
                pass
            return
        while left:
            piece = await read_some(reader, min(left, PIECE_BYTES))
            if not piece:
                raise Gone("closed within a chunk")
            left -= len(piece)
            yield piece
        await reader.readline()


async def read_some(reader, size):
    try:
        return await reader.read(size)
    except OSError as error:
        raise Gone(str(error)) from error


def reset(writer):
    """Ends a connection as a crash does: the other side sees ECONNRESET."""
    sock = writer.get_extra_info("socket")
    if sock is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
