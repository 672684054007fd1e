"""A real run that is killed at the very times at which nodes fail in the simulation, and started
again from its newest checkpoint.

    simulate_restart.py STORE STEP STEPS EVERY    the run itself: says "ready", and when it is done
"""
import os
import subprocess
import sys
import time

import numpy

import weir

STATE = 60 << 20
MASK = (1 << 64) - 1


def draws(seed, mean):
    """What src/plan/sim_cluster.c draws: times between failures."""
    state = seed * 0xd1342543de82ef95 + 1 & MASK
    first = True
    while True:
        state = state + 0x9e3779b97f4a7c15 & MASK
        z = (state ^ state >> 30) * 0xbf58476d1ce4e5b9 & MASK
        z = (z ^ z >> 27) * 0x94d049bb133111eb & MASK
        if not first:
            yield -mean * numpy.log(((z ^ z >> 31) >> 11) * 2.0**-53 + 2.0**-53)
        first = False


def start(store, how):
    args = [store, how["step"], how["steps"], how["every"]]
    return subprocess.Popen([sys.executable, os.path.abspath(__file__), *map(str, args)],
                            stdout=subprocess.PIPE, text=True)


def measure(store, how, seed):
    """The time until all steps are done, though it is killed at those times."""
    process = start(store, how)
    process.stdout.readline()
    begin, failures, at = time.monotonic(), 0, 0.0
    for after in draws(seed, how["mtbf"]):
        at += after
        try:
            process.wait(max(0, begin + at - time.monotonic()))
            return dict(time_s=time.monotonic() - begin, failures=failures)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            failures += 1
            process = start(store, how)


def calibrate(store, how):
    """How long a process takes to start, and to load a checkpoint."""
    times = []
    for _ in range(2):  # the first has nothing to load, and leaves something
        begin = time.monotonic()
        process = start(store, {**how, "steps": 2 * how["every"]})
        process.stdout.readline()
        times.append(time.monotonic() - begin)
        process.wait()
    return dict(launch=times[0], load=STATE / max(times[1] - times[0], 0.01))


def main():
    url, step, steps, every = sys.argv[1], *map(float, sys.argv[2:])
    state = {f"w{i}": numpy.full(STATE // 16 // 4, i, numpy.float32) for i in range(16)}
    with weir.open(url) as store:
        ck = weir.Checkpointer(store, "run", keep_last=2, rank=0, ranks=1, retired_grace=0)
        loaded = ck.load(like=state)
        done = loaded.step if loaded else 0
        print("ready", flush=True)
        for number in range(done + 1, int(steps) + 1):
            time.sleep(step)
            if number % int(every) == 0:
                ck.save(number, state)
        os._exit(0)  # what is under way is not waited for: nor is it in the simulation


if __name__ == "__main__":
    main()
