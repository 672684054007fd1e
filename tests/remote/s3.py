"""A small S3 client for tests, which shares nothing with the one they test: buckets are made with
it, and what ours wrote is looked at from outside. Signature version 4, one connection a request.
"""
import datetime
import hashlib
import hmac
import http.client
import ssl
import urllib.parse


class Client:
    def __init__(self, endpoint, access_key, secret_key, ca=None, region="us-east-1"):
        self.url = urllib.parse.urlsplit(endpoint)
        self.keys = access_key, secret_key
        self.region = region
        self.tls = ssl.create_default_context(cafile=ca) if ca else None

    def connect(self):
        if self.url.scheme == "https":
            return http.client.HTTPSConnection(self.url.netloc, timeout=60, context=self.tls)
        return http.client.HTTPConnection(self.url.netloc, timeout=60)

    def sign(self, method, path, query, headers, now):
        """The Authorization header of a request with just these headers."""
        day, when = now[:8], now
        names = ";".join(sorted(name.lower() for name in headers))
        lines = "".join(f"{name.lower()}:{headers[name]}\n"
                        for name in sorted(headers, key=str.lower))
        text = "\n".join([method, path, query, lines, names, headers["x-amz-content-sha256"]])
        scope = f"{day}/{self.region}/s3/aws4_request"
        digest = hashlib.sha256(text.encode()).hexdigest()
        key = ("AWS4" + self.keys[1]).encode()
        for word in [*scope.split("/"), f"AWS4-HMAC-SHA256\n{when}\n{scope}\n{digest}"]:
            key = hmac.new(key, word.encode(), hashlib.sha256).digest()
        return (f"AWS4-HMAC-SHA256 Credential={self.keys[0]}/{scope}, SignedHeaders={names}, "
                f"Signature={key.hex()}")

    def request(self, method, path, query=None, headers=None, body=b""):
        """(status, headers, body). path is /bucket/key, not quoted."""
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
        path = urllib.parse.quote(path)
        query = urllib.parse.urlencode(sorted((query or {}).items()), quote_via=urllib.parse.quote)
        all_headers = {"host": self.url.netloc, "x-amz-date": now,
                       "x-amz-content-sha256": hashlib.sha256(body).hexdigest(), **(headers or {})}
        all_headers["authorization"] = self.sign(method, path, query, all_headers, now)
        connection = self.connect()
        try:
            connection.request(method, path + ("?" + query if query else ""), body, all_headers)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def make_bucket(self, name):
        status, _, body = self.request("PUT", f"/{name}")
        assert status in (200, 204, 409), (status, body)
