"""What a proxy can do to a request or to its answer. Each is one small class; the proxy asks it at
three places:

  before(exchange, head)        before anything goes to the server; True: the request is done with
  upload(exchange, offset)      as bytes of the request's body pass; may wait, or end the connection
  answer(exchange, head, body)  the answer, as an iterator of what is sent and of what is done
"""
import asyncio

from . import wire

# Where in a message something happens.
HEAD, BETWEEN, FIRST, MIDDLE, LAST = PLACES = ("head", "between", "first", "middle", "last")


class Ended(Exception):
    """The fault has ended the connection, as it wanted."""


def place_of(where, length):
    """The number of bytes of a body before that place."""
    return {BETWEEN: 0, FIRST: min(1, length), MIDDLE: length // 2, LAST: max(length - 1, 0)}[where]


def error_body(code, text="as the test wants it", more=""):
    return (f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code>'
            f"<Message>{text}</Message>{more}<RequestId>1</RequestId></Error>").encode()


class Fault:
    reads_body = True  # the request's body is read before an answer of our own

    async def before(self, exchange, head):
        return False

    async def upload(self, exchange, offset):
        pass

    async def answer(self, exchange, head, body):
        """The default: as it came."""
        await exchange.send(head.raw())
        async for piece in body:
            await exchange.send(piece)


class Error(Fault):
    """Answers an error, at once or later; the server never sees the request."""

    def __init__(self, status, code="InternalError", headers=(), more="", after_s=0):
        self.status, self.code, self.headers, self.more = status, code, headers, more
        self.after_s = after_s

    async def before(self, exchange, head):
        await asyncio.sleep(self.after_s)
        body = error_body(self.code, more=self.more)
        await exchange.respond(head, self.status, body, self.headers)
        return True


class ErrorInside(Fault):
    """200, but the body is an error: as CompleteMultipartUpload and CopyObject may answer."""

    def __init__(self, code="InternalError"):
        self.code = code

    async def before(self, exchange, head):
        await exchange.respond(head, 200, error_body(self.code))
        return True


class Answer(Fault):
    """Answers with this; the server never sees the request."""

    def __init__(self, status, body=b"", headers=()):
        self.status, self.body, self.headers = status, body, headers

    async def before(self, exchange, head):
        await exchange.respond(head, self.status, self.body, self.headers)
        return True


class Redirect(Fault):
    """To itself, or elsewhere, for as long as somebody follows."""

    def __init__(self, status=307, where=None):
        self.status, self.where = status, where

    async def before(self, exchange, head):
        where = self.where or f"http://{head.get('host')}{head.target}"
        await exchange.respond(head, self.status, error_body("TemporaryRedirect"),
                               [("Location", where)])
        return True


class WrongRegion(Error):
    """It says which is the right one: in a header, too, since an answer to HEAD has no body."""

    def __init__(self, region):
        super().__init__(400, "AuthorizationHeaderMalformed", more=f"<Region>{region}</Region>",
                         headers=[("x-amz-bucket-region", region)])


class Lose(Fault):
    """The server does it; the client never hears of it."""

    async def answer(self, exchange, head, body):
        async for _ in body:
            pass
        exchange.reset()


class LoseByError(Fault):
    """The server does it; the client hears of a failure."""

    def __init__(self, status=500, code="InternalError"):
        self.status, self.code = status, code

    async def answer(self, exchange, head, body):
        async for _ in body:
            pass
        await exchange.respond(exchange.request, self.status, error_body(self.code))


class ResetAnswer(Fault):
    """Ends the connection in the answer. Without a body all places but the head are its end."""

    def __init__(self, where, politely=False):
        self.where, self.politely = where, politely

    async def answer(self, exchange, head, body):
        raw = head.raw()
        if self.where == HEAD:
            await exchange.send(raw[:len(raw) // 2])
            self.end(exchange)
        await exchange.send(raw)
        left = place_of(self.where, head.length or 0)
        async for piece in body:
            await exchange.send(piece[:left])
            left -= len(piece[:left])
            if not left:
                break
        self.end(exchange)

    def end(self, exchange):
        if self.politely:
            exchange.close()
        exchange.reset()


class ResetUpload(Fault):
    """Ends the connection in the request: after its head, or within its body."""

    def __init__(self, where):
        self.where = where

    async def before(self, exchange, head):
        exchange.at = place_of(self.where, head.length or 0) if self.where != HEAD else 0
        if not exchange.at:
            exchange.reset()
        return False

    async def upload(self, exchange, offset):
        if offset >= exchange.at:
            exchange.reset()


class Truncate(Fault):
    """The head promises all; the connection ends early, politely."""

    def __init__(self, missing=1):
        self.missing = missing

    async def answer(self, exchange, head, body):
        left = max((head.length or 0) - self.missing, 0)
        await exchange.send(head.raw())
        async for piece in body:
            await exchange.send(piece[:left])
            left -= len(piece[:left])
        exchange.close()


class TwoLengths(Fault):
    """In chunks, and with a length all the same, which then says nothing: HTTP lets it pass."""

    async def answer(self, exchange, head, body):
        all_bytes = b"".join([piece async for piece in body])
        if not all_bytes:
            await exchange.send(head.raw())
            return
        await exchange.send(head.without("transfer-encoding").with_header("Content-Length", "1")
                            .with_header("Transfer-Encoding", "chunked").raw())
        await exchange.send(f"{len(all_bytes):x}\r\n".encode() + all_bytes + b"\r\n0\r\n\r\n")


class Shorten(Fault):
    """Less than there is, with a length that fits it: nothing on the wire tells."""

    def __init__(self, missing=1):
        self.missing = missing

    async def answer(self, exchange, head, body):
        all_bytes = b"".join([piece async for piece in body])
        kept = all_bytes[:max(len(all_bytes) - self.missing, 0)]
        await exchange.send(head.without("transfer-encoding")
                            .with_header("Content-Length", str(len(kept))).raw())
        await exchange.send(kept)


class Flip(Fault):
    """One bit of the answer's body; at: a byte, from the end where it is negative."""

    def __init__(self, at=0):
        self.at = at

    async def answer(self, exchange, head, body):
        all_bytes = bytearray(b"".join([piece async for piece in body]))
        if all_bytes:
            all_bytes[self.at % len(all_bytes)] ^= 0x10
        await exchange.send(head.without("transfer-encoding")
                            .with_header("Content-Length", str(len(all_bytes))).raw())
        await exchange.send(bytes(all_bytes))


class FlipUpload(Fault):
    """One bit of the request's body, on its way to the server."""

    flips = True


class Rewrite(Fault):
    """The answer's body goes through a function: XML that lies."""

    def __init__(self, change):
        self.change = change

    async def answer(self, exchange, head, body):
        changed = self.change(b"".join([piece async for piece in body]))
        await exchange.send(head.without("transfer-encoding")
                            .with_header("Content-Length", str(len(changed))).raw())
        await exchange.send(changed)


class Endless(Fault):
    """A body in chunks that never ends: `again` for as long as the client takes it."""

    def __init__(self, begin, again):
        self.begin, self.again = begin, again * max(1, 65536 // len(again))
        self.sent = 0

    async def before(self, exchange, head):
        await exchange.drain_request(head)
        await exchange.send(wire.Head("HTTP/1.1 200 OK", [
            ("Content-Type", "application/xml"), ("Transfer-Encoding", "chunked")]).raw())
        piece = self.begin
        while True:
            await exchange.send(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
            self.sent += len(piece)
            piece = self.again


class Stall(Fault):
    """Says nothing more, until the client gives up or the proxy closes: before the head, in the
    body (`where` of it), or while it uploads (`upload`)."""

    def __init__(self, where=HEAD, upload=False):
        self.where, self.is_upload = where, upload

    async def before(self, exchange, head):
        exchange.at = place_of(self.where, head.length or 0) if self.where != HEAD else 0
        return False

    async def upload(self, exchange, offset):
        if self.is_upload and offset >= exchange.at:
            await exchange.stall()

    async def answer(self, exchange, head, body):
        if self.where == HEAD:
            await exchange.stall()
        await exchange.send(head.raw())
        left = place_of(self.where, head.length or 0)
        async for piece in body:
            await exchange.send(piece[:left])
            left -= len(piece[:left])
            if not left:
                await exchange.stall()
        await exchange.stall()


class Trickle(Fault):
    """The body, a few bytes at a time."""

    def __init__(self, size=1, seconds=0.2):
        self.size, self.seconds = size, seconds

    async def answer(self, exchange, head, body):
        await exchange.send(head.raw())
        async for piece in body:
            for at in range(0, len(piece), self.size):
                await exchange.send(piece[at:at + self.size])
                await asyncio.sleep(self.seconds)


class Delay(Fault):
    """Everything as it should be, later."""

    def __init__(self, seconds):
        self.seconds = seconds

    async def before(self, exchange, head):
        await asyncio.sleep(self.seconds)
        return False


class Header(Fault):
    """Changes a header of the answer; value None takes it away."""

    def __init__(self, name, value):
        self.name, self.value = name, value

    async def answer(self, exchange, head, body):
        head = head.without(self.name.lower())
        if self.value is not None:
            head.headers.append((self.name, self.value))
        await exchange.send(head.raw())
        async for piece in body:
            await exchange.send(piece)


class Call(Fault):
    """Calls a function, on a thread of its own, when the request's body has come so far, or when
    the answer has (`where`): to kill a server at that moment. Then goes on."""

    def __init__(self, function, where=MIDDLE, upload=False):
        self.function, self.where, self.is_upload = function, where, upload
        self.called = False

    async def call(self):
        if not self.called:
            self.called = True
            await asyncio.get_running_loop().run_in_executor(None, self.function)

    async def before(self, exchange, head):
        exchange.at = place_of(self.where, head.length or 0)
        return False

    async def upload(self, exchange, offset):
        if self.is_upload and offset >= exchange.at:
            await self.call()

    async def answer(self, exchange, head, body):
        await exchange.send(head.raw())
        at, offset = place_of(self.where, head.length or 0), 0
        async for piece in body:
            await exchange.send(piece)
            offset += len(piece)
            if not self.is_upload and offset >= at:
                await self.call()
