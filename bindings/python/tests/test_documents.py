"""The programs in the documents run as they are printed."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
DOCUMENTS = ["bindings/python/README.md", "docs/embed.md"]


def programs():
    for name in DOCUMENTS:
        text = (ROOT / name).read_text()
        for number, code in enumerate(re.findall(r"^```python\n(.*?)^```", text, re.S | re.M), 1):
            yield pytest.param(code, id=f"{name}:{number}")


@pytest.mark.parametrize("code", list(programs()))
def test_program(code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "document", "exec"), {"__name__": "document"})


def test_there_are_programs():
    assert len(list(programs())) >= 4
