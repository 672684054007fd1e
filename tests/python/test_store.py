"""weir.open(): objects."""
import errno
import os
import threading

import pytest
import weir


def test_put_get_list_remove(tmp_path):
    with weir.open(str(tmp_path / "s")) as store:
        store.put("a/b", b"hello")
        store.put("a/c", bytearray(1 << 20))
        assert store.get("a/b") == b"hello"
        assert store.get("a/b", 1, 3) == b"ell"
        assert store.get("a/b", 9) == b""
        assert store.list("a", True) == [("a/b", 5, False), ("a/c", 1 << 20, False)]
        store.verify("a/b")
        store.remove("a/b")
        with pytest.raises(FileNotFoundError, match="a/b"):
            store.get("a/b")
        assert store.info()["tier"] == "file"


def test_errors_are_oserrors_with_a_number_and_a_text(tmp_path):
    with pytest.raises(FileNotFoundError) as error:
        weir.open(str(tmp_path / "missing"), create=False)
    assert error.value.errno == errno.ENOENT and "missing" in str(error.value)
    with weir.open(str(tmp_path / "s")) as store:
        store.put("k", b"1")
        with pytest.raises(FileExistsError):
            store.put("k", b"2")
        with pytest.raises(OSError, match="key"):
            store.put("../k", b"")


def test_damage_is_an_error_of_its_own(tmp_path):
    with weir.open(str(tmp_path)) as store:
        store.put("k", bytes(100000))
    with open(tmp_path / "k", "r+b") as file:
        file.seek(5000)
        file.write(b"!")
    with weir.open(str(tmp_path)) as store, pytest.raises(weir.DamagedError, match="'k'"):
        store.get("k")


def test_a_closed_store_says_so(tmp_path):
    store = weir.open(str(tmp_path))
    store.close()
    store.close()
    with pytest.raises(ValueError, match="closed"):
        store.put("k", b"")
    with pytest.raises(TypeError):
        weir._weir.Ckpt("no store", "r")


def test_closing_while_others_are_at_it(tmp_path):
    """close() from another thread never pulls the store away under a call."""
    raised = []
    for _ in range(20):
        store = weir.open(str(tmp_path))
        stop = threading.Event()

        def work():
            try:
                while not stop.is_set():
                    store.list("", True)
            except Exception as error:
                raised.append(error)

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        store.close()
        stop.set()
        for thread in threads:
            thread.join()
    assert [e for e in raised if not isinstance(e, ValueError) or "closed" not in str(e)] == []


def test_a_path_of_any_bytes(tmp_path):
    path = os.path.join(tmp_path, os.fsdecode(b"nud\xff"))
    with weir.open(path) as store:
        store.put("k", b"1")
        assert store.info()["url"].endswith(os.fsdecode(b"nud\xff"))
    with weir.open(path, create=False) as store:
        assert store.get("k") == b"1"
    with weir.Checkpointer(path, "run") as checkpointer:
        assert checkpointer.store.get("k") == b"1"
    with pytest.raises(ValueError, match="null"):
        weir.open("a\0b")
