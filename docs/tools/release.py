"""What a release asks of the repository's files.

    python docs/tools/release.py check v0.1.0   # versions, dates and addresses agree with the tag
    python docs/tools/release.py notes          # the newest section of CHANGELOG.md, links absolute
    python docs/tools/release.py address https://HOST/OWNER/NAME https://HOST/PAGES

`address` writes the repository's address and the documentation's into every file that has one;
until then they are placeholders beneath `.invalid`, which no name server answers for, and `check`
refuses them.
"""

import argparse
import re
import sys
import tomllib
from pathlib import Path

import absolute_links

ROOT = Path(__file__).parents[2]
# Where an address stands, beside pyproject.toml, from which mkdocs and the README's links take it.
ADDRESSED = ("pyproject.toml", "Cargo.toml", "CITATION.cff")
PLACEHOLDER = ".invalid"


def read(name: str) -> str:
    """A file of the repository."""
    return (ROOT / name).read_text(encoding="utf-8")


def find_addresses() -> dict[str, str]:
    """The two addresses, by their names in pyproject.toml."""
    urls: dict[str, str] = tomllib.loads(read("pyproject.toml"))["project"]["urls"]
    return {name: urls[name] for name in ("Repository", "Documentation")}


def find_versions() -> dict[str, str]:
    """The version in every place that has one."""
    cargo = tomllib.loads(read("Cargo.toml"))["workspace"]
    crates = {
        f"Cargo.toml, {name}": dependency["version"]
        for name, dependency in cargo["dependencies"].items()
        if name.startswith("hdp-fast")
    }
    citation = re.search(r"^version: (\S+)$", read("CITATION.cff"), re.MULTILINE)
    cited = citation[1] if citation else "no version"
    return {"Cargo.toml": cargo["package"]["version"], **crates, "CITATION.cff": cited}


def find_section(version: str) -> tuple[str, str]:
    """The title and the text of a version's section in CHANGELOG.md."""
    pattern = rf"^## \[?{re.escape(version)}\b.*?$"
    changelog = read("CHANGELOG.md")
    title = re.search(pattern, changelog, re.MULTILINE)
    if not title:
        raise SystemExit(f"error: CHANGELOG.md has no section for {version}")
    text = re.split(r"^## ", changelog[title.end() :], maxsplit=1, flags=re.MULTILINE)[0]
    return title[0], text.strip() + "\n"


def find_faults(tag: str) -> list[str]:
    """What keeps this checkout from being released under the tag."""
    version = tag.removeprefix("v")
    faults = [] if tag.startswith("v") else [f"tag = {tag}, but must begin with v"]
    for place, value in find_versions().items():
        if value != version:
            faults.append(f"{place} has version {value}, and the tag {version}")
    if not re.search(r"\d{4}-\d\d-\d\d$", find_section(find_versions()["Cargo.toml"])[0]):
        faults.append("the section of CHANGELOG.md has no date")
    for name, address in find_addresses().items():
        if PLACEHOLDER in address:
            faults.append(f"{name} = {address} is a placeholder: run release.py address")
    return faults


def set_addresses(repository: str, documentation: str) -> None:
    """Writes both addresses into every file that has them."""
    old = find_addresses()
    for name in ADDRESSED:
        text = read(name).replace(old["Repository"], repository.rstrip("/"))
        text = text.replace(old["Documentation"], documentation.rstrip("/"))
        (ROOT / name).write_text(text, encoding="utf-8")


def main() -> int:
    """Runs the step that is named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    steps = parser.add_subparsers(dest="step", required=True)
    steps.add_parser("check").add_argument("tag")
    steps.add_parser("notes").add_argument("version", nargs="?")
    address = steps.add_parser("address")
    address.add_argument("repository")
    address.add_argument("documentation")
    arguments = parser.parse_args()
    if arguments.step == "check":
        faults = find_faults(arguments.tag)
        for fault in faults:
            print(f"error: {fault}", file=sys.stderr)
        return int(bool(faults))
    if arguments.step == "notes":
        _, text = find_section(arguments.version or find_versions()["Cargo.toml"])
        sys.stdout.write(absolute_links.absolute(text, absolute_links.default_base()))
        return 0
    set_addresses(arguments.repository, arguments.documentation)
    return 0


if __name__ == "__main__":
    sys.exit(main())
