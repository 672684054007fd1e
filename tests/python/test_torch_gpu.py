"""Tensors on a GPU: what a checkpoint holds of them, and batches on their way there."""
import json

import pytest
import weir
from weirtest import need

np = need("numpy")
torch = need("torch")
if not torch.cuda.is_available():
    pytest.skip("needs a GPU that torch can use", allow_module_level=True)


def trained(steps):
    """A model and its optimizer after some steps, on the GPU."""
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.GELU(),
                                torch.nn.Linear(512, 64)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(32, 512, device="cuda")).square().mean().backward()
        optimizer.step()
    return model, optimizer


def copies(model, optimizer):
    values = [*model.state_dict().values(), *(value for one in optimizer.state.values()
                                              for value in one.values())]
    return [value.detach().cpu().clone() for value in values]


def test_a_save_holds_what_was_there_when_it_was_called(tmp_path):
    model, optimizer = trained(3)
    expected = copies(model, optimizer)
    with weir.Checkpointer(tmp_path, "run") as ck:
        ticket = ck.save(3, {"model": model, "optimizer": optimizer})
        with torch.no_grad():  # the trainer goes on at once
            for parameter in model.parameters():
                parameter.zero_()
        ticket.wait()
        other, its_optimizer = trained(1)
        ck.load(like={"model": other, "optimizer": its_optimizer})
    assert all(parameter.is_cuda for parameter in other.parameters())
    for one, two in zip(copies(other, its_optimizer), expected, strict=True):
        assert torch.equal(one, two)


def test_types_round_trip(tmp_path):
    state = {str(dtype): torch.randn(1000, device="cuda").to(dtype)
             for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.float8_e4m3fn,
                           torch.int64, torch.uint8)}
    state["view"] = torch.randn(64, 64, device="cuda")[::2, 1::3]
    with weir.Checkpointer(tmp_path, "run") as ck:
        ck.save(1, state, wait=True)
        loaded = ck.load().state
    for name, value in state.items():
        assert loaded[name].dtype == value.dtype, name
        assert torch.equal(loaded[name].cpu().view(torch.uint8),
                           value.cpu().contiguous().view(torch.uint8)), name


def test_batches_in_pinned_memory_reach_the_gpu(tmp_path, monkeypatch):
    monkeypatch.setenv("WEIR_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "tokens"
    folder.mkdir()
    numbers = np.arange(1 << 20, dtype=np.uint16)
    numbers.tofile(folder / "train.bin")
    seen = 0
    with weir.Dataset(folder, batch_size=16, seq_len=256, shuffle=True, seed=1, epochs=1,
                      pin_memory=True) as dataset:
        for batch in dataset:
            tokens = batch["tokens"]
            assert tokens.is_pinned()
            there = tokens.to("cuda", non_blocking=True)
            first = there[:, :1].to(torch.int32)
            steps = torch.arange(there.shape[1], device="cuda", dtype=torch.int32)
            assert torch.equal(there.to(torch.int32), (first + steps) % (1 << 16))
            seen += len(there)
    assert seen >= (len(numbers) - 1) // 256


def test_ragged_values_are_pinned_too(tmp_path, monkeypatch):
    monkeypatch.setenv("WEIR_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "lines"
    folder.mkdir()
    (folder / "a.jsonl").write_text("".join(
        json.dumps({"id": i, "some": list(range(i % 7 + 1))}) + "\n" for i in range(1000)))
    seen = set()
    with weir.Dataset(folder, batch_size=64, seed=1, epochs=1, pin_memory=True) as dataset:
        for batch in dataset:
            some = batch["some"]
            assert batch["id"].is_pinned() and some.data.is_pinned()
            there = some.data.to("cuda", non_blocking=True)
            bounds = some.offsets.tolist()
            for i, begin, end in zip(batch["id"].tolist(), bounds, bounds[1:]):
                assert there[begin:end].tolist() == list(range(i % 7 + 1))
                seen.add(i)
    assert seen == set(range(1000))


def test_copies_that_are_under_way_keep_their_batch(tmp_path, monkeypatch):
    """The loop goes on, and forgets its batch, before the GPU has begun to copy it."""
    monkeypatch.setenv("WEIR_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "tokens"
    folder.mkdir()
    np.arange(1 << 20, dtype=np.uint16).tofile(folder / "train.bin")
    stream, there = torch.cuda.Stream(), []
    with weir.Dataset(folder, batch_size=16, seq_len=256, shuffle=True, seed=1, epochs=1,
                      prefetch=2, pin_memory=True) as dataset:
        for batch in dataset:
            with torch.cuda.stream(stream):  # not the one that is current where memory is freed
                torch.cuda._sleep(5_000_000)
                there.append(batch["tokens"].to("cuda", non_blocking=True))
            assert batch["tokens"].is_pinned()
            del batch
    stream.synchronize()
    steps = torch.arange(257, device="cuda", dtype=torch.int32)
    for tokens in there:
        tokens = tokens.to(torch.int32)
        assert torch.equal(tokens, (tokens[:, :1] + steps) % (1 << 16))
