"""A hook of mkdocs: the pages of the top folder become pages of the site, with their links adjusted."""

import re
from pathlib import Path

from mkdocs.structure.files import File

TOP = Path(__file__).parent.parent
PAGES = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
}
LINK = re.compile(r"\[([^\]]*)\]\(([^)#:]+)(#[^)]*)?\)")


def adjusted(match):
    """A link from the top folder as a link from docs/. Other files of the repository are named instead."""
    text, target, anchor = match[1], match[2], match[3] or ""
    if target in PAGES:
        return f"[{text}]({PAGES[target]}{anchor})"
    if target.startswith("docs/"):
        return f"[{text}]({target.removeprefix('docs/')}{anchor})"
    return f"{text} (`{target}`)"


def on_files(files, config):
    for source, name in PAGES.items():
        content = LINK.sub(adjusted, (TOP / source).read_text(encoding="utf-8"))
        files.append(File.generated(config, name, content=content))
    return files
