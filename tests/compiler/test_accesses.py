"""What a definition says of the buffers that an update reads and writes: no more and no less."""

from __future__ import annotations

import pytest

from tests.support.packages import built_package

SPEC = """
name: moved
summary: Buffers that are only read, only written, and neither.
hyperparameters:
  lr: {default: 0.5}
options:
  a: {default: false}
  b: {default: false}
state:
  read: {init: param}
  written: {init: 0}
  seldom: {init: 0, when: a}
update:
  - written = grad*2
  - {when: a and b, do: "read = read*0.5"}
  - {when: a, do: "seldom = seldom + read"}
  - d = where(a, seldom, read)
  - {when: not b, do: "d = d + grad*written"}
  - {when: b, do: "d = d - lr"}
  - param = lr*d
"""


@pytest.fixture(scope="module")
def definition(tmp_path_factory):
    folder = tmp_path_factory.mktemp("specs")
    (folder / "moved.yaml").write_text(SPEC, encoding="utf-8")
    return built_package([folder], folder / "accesses").Moved.definition


@pytest.mark.parametrize(
    ("a", "b", "read", "written"),
    [
        # param is never read, written is stored but needn't be loaded.
        (False, False, {"grad", "read"}, {"param", "written"}),
        (False, True, {"grad", "read"}, {"param", "written"}),
        (True, False, {"grad", "read", "seldom"}, {"param", "written", "seldom"}),
        (True, True, {"grad", "read", "seldom"}, {"param", "written", "seldom", "read"}),
    ],
)
def test_only_what_the_options_need(definition, a, b, read, written):
    for names, expected in (
        (definition.buffers_read(a=a, b=b), read),
        (definition.buffers_written(a=a, b=b), written),
    ):
        assert set(names) == expected
        assert len(names) == len(expected)
