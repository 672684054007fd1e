"""A small S3 proxy that misbehaves on demand, and a small S3 server to put behind it.

    from proxy import Proxy, Rule, faults
    with Proxy(("127.0.0.1", port_of_a_real_server)) as proxy:
        proxy.add(Rule(faults.Error(503, "SlowDown"), method="GET", times=3))
        ...                     # the client's endpoint is proxy.url
        assert proxy.count(method="GET", status=503) == 3

Requests go on as they came, but for the header that a rule takes away: signatures stay good.
"""
from . import faults
from .memory import MemoryS3
from .proxy import Proxy
from .rules import Rule

__all__ = ["MemoryS3", "Proxy", "Rule", "faults"]
