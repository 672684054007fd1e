"""Checkpointer with torch's tensors in one process: views, and what has no data or no form."""
import pytest
import weir
from weir import state as states

torch = pytest.importorskip("torch")


@pytest.fixture
def ck(tmp_path):
    with weir.Checkpointer(tmp_path, "r") as ck:
        yield ck


def test_views_that_conjugate_or_negate_are_tensors_of_their_own(ck):
    z = torch.randn(5, dtype=torch.complex64)
    minus = torch._neg_view(torch.ones(3))
    state = {"z": z, "c": z.conj(), "same": z, "i": z.conj().imag, "m": minus}
    ck.save(1, state, wait=True)
    loaded = ck.load().state
    assert loaded["same"] is loaded["z"]
    for name, value in state.items():
        assert torch.equal(loaded[name], value), name
    into = {"c": torch.zeros(5, dtype=torch.complex64).conj(), "m": torch._neg_view(torch.ones(3))}
    ck.load(like=into)
    assert torch.equal(into["c"], state["c"]) and torch.equal(into["m"], minus)


def test_tensors_without_an_address_are_told_apart():
    class NoAddress(torch.Tensor):
        def data_ptr(self):
            return 0

    a, b = (torch.ones(3).as_subclass(NoAddress) for _ in range(2))
    encoder = states.Encoder()
    encoder.encode({"a": a, "b": b, "again": a})
    assert list(encoder.tensors) == ["a", "b"]


def test_nothing_can_be_read_to_the_meta_device(ck):
    ck.save(1, {"model": torch.nn.Linear(3, 2)}, wait=True)
    with torch.device("meta"):
        model = torch.nn.Linear(3, 2)
    with pytest.raises(ValueError, match="'model.weight' is on the meta device.*to_empty"):
        ck.load(like={"model": model})
    model.to_empty(device="cpu")
    ck.load(like={"model": model})
    assert torch.equal(model.weight, ck.load().state["model"]["weight"])


BAD = {
    "meta": (lambda: torch.zeros(2, device="meta"), "Tensor on the meta device, without data"),
    "sparse": (lambda: torch.eye(2).to_sparse(), "Tensor that is sparse"),
    "csr": (lambda: torch.eye(2).to_sparse_csr(), "Tensor that is sparse"),
    "nested": (lambda: torch.nested.nested_tensor([torch.ones(1), torch.ones(2)]),
               "Tensor that is nested"),
    "quantized": (lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8),
                  "Tensor that is quantized"),
    "z": (lambda: torch.ones(2, dtype=torch.complex128),
          "torch.Tensor of complex128, which safetensors has no type for"),
}


@pytest.mark.filterwarnings("ignore")
def test_a_dry_run_finds_tensors_that_cannot_be_saved(ck):
    state = {"ok": torch.ones(2), **{name: make() for name, (make, _) in BAD.items()}}
    for call in (lambda: ck.check(state), lambda: ck.save(1, state)):
        with pytest.raises(weir.UnstorableError) as error:
            call()
        found = dict(error.value.values)
        assert list(found) == list(BAD)
        for name, (_, text) in BAD.items():
            assert text in found[name]
    with pytest.raises(weir.UnstorableError, match="meta is a .*without data"):
        ck.check({"meta": state["meta"], "z": state["z"]}, unsafe=True)
    ck.check({"z": state["z"]}, unsafe=True)


def test_a_new_optimizer_gets_its_state(ck):
    """And stays as new as it was where there is no checkpoint yet."""
    def new():
        model = torch.nn.Linear(3, 2)
        return {"model": model, "optimizer": torch.optim.AdamW(model.parameters())}

    def step(state):
        state["model"](torch.ones(1, 3)).sum().backward()
        state["optimizer"].step()
        state["optimizer"].zero_grad()

    first, second = new(), new()
    assert ck.load(like=first) is None and not first["optimizer"].state
    step(first)
    ck.save(1, first, wait=True)
    ck.load(like=second)
    for state in (first, second):
        step(state)
    for a, b in zip(first["model"].parameters(), second["model"].parameters()):
        assert torch.equal(a, b)
