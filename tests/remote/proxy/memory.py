"""A small S3 server that keeps its objects in memory and checks no signature: to see what a client
asks for without a cluster, and to play servers that refuse or ignore conditional PUTs.
"""
import calendar
import email.utils
import hashlib
import threading
import time
import urllib.parse
from xml.sax.saxutils import escape

from . import faults, wire
from .server import Server


class Thing:
    def __init__(self, data, meta):
        self.data, self.meta, self.time = data, meta, time.time()
        self.etag = hashlib.md5(data).hexdigest()


def meta_of(head):
    return [(k, v) for k, v in head.headers if k.lower().startswith("x-amz-meta-")]


class MemoryS3(Server):
    """conditional: "honoured", "refused" (501, as Swift) or "ignored". ahead_s: how far its clock
    is ahead of the machine's; who differs by a quarter of an hour is refused."""

    def __init__(self, conditional="honoured", page=1000, ahead_s=0):
        super().__init__()
        self.conditional, self.page, self.ahead_s = conditional, page, ahead_s
        self.skewed = 0
        self.undeletable = {}  # code by key; an InternalError is only of those that go together
        self.lock = threading.Lock()
        self.buckets, self.uploads, self.next_id = {}, {}, 1

    async def serve(self, reader, writer):
        while True:
            head = await wire.Head.read(reader)
            if head is None:
                return
            if (head.get("expect") or "").lower() == "100-continue":
                writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            body = b"".join([piece async for piece in wire.pieces(reader, head, False)])
            status, headers, out = self.handle(head, body)
            now = [("Date", email.utils.formatdate(time.time() + self.ahead_s, usegmt=True)),
                   ("x-amz-request-id", "tx1")]
            length = dict(headers).get("Content-Length", len(out))
            headers = [h for h in headers if h[0] != "Content-Length"]
            writer.write(wire.answer_head(status, length, [*now, *headers]).raw())
            if head.method != "HEAD":
                writer.write(out)
            await writer.drain()

    def handle(self, head, body):
        bucket, _, key = head.path[1:].partition("/")
        if self.is_skewed(head):
            self.skewed += 1
            return self.error(403, "RequestTimeTooSkewed")
        if "aws-chunked" in (head.get("content-encoding") or ""):
            return self.error(501, "NotImplemented")
        with self.lock:
            if not bucket:
                return 200, [], b"<ListAllMyBucketsResult/>"
            if not key:
                return self.of_bucket(head, bucket, body)
            if bucket not in self.buckets:
                return self.error(404, "NoSuchBucket")
            return self.of_object(head, self.buckets[bucket], bucket, key, body)

    def is_skewed(self, head):
        when = head.get("x-amz-date")
        if not when:
            return False
        theirs = calendar.timegm(time.strptime(when, "%Y%m%dT%H%M%SZ"))
        return abs(theirs - time.time() - self.ahead_s) > 900

    @staticmethod
    def error(status, code):
        return status, [("Content-Type", "application/xml")], faults.error_body(code)

    @staticmethod
    def xml(text):
        return 200, [("Content-Type", "application/xml")], (
            '<?xml version="1.0" encoding="UTF-8"?>\n' + text).encode()

    # Buckets

    def of_bucket(self, head, bucket, body):
        if head.method == "PUT":
            self.buckets.setdefault(bucket, {})
            return 200, [], b""
        if bucket not in self.buckets:
            return self.error(404, "NoSuchBucket")
        if head.method == "HEAD":
            return 200, [], b""
        if head.method == "POST" and "delete" in head.query:
            return self.delete_many(self.buckets[bucket], body.decode())
        if head.method == "GET" and "uploads" in head.query:
            return self.list_uploads(head.query, bucket)
        if head.method == "GET" and "location" in head.query:
            return self.xml("<LocationConstraint/>")
        if head.method == "GET":
            return self.list(head.query, self.buckets[bucket])
        return self.error(501, "NotImplemented")

    def delete_many(self, things, body):
        done = []
        for part in body.split("<Key>")[1:]:
            key = part.partition("</Key>")[0]
            for name, char in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&apos;", "'"),
                               ("&amp;", "&")):
                key = key.replace(name, char)
            if key in self.undeletable:
                done.append(f"<Error><Key>{escape(key)}</Key><Code>{self.undeletable[key]}</Code>"
                            "<Message>as the test wants it</Message></Error>")
                continue
            things.pop(key, None)
            done.append(f"<Deleted><Key>{escape(key)}</Key></Deleted>")
        return self.xml("<DeleteResult>" + "".join(done) + "</DeleteResult>")

    def list(self, query, things):
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        after = query.get("continuation-token") or query.get("start-after") or ""
        most = min(int(query.get("max-keys", self.page)), self.page)
        name = urllib.parse.quote if query.get("encoding-type") == "url" else escape
        out, last, groups, more = [], after, set(), False
        for key in sorted(things):
            if not key.startswith(prefix) or key <= after:
                continue
            head, found, _ = key[len(prefix):].partition(delimiter) if delimiter else ("", "", "")
            group = prefix + head + found if found else None
            if group and (group in groups or group <= after):
                continue
            if len(out) == most:
                more = True
                break
            last = group + "\U0010ffff" if group else key
            if group:
                groups.add(group)
                out.append(f"<CommonPrefixes><Prefix>{name(group)}</Prefix></CommonPrefixes>")
                continue
            thing = things[key]
            when = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(thing.time))
            out.append(f"<Contents><Key>{name(key)}</Key><LastModified>{when}</LastModified>"
                       f"<ETag>&quot;{thing.etag}&quot;</ETag><Size>{len(thing.data)}</Size>"
                       "</Contents>")
        token = f"<NextContinuationToken>{name(last)}</NextContinuationToken>" if more else ""
        kind = "<EncodingType>url</EncodingType>" if name is urllib.parse.quote else ""
        return self.xml(f"<ListBucketResult><Prefix>{name(prefix)}</Prefix>{kind}"
                        f"<KeyCount>{len(out)}</KeyCount><MaxKeys>{most}</MaxKeys>"
                        f"<IsTruncated>{str(more).lower()}</IsTruncated>{token}{''.join(out)}"
                        "</ListBucketResult>")

    def list_uploads(self, query, bucket):
        out = []
        for number, (where, key, _, since, _) in sorted(self.uploads.items()):
            if where == bucket and key.startswith(query.get("prefix", "")):
                when = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(since))
                out.append(f"<Upload><Key>{escape(key)}</Key><UploadId>{number}</UploadId>"
                           f"<Initiated>{when}</Initiated></Upload>")
        return self.xml("<ListMultipartUploadsResult><IsTruncated>false</IsTruncated>"
                        f"{''.join(out)}</ListMultipartUploadsResult>")

    # Objects

    def of_object(self, head, things, bucket, key, body):
        query = head.query
        if head.method == "POST" and "uploads" in query:
            number = str(self.next_id)
            self.next_id += 1
            self.uploads[number] = (bucket, key, {}, time.time(), meta_of(head))
            return self.xml(f"<InitiateMultipartUploadResult><Bucket>{bucket}</Bucket>"
                            f"<Key>{escape(key)}</Key><UploadId>{number}</UploadId>"
                            "</InitiateMultipartUploadResult>")
        if "uploadId" in query:
            return self.of_upload(head, things, key, query, body)
        if head.method == "PUT":
            return self.put(head, things, key, body)
        if head.method == "DELETE":
            things.pop(key, None)
            return 204, [], b""
        if key not in things:
            return self.error(404, "NoSuchKey")
        return self.get(head, things[key])

    def refusal(self, head, thing):
        """Of a PUT, by its conditions."""
        if self.conditional == "ignored":
            return None
        none_match, match = head.get("if-none-match"), head.get("if-match")
        if (none_match or match) and self.conditional == "refused":
            return self.error(501, "NotImplemented")
        if none_match and thing:
            return self.error(412, "PreconditionFailed")
        if match and not thing:
            return self.error(404, "NoSuchKey")
        if match and match.strip('"') != thing.etag:
            return self.error(412, "PreconditionFailed")
        return None

    def put(self, head, things, key, body):
        refusal = self.refusal(head, things.get(key))
        if refusal:
            return refusal
        things[key] = Thing(body, meta_of(head))
        return 200, [("ETag", f'"{things[key].etag}"')], b""

    def get(self, head, thing):
        match = head.get("if-match")
        if match and match.strip('"') != thing.etag:
            return self.error(412, "PreconditionFailed")
        when = email.utils.formatdate(thing.time, usegmt=True)
        headers = [("ETag", f'"{thing.etag}"'), ("Last-Modified", when),
                   ("Accept-Ranges", "bytes"), *thing.meta]
        size, wanted = len(thing.data), head.get("range")
        if not wanted:
            return 200, [*headers, ("Content-Length", size)], thing.data
        first, _, last = wanted.partition("=")[2].partition("-")
        if not first:
            first, last = max(size - int(last), 0), size - 1
        first, last = int(first), min(int(last) if last else size - 1, size - 1)
        if first >= size:
            return self.error(416, "InvalidRange")
        return 206, [*headers, ("Content-Range", f"bytes {first}-{last}/{size}")], \
            thing.data[first:last + 1]

    def of_upload(self, head, things, key, query, body):
        if query["uploadId"] not in self.uploads:
            return self.error(404, "NoSuchUpload")
        _, _, parts, _, meta = self.uploads[query["uploadId"]]
        if head.method == "PUT":
            parts[int(query["partNumber"])] = body
            return 200, [("ETag", f'"{hashlib.md5(body).hexdigest()}"')], b""
        if head.method == "DELETE":
            del self.uploads[query["uploadId"]]
            return 204, [], b""
        if head.method == "POST":
            refusal = self.refusal(head, things.get(key))
            if refusal:
                return refusal
            numbers = [int(part.partition("<")[0])
                       for part in body.decode().split("<PartNumber>")[1:]]
            if not numbers or any(n not in parts for n in numbers):
                return self.error(400, "InvalidPart")
            things[key] = Thing(b"".join(parts[n] for n in numbers), meta)
            sums = b"".join(hashlib.md5(parts[n]).digest() for n in numbers)
            things[key].etag = f"{hashlib.md5(sums).hexdigest()}-{len(numbers)}"
            del self.uploads[query["uploadId"]]
            return self.xml(f"<CompleteMultipartUploadResult><Key>{escape(key)}</Key><ETag>&quot;"
                            f"{things[key].etag}&quot;</ETag></CompleteMultipartUploadResult>")
        return self.error(501, "NotImplemented")
