"""How Sphinx builds the site. ``build_site.py`` calls it; the sources are what that gathers."""

from __future__ import annotations

from solvergen import __version__

project = "solvergen"
author = "the authors of solvergen"
version = release = __version__
html_title = f"solvergen {__version__}"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
maximum_signature_line_length = 88

html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False
html_theme_options = {"top_of_page_buttons": []}
