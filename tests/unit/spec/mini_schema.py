"""As much of JSON Schema as the schema of a spec uses, to hold it against specs."""

from __future__ import annotations

import re

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool}
CHECKED = {
    "type", "enum", "pattern", "minLength", "maxLength", "minItems", "maxItems", "maxProperties",
    "propertyNames",
    "properties", "required", "additionalProperties", "items", "oneOf", "anyOf", "$ref",
}  # fmt: skip
SAYS_NOTHING = {"$schema", "title", "description", "default", "$defs"}


def complaints(value, schema, root, path=""):
    """What is wrong with ``value``: a list of (path, keyword)."""
    unknown = set(schema) - CHECKED - SAYS_NOTHING
    assert not unknown, unknown
    found = []

    def require(keyword, holds):
        if keyword in schema and not holds():
            found.append((path, keyword))

    if "$ref" in schema:
        found += complaints(value, root["$defs"][schema["$ref"].removeprefix("#/$defs/")], root, path)
    require("type", lambda: of_type(value, schema["type"]))
    if found:
        return found
    require("enum", lambda: value in schema["enum"])
    if "oneOf" in schema:
        fitting = [branch for branch in schema["oneOf"] if not complaints(value, branch, root, path)]
        require("oneOf", lambda: len(fitting) == 1)
    require("anyOf", lambda: any(not complaints(value, b, root, path) for b in schema["anyOf"]))
    if isinstance(value, str):
        require("pattern", lambda: re.search(schema["pattern"], value))
        require("minLength", lambda: len(value) >= schema["minLength"])
        require("maxLength", lambda: len(value) <= schema["maxLength"])
    if isinstance(value, list):
        require("minItems", lambda: len(value) >= schema["minItems"])
        require("maxItems", lambda: len(value) <= schema["maxItems"])
        for i, item in enumerate(value):
            found += complaints(item, schema.get("items", {}), root, f"{path}/{i}")
    if isinstance(value, dict):
        require("maxProperties", lambda: len(value) <= schema["maxProperties"])
        require("required", lambda: set(schema["required"]) <= set(value))
        for name, entry in value.items():
            found += complaints(name, schema.get("propertyNames", {}), root, f"{path}/{name}!")
            known = schema.get("properties", {})
            further = schema.get("additionalProperties", {})
            if name in known:
                found += complaints(entry, known[name], root, f"{path}/{name}")
            elif further is False:
                found.append((f"{path}/{name}", "additionalProperties"))
            else:
                found += complaints(entry, further, root, f"{path}/{name}")
    return found


def of_type(value, name):
    if name == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if name == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])
