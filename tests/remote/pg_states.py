#!/usr/bin/python3
"""Prints the state of every placement group of some pools: pg_states.py CONF POOL…

The ceph command would ask a manager, which the cluster of the tests does not have; this asks the
OSDs themselves. In a process of its own, for a library that makes threads stays out of tests.
"""
import json
import sys

import rados

GROUPS = 8  # of each pool; ceph.py makes them so
SECONDS = 5

with rados.Rados(conffile=sys.argv[1]) as cluster:
    for pool in sys.argv[2:]:
        for i in range(GROUPS):
            group = f"{cluster.pool_lookup(pool)}.{i:x}"
            command = json.dumps({"prefix": "query", "pgid": group})
            code, out, _ = cluster.pg_command(group, command, b"", SECONDS)
            print("unknown" if code else json.loads(out)["state"])
