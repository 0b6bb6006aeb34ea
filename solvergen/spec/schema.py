"""The JSON Schema of a spec, for editors: they complete keys and mark mistakes while one types.

It is made from ``document.py``, so it can't say anything else than the reader does; what a schema
can't say (ranges that hold the default, names that are taken) only the reader says.
"""

from __future__ import annotations

import json
import re
from typing import Any

from solvergen.spec.document import SpecDocument
from solvergen.spec.limits import MAX_NAME

SCHEMA_ID = "https://json-schema.org/draft/2020-12/schema"

FORMS = ("update", "tableau", "extends")
"""What says how the parameter is updated: a spec has one of them, or two."""

_ORDER = (
    "$schema", "title", "description", "type", "enum", "pattern", "minLength", "maxLength", "minItems",
    "maxItems", "maxProperties", "propertyNames", "properties", "required", "additionalProperties", "items",
    "oneOf", "anyOf", "$ref", "default", "$defs",
)  # fmt: skip
"""Order of a schema's keys, so that the file doesn't depend on the version of pydantic."""

_NAMED = ("properties", "$defs")
"""Under these the keys are not JSON Schema's but names of the spec's."""


def json_schema() -> dict[str, Any]:
    """The schema as a dictionary that JSON can hold, with keys in a fixed order."""
    schema: dict[str, Any] = _tidied(SpecDocument.model_json_schema())
    schema["required"].remove("update")
    schema["anyOf"] = [{"required": [form]} for form in FORMS]
    ordered: dict[str, Any] = _ordered({**schema, "$schema": SCHEMA_ID, "title": "solvergen spec"})
    return ordered


def schema_text() -> str:
    """The schema as the text of a file."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


def _tidied(node: Any) -> Any:
    """``node`` without what pydantic's model has and a spec hasn't.

    A key that may be left out has a None in the model, but null is no value in a spec; titles that
    pydantic derives from keys say nothing; and the names of our classes are our own business.
    """
    if isinstance(node, list):
        return [_tidied(item) for item in node]
    if isinstance(node, str):
        return re.sub(r"^(#/\$defs/\w+)Document$", r"\1", node)
    if not isinstance(node, dict):
        return node
    node = dict(node)
    node.pop("title", None)
    branches = node.get("anyOf", [])
    if {"type": "null"} in branches:
        rest = [branch for branch in branches if branch != {"type": "null"}]
        del node["anyOf"], node["default"]
        node.update(rest[0] if len(rest) == 1 else {"anyOf": rest})
    if "patternProperties" in node:
        # As pydantic writes it, names that don't match the pattern would be let through.
        ((pattern, entry),) = node.pop("patternProperties").items()
        node["propertyNames"] = {"pattern": pattern, "maxLength": MAX_NAME}
        node["additionalProperties"] = entry
    return {
        key: {name.removesuffix("Document"): _tidied(entry) for name, entry in value.items()}
        if key in _NAMED
        else _tidied(value)
        for key, value in node.items()
    }


def _ordered(node: Any) -> Any:
    """``node`` with the keys of each schema in a fixed order."""
    if isinstance(node, list):
        return [_ordered(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {
        key: {name: _ordered(entry) for name, entry in node[key].items()}
        if key in _NAMED
        else _ordered(node[key])
        for key in sorted(node, key=_ORDER.index)
    }
