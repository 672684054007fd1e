#!/usr/bin/python3
"""Puts objects into a store from several threads for as long as stdin is open, whatever happens to
the store; then reads back every one that was acknowledged. load.py URL

A line for each that was acknowledged, while it runs; at the end one of JSON: how many there were,
what failed and why, which came back wrong or not at all, and how long the longest put took.
"""
import json
import random
import sys
import threading
import time

import weir

THREADS = 4
SIZES = [100, 100, 100, 70_000, 70_000, 300_000, 2_500_000]  # in a head, in one part, in several
PAUSE_S = 0.4  # the cluster of the tests is small


def content(key, size):
    return random.Random(key).randbytes(size)


class Load:
    def __init__(self, store):
        self.store = store
        self.lock = threading.Lock()
        self.stop = threading.Event()
        self.acknowledged, self.failed, self.longest_s = {}, [], 0

    def put(self, thread):
        chance = random.Random(thread)
        for number in range(1_000_000):
            if self.stop.is_set():
                return
            key, size = f"load/{thread}/{number}", chance.choice(SIZES)
            data, start = content(key, size), time.monotonic()
            try:
                self.store.put(key, data)
                error = None
            except OSError as raised:
                error = str(raised)
            with self.lock:
                self.longest_s = max(self.longest_s, time.monotonic() - start)
                if error:
                    self.failed.append(error)
                else:
                    self.acknowledged[key] = size
                    print(key, flush=True)
            time.sleep(PAUSE_S)

    def is_back(self, key):
        try:
            return self.store.get(key) == content(key, self.acknowledged[key])
        except OSError as error:
            return f"{key}: {error}"


def main():
    with weir.open(sys.argv[1]) as store:
        load = Load(store)
        threads = [threading.Thread(target=load.put, args=(i,)) for i in range(THREADS)]
        for thread in threads:
            thread.start()
        sys.stdin.read()
        load.stop.set()
        for thread in threads:
            thread.join()
        backs = {key: load.is_back(key) for key in load.acknowledged}
        wrong = [(key, back) for key, back in backs.items() if back is not True]
        print(json.dumps({"acknowledged": len(load.acknowledged), "failed": load.failed,
                          "wrong": wrong, "longest_s": load.longest_s}))


main()
