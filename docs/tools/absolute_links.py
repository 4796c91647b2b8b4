"""Makes the relative links of the README absolute, for readers who see nothing else.

    python docs/tools/absolute_links.py README.md > OUTPUT
    python docs/tools/absolute_links.py [--smallest] dist/*.whl dist/*.tar.gz

A package index shows README.md alone, where `docs/start/install.md` leads nowhere. A Markdown file
is printed; in a wheel or an sdist the description that an index shows, and the sdist's own
README.md, are replaced in place. The address is that of the files at the tag of this version, by
`[project.urls]` of pyproject.toml; --base names another. Links within the page, addresses that have
a scheme, and code stay as they are. Pictures are asked for at /raw/ where the address says /blob/,
which is a page around a file. A link to a file that does not exist is an error. --smallest looks
for the shortest form of what it compresses, by zopfli: 3 % off a wheel for minutes of work.
"""

import argparse
import base64
import gzip
import hashlib
import io
import re
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
# Code, which stays, or a link or picture: its text up to the address, and the address.
PIECE = re.compile(
    r"^(?:```|~~~).*?^(?:```|~~~)[ \t]*$|`[^`\n]*`"
    r"|(?P<text>(?:!\[[^\]]*)?\]\()(?P<address>[^)\s]+)",
    re.MULTILINE | re.DOTALL,
)
ABSOLUTE = re.compile(r"[a-z][a-z0-9+.-]*:|#|//", re.IGNORECASE)


def default_base() -> str:
    """The repository's files at the tag of this version."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    cargo = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))
    return f"{project['urls']['Repository']}/blob/v{cargo['workspace']['package']['version']}"


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


def rewrite(content: bytes, base: str) -> bytes:
    """A Markdown file, or the metadata of a distribution, with absolute links."""
    text = content.decode("utf-8")
    if lost := missing(text, ROOT):
        raise SystemExit(f"error: README.md links to what does not exist: {', '.join(lost)}")
    return absolute(text, base).encode("utf-8")


def rewrite_wheel(path: Path, base: str, smallest: bool = False) -> None:
    """Replaces the description in a wheel, and its line in the wheel's RECORD."""
    with zipfile.ZipFile(path) as wheel:
        members = {info: wheel.read(info) for info in wheel.infolist()}
    (metadata,) = (info for info in members if info.filename.endswith(".dist-info/METADATA"))
    (record,) = (info for info in members if info.filename.endswith(".dist-info/RECORD"))
    members[metadata] = rewrite(members[metadata], base)
    digest = base64.urlsafe_b64encode(hashlib.sha256(members[metadata]).digest()).rstrip(b"=")
    line = f"{metadata.filename},sha256={digest.decode()},{len(members[metadata])}"
    old = rf"^{re.escape(metadata.filename)},.*$"
    text, count = re.subn(old, line, members[record].decode("utf-8"), flags=re.MULTILINE)
    if count != 1:
        raise SystemExit(f"error: {path} has {count} lines for its METADATA in RECORD")
    members[record] = text.encode("utf-8")
    made = path.with_name(path.name + ".new")
    writer = zipfile.ZipFile
    if smallest:
        import zopfli

        writer = zopfli.ZipFile
    with writer(made, "w", zipfile.ZIP_DEFLATED) as wheel:
        for info, content in members.items():
            wheel.writestr(info, content, compresslevel=9)
    made.replace(path)


def rewrite_sdist(path: Path, base: str) -> None:
    """Replaces the description in an sdist, and its README.md."""
    packed = io.BytesIO()
    with tarfile.open(path) as old, tarfile.open(fileobj=packed, mode="w") as new:
        for member in old:
            file = old.extractfile(member) if member.isfile() else None
            content = file.read() if file else b""
            if re.fullmatch(r"[^/]+/(PKG-INFO|README\.md)", member.name):
                content = rewrite(content, base)
                member.size = len(content)
            new.addfile(member, io.BytesIO(content))
    made = path.with_name(path.name + ".new")
    made.write_bytes(gzip.compress(packed.getvalue(), mtime=0))
    made.replace(path)


def main(base: str, paths: list[Path], smallest: bool = False) -> int:
    """Prints or rewrites the files, or says which links lead nowhere."""
    if not re.match(r"https?://[^/]", base):
        print(f"error: --base = {base!r}, but must begin with https://", file=sys.stderr)
        return 2
    for path in paths:
        if path.name.endswith(".whl"):
            rewrite_wheel(path, base, smallest)
        elif path.name.endswith(".tar.gz"):
            rewrite_sdist(path, base)
        else:
            text = path.read_text(encoding="utf-8")
            if lost := missing(text, path.parent):
                print(
                    f"error: {path} links to what does not exist: {', '.join(lost)}",
                    file=sys.stderr,
                )
                return 2
            sys.stdout.write(absolute(text, base))
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--base")
    parser.add_argument("--smallest", action="store_true")
    parser.add_argument("files", nargs="*", type=Path, default=[Path("README.md")])
    arguments = parser.parse_args()
    sys.exit(main(arguments.base or default_base(), arguments.files, arguments.smallest))
