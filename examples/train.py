#!/usr/bin/env python3
"""A small training run that can be killed at any moment and goes on as if nothing had happened.

    PYTHONPATH=build/plain/python .venv/bin/python examples/train.py --store runs --steps 200

It trains a character model on its own source text, saves every few steps in the background, and
starts by loading the newest checkpoint: model, optimizer, schedule, the random generator, and where
it was in the data. Kill it, start it again: the losses are the same, bit for bit, as those of a run
that was never disturbed.
"""
import argparse
import logging
import sys

import torch

import weir


class Model(torch.nn.Module):
    """Predicts the next character from the last few."""

    def __init__(self, context: int, width: int = 64) -> None:
        super().__init__()
        self.embed = torch.nn.Embedding(128, width)
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(context * width, 4 * width), torch.nn.GELU(), torch.nn.Dropout(0.1),
            torch.nn.LayerNorm(4 * width), torch.nn.Linear(4 * width, 128))

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        return self.layers(self.embed(text).flatten(1))


class Batches:
    """The data, in an order that a seed and a position determine."""

    def __init__(self, context: int, size: int = 32, seed: int = 1) -> None:
        with open(__file__, "rb") as file:
            self.text = torch.tensor([byte & 127 for byte in file.read()])
        self.context, self.size, self.seed = context, size, seed
        self.position = 0

    def next(self) -> tuple[torch.Tensor, torch.Tensor]:
        generator = torch.Generator().manual_seed(self.seed * 1_000_003 + self.position)
        starts = torch.randint(len(self.text) - self.context, (self.size,), generator=generator)
        self.position += 1
        return (torch.stack([self.text[i:i + self.context] for i in starts]),
                self.text[starts + self.context])

    def state_dict(self) -> dict[str, int]:
        return {"seed": self.seed, "position": self.position}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.seed, self.position = state["seed"], state["position"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--store", default="runs", help="a directory or URL; made if missing")
    parser.add_argument("--run", default="chars", help="the name of the run")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--every", type=int, default=10, help="steps between checkpoints")
    options = parser.parse_args()
    logging.basicConfig(format="%(name)s: %(message)s")
    torch.manual_seed(0)
    torch.use_deterministic_algorithms(True)

    model, batches = Model(context=16), Batches(context=16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, options.steps)
    state = {"model": model, "optimizer": optimizer, "schedule": schedule}

    with weir.Checkpointer(options.store, options.run) as checkpoints:
        checkpoints.check(state)
        first = 0
        loaded = checkpoints.load(like={**state, "random": None})
        if loaded:
            first = loaded.step
            batches.load_state_dict(loaded.loader)
            torch.set_rng_state(loaded.state["random"])
            print(f"going on after step {first}", file=sys.stderr)
        for step in range(first + 1, options.steps + 1):
            inputs, wanted = batches.next()
            loss = torch.nn.functional.cross_entropy(model(inputs), wanted)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            print(f"step {step} loss {loss.item().hex()} {loss.item():.4f}", flush=True)
            if loaded and step == first + 1 and not checkpoints.check_resume(loss.item(), 1.0):
                return 1
            if step % options.every == 0 or step == options.steps:
                checkpoints.save(step, {**state, "random": torch.get_rng_state()},
                                 loader=batches, loss=loss.item())
    return 0


if __name__ == "__main__":
    sys.exit(main())
