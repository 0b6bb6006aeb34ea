"""The JSON Schema that editors use says the same as the reader, as far as a schema can."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from solvergen.frontend.resolve import analyse
from solvergen.spec import document
from solvergen.spec.schema import json_schema, schema_text
from tests.unit.spec.mini_schema import complaints
from tests.unit.spec.support import MINIMAL, codes, read, section
from tests.unit.spec.test_reader import EVERYTHING

ROOT = Path(__file__).parents[3]
SHIPPED = sorted((ROOT / "specs").glob("*.yaml"))


def against_schema(content):
    schema = json_schema()
    return complaints(YAML(typ="safe", pure=True).load(content), schema, schema)


def tableau(text):
    return f"name: rule\nsummary: A rule for a test.\ntableau: {text}\n"


def test_the_committed_schema_is_current():
    """`solvergen schema --out docs/spec.schema.json` writes it anew."""
    assert (ROOT / "docs" / "spec.schema.json").read_text(encoding="utf-8") == schema_text()


def test_it_is_json_and_names_its_dialect():
    schema = json.loads(schema_text())
    assert schema == json_schema()
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_the_specs_that_come_along_fit_it(path):
    assert against_schema(path.read_text(encoding="utf-8")) == []


def test_a_spec_with_all_there_is_fits_it():
    assert against_schema(EVERYTHING) == []
    assert against_schema(MINIMAL) == []
    assert against_schema(tableau("{matrix: [[], [1]], weights: [1/2, 1/2], embedded: [1, 0]}")) == []


@pytest.mark.parametrize(
    "content",
    [
        MINIMAL.replace("summary: A rule for a test.\n", ""),
        MINIMAL + "wrong: 1\n",
        MINIMAL.replace("0.1", "abc"),
        MINIMAL.replace("0.1", "true"),
        MINIMAL.replace("0.1", "'0.1'"),
        MINIMAL.replace("lr: {default: 0.1}", "lr: 0.1"),
        MINIMAL.replace("lr: {default: 0.1}", "lr: {min: 0}"),
        MINIMAL.replace("lr: {default: 0.1}", "lr: {default: 0.1, minn: 0}"),
        MINIMAL.replace("lr:", "learning-rate:"),
        MINIMAL.replace("name: rule", "name: Rule"),
        MINIMAL.replace("name: rule", "name: rule\nclass_name: rule"),
        section("state", "m: {shape: row}"),
        section("state", "m: {init: true}"),
        section("state", "m: {init: null}"),
        section("options", "a: {default: 1}"),
        section("options", "\n".join(f"a{i}: {{}}" for i in range(11))),
        section("constraints", "- that: lr < 1"),
        section("update", "- 5"),
        section("update", "- {when: a}"),
        section("update", "- {do: []}"),
        section("update", "- ''"),
        MINIMAL + "reference: {title: A, arxiv: 1412.6980}\n",
        MINIMAL + "reference: {title: A, url: example.org}\n",
        MINIMAL + "description: ' '\n",
        tableau("{weights: [1]}"),
        tableau("{matrix: [[]], weights: [1.0]}"),
        tableau("{matrix: [[]], weights: [1//1]}"),
        tableau("{matrix: [[]], weights: [1], adapt: 1}"),
        tableau("{matrix: [[]], weights: [1], nodess: [0]}"),
    ],
)
def test_what_the_schema_refuses_the_reader_refuses_too(tmp_path, content):
    assert against_schema(content) != []
    assert codes(tmp_path, content) != []


def test_every_key_is_explained():
    for schema in (json_schema(), *json_schema()["$defs"].values()):
        assert schema["description"]
        assert all(entry["description"] for entry in schema["properties"].values())


def test_every_key_is_on_the_page_about_the_file():
    page = (ROOT / "docs" / "spec-language.md").read_text(encoding="utf-8")
    models = [
        document.SpecDocument,
        document.HyperparameterDocument,
        document.OptionDocument,
        document.StateDocument,
        document.ConstraintDocument,
        document.StatementDocument,
        document.ReferenceDocument,
        document.TableauDocument,
        document.ChangeDocument,
    ]
    missing = [
        key
        for model in models
        for key in model.model_fields
        if f"`{key}`" not in page and f"{key}: " not in page
    ]
    assert missing == []


def test_the_specs_on_the_page_are_some(tmp_path):
    page = (ROOT / "docs" / "spec-language.md").read_text(encoding="utf-8")
    examples = [part.split("```")[0] for part in page.split("```yaml\n")[1:]]
    assert len(examples) == 5
    for example in examples:
        assert codes(tmp_path, example) == []
        assert against_schema(example) == []
        found = analyse(read(tmp_path, example))
        assert found.diagnostics == ()
