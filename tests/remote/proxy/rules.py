"""Which requests a fault is for."""
import random


class Rule:
    """A fault, and the requests it is for: all that match, from the `first` one (1) on, for `times`
    of them, each `every`-th, and of those by chance where `chance` is below 1 (from `seed`).

    method: a name, or several with blanks; path: a part of it; query: a name that must be there,
    without: one that must not; test: a function of the head for everything else.
    """

    def __init__(self, fault, *, method=None, path=None, query=None, without=None, first=1,
                 times=None, every=1, chance=1.0, seed=1, test=None):
        self.fault, self.path, self.query, self.without = fault, path, query, without
        self.methods = method.split() if method else None
        self.first, self.times, self.every, self.test = first, times, every, test
        self.chance, self.dice = chance, random.Random(seed)
        self.matched = self.fired = 0

    def wants(self, head):
        if self.methods and head.method not in self.methods:
            return False
        if self.path is not None and self.path not in head.path:
            return False
        if self.query is not None and self.query not in head.query:
            return False
        if self.without is not None and self.without in head.query:
            return False
        return self.test is None or self.test(head)

    def take(self, head):
        """The fault, if this request gets it."""
        if not self.wants(head):
            return None
        self.matched += 1
        if self.matched < self.first or (self.matched - self.first) % self.every:
            return None
        if self.times is not None and self.fired >= self.times:
            return None
        if self.dice.random() >= self.chance:
            return None
        self.fired += 1
        return self.fault
