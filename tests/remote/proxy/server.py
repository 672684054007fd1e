"""A server on loopback that lives on a thread of its own."""
import asyncio
import threading

from . import wire


class Server:
    """Calls serve(reader, writer) for each connection; a context manager."""

    def __init__(self):
        self.port, self.loop = None, asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.ready = threading.Event()
        self.tasks = set()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self):
        self.thread.start()
        self.ready.wait()
        return self

    def __exit__(self, *_):
        self.loop.call_soon_threadsafe(self.stopping.set)
        self.thread.join()

    def run(self):
        asyncio.set_event_loop(self.loop)
        self.loop.run_until_complete(self.main())
        self.loop.close()

    async def main(self):
        self.stopping = asyncio.Event()
        server = await asyncio.start_server(self.connected, "127.0.0.1", self.port or 0,
                                            limit=wire.HEAD_BYTES_MAX * 4, backlog=1024)
        self.port = server.sockets[0].getsockname()[1]
        self.ready.set()
        await self.stopping.wait()
        server.close()
        for task in list(self.tasks):
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    async def connected(self, reader, writer):
        task = asyncio.current_task()
        self.tasks.add(task)
        try:
            await self.serve(reader, writer)
        except (wire.Gone, OSError, asyncio.CancelledError):
            pass
        finally:
            self.tasks.discard(task)
            writer.transport.abort()
