"""One measurement of boto3, in a process of its own, for bench/remote.py; prints one line of JSON.

    remote_work.py get|put|sign ENDPOINT BUCKET KEY BYTES OPTIONS

OPTIONS is JSON: threads, chunk (bytes), file (what is put). A get goes to memory that was there
before; a put comes from a file in memory. What takes time before the first request, the import of
the library above all, is not counted.
"""
import io
import json
import resource
import sys
import threading
import time

import boto3
from boto3.s3.transfer import TransferConfig
from botocore.config import Config


class Memory(io.RawIOBase):
    """Takes what is written anywhere in it, as a file would."""

    def __init__(self, size):
        self.view = memoryview(bytearray(size))
        self.at, self.lock = 0, threading.Lock()

    def seekable(self):
        return True

    def writable(self):
        return True

    def seek(self, offset, whence=0):
        self.at = offset
        return offset

    def tell(self):
        return self.at

    def write(self, data):
        self.view[self.at:self.at + len(data)] = data
        self.at += len(data)
        return len(data)


def cpu_s():
    use = resource.getrusage(resource.RUSAGE_SELF)
    return use.ru_utime + use.ru_stime


def main():
    job, endpoint, bucket, key, size, options = sys.argv[1:]
    options = json.loads(options)
    threads = options.get("threads", 10)
    client = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1",
                          config=Config(max_pool_connections=max(threads, 10)))
    if job == "sign":  # for who cannot sign: valid for an hour
        print(json.dumps(client.generate_presigned_url("get_object",
                                                       {"Bucket": bucket, "Key": key})))
        return
    config = TransferConfig(max_concurrency=threads, multipart_chunksize=options["chunk"],
                            multipart_threshold=options["chunk"])
    client.head_bucket(Bucket=bucket)
    memory = Memory(int(size)) if job == "get" else None
    wall, cpu = time.monotonic(), cpu_s()
    if job == "get":
        client.download_fileobj(bucket, key, memory, Config=config)
    else:
        client.upload_file(options["file"], bucket, key, Config=config)
    print(json.dumps({"bytes": int(size), "seconds": time.monotonic() - wall,
                      "cpu_seconds": cpu_s() - cpu}))


main()
