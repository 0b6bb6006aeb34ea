"""How Sphinx builds the site. ``build_site.py`` calls it; the sources are what that gathers."""

from __future__ import annotations

from typing import Any, Literal

from sphinx.application import Sphinx
from sphinx.ext.napoleon.docstring import GoogleDocstring

from solvergen import __version__

project = "solvergen"
author = "the authors of solvergen"
version = release = __version__
html_title = f"solvergen {__version__}"

extensions = ["myst_parser", "sphinx.ext.autodoc"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4

autoclass_content = "both"
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
maximum_signature_line_length = 88

html_theme = "furo"
# html_static_path is given by build_site.py: static/ here, and the font.
html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False
html_theme_options: dict[str, Any] = {"top_of_page_buttons": []}


Kind = Literal["module", "class", "exception", "function", "method", "attribute", "data", "property"]


def sections(app: Sphinx, what: Kind, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Sections such as ``Args:`` as fields. napoleon would also take ``The states: by name`` for a type."""
    if what not in ("attribute", "data", "property"):
        lines[:] = GoogleDocstring(list(lines), what=what).lines()


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", sections)
