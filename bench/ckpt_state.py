"""The state that the checkpoint benchmark saves: a transformer's bf16 weights with the fp32 master
weights and moments of Adam, as nested dicts. Its contents follow from its size alone, so that what
was loaded can be compared with what was saved, in another process.
"""
import torch

BYTES_PER_PARAMETER = 2 + 3 * 4
BLOCK = 4 << 20  # random numbers are made for this many elements, and repeated
# Width and vocabulary, from the smallest state that they suit.
WIDTHS = [(3 << 30, 1536, 32768), (1 << 30, 1024, 32768), (0, 512, 8192)]


def shapes(size):
    """Names and shapes of the parameters of a model whose state has about this many bytes."""
    width, words = next((w, v) for least, w, v in WIDTHS if size >= least)
    wide = (width * 8 // 3 + 255) // 256 * 256
    layer = {
        "attention.query.weight": (width, width), "attention.key.weight": (width, width),
        "attention.value.weight": (width, width), "attention.output.weight": (width, width),
        "mlp.gate.weight": (wide, width), "mlp.up.weight": (wide, width),
        "mlp.down.weight": (width, wide),
        "attention_norm.weight": (width,), "mlp_norm.weight": (width,),
    }
    each = 4 * width * width + 3 * width * wide + 2 * width
    layers = max(1, round((size / BYTES_PER_PARAMETER - words * width) / each))
    found = {"embedding.weight": (words, width)}
    for i in range(layers):
        found.update({f"layers.{i}.{name}": shape for name, shape in layer.items()})
    found["norm.weight"] = (width,)
    return found


def empty(size):
    """The state with its memory touched and its numbers all zero."""
    model, state = {}, {}
    for i, (name, shape) in enumerate(shapes(size).items()):
        model[name] = torch.zeros(shape, dtype=torch.bfloat16)
        state[i] = {"step": torch.zeros(())}
        for part in ("exp_avg", "exp_avg_sq", "master"):
            state[i][part] = torch.zeros(shape)
    groups = [{"lr": 3e-4, "betas": [0.9, 0.95], "eps": 1e-8, "weight_decay": 0.1,
               "params": list(state)}]
    return {"model": model, "optimizer": {"state": state, "param_groups": groups}}


def flat(state):
    """Its tensors by name."""
    found = {f"model.{name}": tensor for name, tensor in state["model"].items()}
    for i, parts in state["optimizer"]["state"].items():
        found.update({f"optimizer.state.{i}.{name}": tensor for name, tensor in parts.items()})
    return found


def total_bytes(state):
    return sum(t.numel() * t.element_size() for t in flat(state).values())


def _pieces(state):
    """Pairs of a piece of the state and the numbers that belong there."""
    block = torch.randn(BLOCK, generator=torch.Generator().manual_seed(1))
    blocks = {torch.float32: block, torch.bfloat16: block.to(torch.bfloat16)}
    for i, tensor in enumerate(flat(state).values()):
        line, want = tensor.view(-1), blocks[tensor.dtype]
        start = i * 977 % (BLOCK // 2)  # so that no two tensors are alike
        at = 0
        while at < line.numel():
            n = min(line.numel() - at, BLOCK - start)
            yield line[at:at + n], want[start:start + n]
            at, start = at + n, (start + 101) % (BLOCK // 2)


def fill(state):
    for piece, want in _pieces(state):
        piece.copy_(want)


def clear(state):
    for tensor in flat(state).values():
        tensor.zero_()


def is_intact(state):
    """Bit for bit what fill() made."""
    return all(torch.equal(piece, want) for piece, want in _pieces(state))
