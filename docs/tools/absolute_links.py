"""Makes the relative links of a Markdown file absolute, for readers who see nothing else.

    python docs/tools/absolute_links.py BASE_URL [FILE] > OUTPUT

A package index shows README.md alone, where `docs/start/install.md` leads nowhere. BASE_URL is the
address of the repository's files at a tag, such as https://github.com/OWNER/NAME/blob/v0.1.0, or
any address beneath which the same paths are served. Links within the page, addresses that have a
scheme, and code stay as they are. Pictures are asked for at /raw/ where BASE_URL says /blob/, which
is a page around a file. A link to a file that does not exist is an error.
"""

import argparse
import re
import sys
from pathlib import Path

# Code, which stays, or a link or picture: its text up to the address, and the address.
PIECE = re.compile(
    r"^(?:```|~~~).*?^(?:```|~~~)[ \t]*$|`[^`\n]*`"
    r"|(?P<text>(?:!\[[^\]]*)?\]\()(?P<address>[^)\s]+)",
    re.MULTILINE | re.DOTALL,
)
ABSOLUTE = re.compile(r"[a-z][a-z0-9+.-]*:|#|//", re.IGNORECASE)


def absolute(text: str, base: str) -> str:
    """The text with every relative address put beneath the base."""

    def replace(match: re.Match[str]) -> str:
        address = match["address"]
        if address is None or ABSOLUTE.match(address):
            return match[0]
        above = base.rstrip("/")
        if match["text"].startswith("!"):
            above = above.replace("/blob/", "/raw/")
        return f"{match['text']}{above}/{address.removeprefix('./')}"

    return PIECE.sub(replace, text)


def missing(text: str, folder: Path) -> list[str]:
    """Relative addresses of the text that name no file of the folder."""
    addresses = [match["address"] for match in PIECE.finditer(text) if match["address"]]
    relative = [address for address in addresses if not ABSOLUTE.match(address)]
    return [address for address in relative if not (folder / address.partition("#")[0]).exists()]


def main(base: str, path: Path) -> int:
    """Prints the file with absolute links, or says which links lead nowhere."""
    text = path.read_text(encoding="utf-8")
    if not re.match(r"https?://[^/]", base):
        print(f"error: BASE_URL = {base!r}, but must begin with https://", file=sys.stderr)
        return 2
    if lost := missing(text, path.parent):
        print(f"error: {path} links to what does not exist: {', '.join(lost)}", file=sys.stderr)
        return 2
    sys.stdout.write(absolute(text, base))
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("base_url")
    parser.add_argument("file", nargs="?", type=Path, default=Path("README.md"))
    arguments = parser.parse_args()
    sys.exit(main(arguments.base_url, arguments.file))
