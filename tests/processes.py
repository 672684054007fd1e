"""What tests want to know of processes they started, and how they start them."""
import re
import signal
import time


def reset_signals():
    """A background pytest hands ignored signals down, and weir respects those."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)


def is_polite(process):
    """Whether a signal only asks by now: it ignores SIGPIPE then."""
    with open(f"/proc/{process.pid}/status") as status:
        ignored = [line.split()[1] for line in status if line.startswith("SigIgn:")][0]
    return bool(int(ignored, 16) >> (signal.SIGPIPE - 1) & 1)


def peak_bytes(process):
    """The most memory that it has until it ends. What wait4() says may be ours: a fork's."""
    most = 0
    while process.poll() is None:
        with open(f"/proc/{process.pid}/status") as status:
            found = re.search(r"^VmHWM:\s+(\d+) kB", status.read(), re.M)
        most = max(most, int(found.group(1)) << 10 if found else 0)
        time.sleep(0.01)
    return most
