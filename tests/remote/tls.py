"""A certificate authority of the tests' own, and a certificate for loopback that it signed."""
import subprocess


def openssl(where, *words):
    done = subprocess.run(["openssl", *words], cwd=where, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise RuntimeError(f"openssl {words[0]}: {done.stdout}")


def make(where):
    """ca.pem, server.pem and server.key in the directory; valid for two days."""
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    openssl(where, "req", "-x509", *curve, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2",
            "-subj", "/CN=Weir test authority", "-addext", "keyUsage=critical,keyCertSign")
    openssl(where, "req", *curve, "-keyout", "server.key", "-out", "server.csr",
            "-subj", "/CN=localhost")
    (where / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    openssl(where, "x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key",
            "-CAcreateserial", "-days", "2", "-extfile", "names", "-out", "server.pem")
