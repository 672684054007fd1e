"""What charts and pages are made of: any text is shown as it is, and never taken for markup."""
import re
import subprocess
import xml.etree.ElementTree as xml

import pytest

from conftest import BIN

MAKE = BIN.parents[2] / "tests/cli/makepage"
SVG, HTML = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xhtml}"


def made(text):
    return subprocess.run([MAKE, text], stdout=subprocess.PIPE, check=True).stdout


def parsed(text):
    raw = made(text)
    return raw.decode(), xml.fromstring(raw)


@pytest.mark.parametrize("text, shown", [
    ("plain", "plain"),
    ("<script>alert(1)</script> & \"quotes\" 'too' ]]>", None),
    ("a\tb\nc", "a b c"),
    ("bell \x07 esc \x1b del \x7f", "bell \ufffd esc \ufffd del \ufffd"),
    (b"not \xff UTF-8 \xc0\xaf \xed\xa0\x80", "not \ufffd UTF-8 \ufffd\ufffd \ufffd\ufffd\ufffd"),
    ("no characters: \ufffe \uffff \x9b", "no characters: \ufffd \ufffd \ufffd"),
    ("früh ☀ 𝄞", None),
])
def test_any_text(text, shown):
    shown = shown or text
    page, root = parsed(text)
    assert root.find(f"{HTML}head/{HTML}title").text == shown
    assert root.find(f"{HTML}body/{HTML}h1").text == shown
    for tag in ("h2", "figcaption", "td", "th", "b"):
        assert any(node.text == shown for node in root.iter(HTML + tag)), tag
    texts = [node.text for node in root.iter(SVG + "text")]
    cut = shown if len(shown) <= 24 else shown[:23] + "…"
    assert texts.count(cut) >= 4  # labels of two charts with bars
    assert not list(root.iter(HTML + "script")) and not list(root.iter(SVG + "script"))


def test_needs_nothing_else():
    page, root = parsed("x")
    for node in root.iter():
        assert not {"href", "src", "onload", "onclick"} & set(node.attrib)
        assert node.tag.split("}")[1] not in ("script", "link", "iframe", "img", "object")
    addresses = set(re.findall(r"\w+://[^'\"]*", page))
    assert addresses == {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xhtml"}  # names
    assert "url(" not in page and "@import" not in page


def test_what_is_no_number_is_not_drawn():
    page, root = parsed("x")
    assert not re.search(r"\b(nan|inf)\b", page)
    charts = list(root.iter(SVG + "svg"))
    lines = charts[0]
    # Five points each: one has no x, one of the first has no y, two of the second no logarithm.
    assert [len(list(g.iter(SVG + "circle"))) for g in lines.iter(SVG + "g")][1:] == [3, 2]
    assert len([c for c in lines.iter(SVG + "circle") if c.get("r") == "7"]) == 1
    for chart in charts:
        box = [float(number) for number in chart.get("viewBox").split()]
        for node in chart.iter():
            for name in ("x", "cx"):
                if node.get(name) and "%" not in node.get(name):
                    assert 0 <= float(node.get(name)) <= box[2], node.attrib


def test_areas_lie_on_each_other():
    """The second area's way back is the first one's way there, but for what has no value."""
    root = parsed("x")[1]
    areas = [path for path in root.iter(SVG + "path") if path.get("fill") == "currentColor"]
    under, over = [re.findall("[\\d.]+ [\\d.]+", path.get("d")) for path in areas]
    assert len(over) == 10 and over[:4:-1][:4] == under[:4]
    assert [path.find(SVG + "title").text for path in areas] == ["x", "other"]


def test_a_point_tells_its_values():
    root = parsed("reads")[1]
    hints = [node.text for node in root.iter(SVG + "title")]
    assert "reads, 64 KiB: 28.6 MiB/s" in hints and "other, b: 0" in hints


def test_values():
    out = subprocess.run([MAKE, "--values"], stdout=subprocess.PIPE, check=True).stdout.decode()
    lines = out.splitlines()
    number, size, rate, span, share, dollars = [lines[i:i + 10] for i in range(0, 60, 10)]
    assert number == ["0", "0.00025", "0.35", "1", "999", "1536", "20 k", "90 k", "1.4 M",
                      "-1.049 M"]
    assert size[4:] == ["999 B", "1.5 KiB", "19.5 KiB", "87.9 KiB", "1.3 MiB", "-1 MiB"]
    assert rate[5] == "1.5 KiB/s"
    assert span == ["0", "250 µs", "350 ms", "1 s", "16.6 min", "25.6 min", "5.56 h", "1.04 d",
                    "16.2 d", "-12.1 d"]
    assert share[1:4] == ["0.025 %", "35 %", "100 %"]
    assert dollars[6] == "$20 k"
