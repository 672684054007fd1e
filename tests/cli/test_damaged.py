"""An object whose seal is damaged can be given up without losing its bytes."""


def test_rm_damaged(weir):
    weir.put("a/b", "precious")
    seal = weir.store / ".weir/seal/a/b~"
    seal.chmod(0o644)
    record = bytearray(seal.read_bytes())
    record[70] ^= 1
    seal.write_bytes(record)
    assert "damaged" in weir.fails("rm", "a/b")
    assert "--damaged" in weir.fails("cat", "a/b")
    weir("rm", "--damaged", "a/b")
    weir("gc", "--now")
    assert weir("cat", "a/b").out == "precious"
    assert "foreign" in weir("ls", "-l", "a/b").out


def test_rm_damaged_wants_damage(weir):
    weir.put("k", "sound")
    assert "not damaged" in weir.fails("rm", "--damaged", "k")
    assert "no object" in weir.fails("rm", "--damaged", "other")
    assert weir("cat", "k").out == "sound"
