#!/usr/bin/env python3
"""Looks whether every link of a built book leads to a file and a heading that are there."""
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The links and the names of one page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.names = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        fields = dict(attributes)
        self.names.add(fields.get("id"))
        self.links += [fields[key] for key in ("href", "src") if fields.get(key)]


def fault(root, file, link, pages):
    """What is wrong with a link of `file`, or None."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return None
    target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
    if target.is_dir():
        target = target / "index.html"
    if not target.is_relative_to(root) or not target.exists():
        return "no such file"
    names = pages[target].names if target in pages else None
    if parts.fragment and names is not None and unquote(parts.fragment) not in names:
        return "no such heading"
    return None


def main():
    """Prints each link that leads nowhere; fails if there is one."""
    root = Path(sys.argv[1]).resolve()
    pages = {file: Page(file.read_text(encoding="utf-8")) for file in sorted(root.rglob("*.html"))}
    # It is made for servers: its links begin at their root.
    pages.pop(root / "404.html", None)
    links = [(file, link) for file, page in pages.items() for link in page.links]
    wrong = sorted({f"{file.relative_to(root)}: {link}: {what}"
                    for file, link in links if (what := fault(root, file, link, pages))})
    print("\n".join(wrong + [f"{len(pages)} pages, {len(links)} links, {len(wrong)} lead nowhere"]))
    sys.exit(1 if wrong or not links else 0)


main()
