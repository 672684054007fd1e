"""weir ckpt import of safetensors files, and of directories as Hugging Face has them."""
import json

from conftest import assert_same


def state_of(torch):
    return {"model.embed.weight": torch.randn(50, 16).to(torch.bfloat16),
            "model.norm": torch.ones(16), "scalar": torch.tensor(3), "empty": torch.empty(0, 4)}


def test_one_file(torch, safetensors, imported, weir, tmp_path):
    state = state_of(torch)
    safetensors.torch.save_file(state, tmp_path / "m.safetensors", {"format": "pt", "x": "é"})
    got = imported(tmp_path / "m.safetensors")
    assert set(got.tensors) == set(state) == set(got.root)
    assert_same({name: got.root[name] for name in state}, state)
    assert got.meta["lineage"] == {"imported_from": "m.safetensors", "format": "safetensors",
                                   "metadata": {"format": "pt", "x": "é"}}
    document = weir.json("ckpt", "import", "m.safetensors", "other", "--dry-run")
    assert {t["name"]: t["shape"] for t in document["list"]} == {
        name: list(tensor.shape) for name, tensor in state.items()}
    assert document["tensors"] == 4 and document["format"] == "safetensors"
    assert not (weir.store / "ckpt/other").exists()


def shards(torch, safetensors, directory):
    state = state_of(torch)
    names = list(state)
    directory.mkdir()
    files = {"model-00001-of-00002.safetensors": names[:2],
             "model-00002-of-00002.safetensors": names[2:]}
    for file, part in files.items():
        safetensors.torch.save_file({name: state[name] for name in part}, directory / file)
    index = {"metadata": {"total_size": 1},
             "weight_map": {name: file for file, part in files.items() for name in part}}
    (directory / "model.safetensors.index.json").write_text(json.dumps(index))
    (directory / "config.json").write_text("{}")
    return state, index


def test_sharded_directory(torch, safetensors, imported, tmp_path):
    state, _ = shards(torch, safetensors, tmp_path / "hf")
    got = imported(f"{tmp_path}/hf/")
    assert_same({name: got.root[name] for name in state}, state)
    assert got.meta["lineage"] == {"imported_from": "hf", "format": "huggingface"}


def test_links_into_a_cache(torch, safetensors, imported, tmp_path):
    state, _ = shards(torch, safetensors, tmp_path / "blobs")
    (tmp_path / "hf").mkdir()
    for path in (tmp_path / "blobs").iterdir():
        (tmp_path / "hf" / path.name).symlink_to(f"../blobs/{path.name}")
    assert_same(dict(sorted(imported(tmp_path / "hf").root.items())), dict(sorted(state.items())))


def test_directory_without_an_index(torch, safetensors, imported, weir, tmp_path):
    state, _ = shards(torch, safetensors, tmp_path / "hf")
    (tmp_path / "hf/model.safetensors.index.json").unlink()
    assert set(imported(tmp_path / "hf").tensors) == set(state)
    safetensors.torch.save_file({"scalar": torch.ones(1)}, tmp_path / "hf/other.safetensors")
    assert "'scalar' is in " in weir.fails("ckpt", "import", "hf", "again")
    safetensors.torch.save_file({"w": torch.ones(1)}, tmp_path / "hf/model.safetensors")
    assert set(imported(tmp_path / "hf", "just-that").tensors) == {"w"}


def test_wrong_indexes(torch, safetensors, weir, tmp_path):
    _, index = shards(torch, safetensors, tmp_path / "hf")
    path = tmp_path / "hf/model.safetensors.index.json"
    for change, why in [({"nowhere": "model-00001-of-00002.safetensors"}, "and it is not"),
                        ({"scalar": "model-00001-of-00002.safetensors"}, "and it is not"),
                        ({"x": "../hf/model-00001-of-00002.safetensors"}, "no file of its"),
                        ({"x": "missing.safetensors"}, "No such file"), ({"x": 5}, "weight_map")]:
        path.write_text(json.dumps({"weight_map": index["weight_map"] | change}))
        assert why in weir.fails("ckpt", "import", "hf", "run")
    for text in ["", "{}", "[]", '{"weight_map": []}', '{"weight_map": {"a": "b"', "{} {}"]:
        path.write_text(text)
        weir.fails("ckpt", "import", "hf", "run")
    assert not weir.store.exists()


def test_not_a_checkpoint(weir, tmp_path):
    (tmp_path / "empty").mkdir()
    assert ".metadata" in weir.fails("ckpt", "import", "empty", "run")
    assert "No such file" in weir.fails("ckpt", "import", "nowhere", "run")
    for content in [b"", b"hello", b"\0" * 100, b"PK\3\4" + b"x" * 100, b"\x80\x04" * 50]:
        (tmp_path / "x.pt").write_bytes(content)
        weir.fails("ckpt", "import", "x.pt", "run")
    (tmp_path / "dir.safetensors").mkdir()
    weir.fails("ckpt", "import", "dir.safetensors", "run")
    assert not weir.store.exists()


def test_a_step_is_imported_once(torch, safetensors, weir, tmp_path):
    safetensors.torch.save_file({"w": torch.ones(3)}, tmp_path / "m.safetensors")
    weir("ckpt", "import", "m.safetensors", "run", "--step", "5")
    assert "step 5 already" in weir.fails("ckpt", "import", "m.safetensors", "run", "--step", "5")
    for step in range(6, 11):  # older ones stay
        weir("ckpt", "import", "m.safetensors", "run", "--step", str(step))
    assert len(list((weir.store / "ckpt/run").iterdir())) == 6
