"""What a release is made of: notices, versions, addresses, workflows, links that lead on."""

import base64
import hashlib
import re
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from cases import each_case
from scripts import loaded

ROOT = Path(__file__).parents[2]
TOOLS = ROOT / "docs" / "tools"
WORKFLOWS = ROOT / ".github" / "workflows"
BASE = "https://example.org/blob/v1"
README = "# hdp_fast\n\n[a](docs/start/install.md) ![p](docs/figures/hybrid_model.svg)\n"

# Python 3.11.4 has filters.
SAFELY = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}

pytestmark = pytest.mark.skipif(not TOOLS.exists(), reason="needs the repository")


@pytest.fixture(scope="module")
def links():
    with loaded(TOOLS / "absolute_links.py") as module:
        yield module


@pytest.fixture(scope="module")
def release():
    with loaded(TOOLS / "release.py") as module:
        yield module


def lines_of_record(wheel):
    record = wheel.read("hdp_fast-1.dist-info/RECORD").decode()
    return dict(line.split(",", 1) for line in record.splitlines())


def test_a_wheel_leads_somewhere_and_its_record_holds(links, tmp_path, capsys):
    path = tmp_path / "hdp_fast-1-cp311-abi3-linux.whl"
    metadata = f"Metadata-Version: 2.4\nName: hdp-fast\n\n{README}"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(zipfile.ZipInfo("hdp_fast/x.so", (1980, 1, 1, 0, 0, 0)), b"\0" * 99)
        wheel.writestr("hdp_fast-1.dist-info/METADATA", metadata)
        record = "hdp_fast/x.so,sha256=0,99\nhdp_fast-1.dist-info/METADATA,sha256=0,1\n"
        wheel.writestr("hdp_fast-1.dist-info/RECORD", record + "hdp_fast-1.dist-info/RECORD,,\n")
    for _ in range(2):  # once more changes nothing
        assert links.main(BASE, [path]) == 0
        with zipfile.ZipFile(path) as wheel:
            assert wheel.testzip() is None
            shown = wheel.read("hdp_fast-1.dist-info/METADATA")
            lines = lines_of_record(wheel)
            assert wheel.read("hdp_fast/x.so") == b"\0" * 99
        assert shown.decode().endswith(
            f"[a]({BASE}/docs/start/install.md)"
            " ![p](https://example.org/raw/v1/docs/figures/hybrid_model.svg)\n"
        )
        digest = base64.urlsafe_b64encode(hashlib.sha256(shown).digest()).decode().rstrip("=")
        assert lines["hdp_fast-1.dist-info/METADATA"] == f"sha256={digest},{len(shown)}"
        assert lines["hdp_fast/x.so"] == "sha256=0,99"
    assert not list(tmp_path.glob("*.new"))
    assert capsys.readouterr().out == ""


def test_an_sdist_leads_somewhere_and_keeps_all_else(links, tmp_path):
    source = tmp_path / "hdp_fast-1"
    (source / "python").mkdir(parents=True)
    for name in ("PKG-INFO", "README.md", "python/README.md"):
        (source / name).write_text(README)
    path = tmp_path / "hdp_fast-1.tar.gz"
    with tarfile.open(path, "w:gz") as packed:
        packed.add(source, source.name)
    assert links.main(BASE, [path]) == 0
    with tarfile.open(path) as packed:
        packed.extractall(tmp_path / "out", **SAFELY)
    out = tmp_path / "out" / "hdp_fast-1"
    for name in ("PKG-INFO", "README.md"):
        assert f"({BASE}/docs/start/install.md)" in (out / name).read_text()
    assert (out / "python/README.md").read_text() == README


def test_a_description_that_leads_nowhere_is_not_packed(links):
    with pytest.raises(SystemExit, match=r"lost\.md"):
        links.rewrite(b"[a](docs/lost.md)", BASE)


def test_addresses_agree_and_are_placeholders_or_none_is(release):
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]
    cargo = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]
    citation = (ROOT / "CITATION.cff").read_text()
    assert cargo["repository"] == urls["Repository"]
    assert f"repository-code: {urls['Repository']}\n" in citation
    assert f"url: {urls['Documentation']}\n" in citation
    for name in ("Changelog", "Security"):
        assert urls[name].startswith(f"{urls['Repository']}/blob/main/")
    assert len({release.PLACEHOLDER in url for url in urls.values()}) == 1


def test_addresses_are_written_everywhere(release, tmp_path, monkeypatch):
    for name in release.ADDRESSED:
        (tmp_path / name).write_text((ROOT / name).read_text())
    old = release.find_addresses()
    monkeypatch.setattr(release, "ROOT", tmp_path)
    release.set_addresses("https://example.org/a/b/", "https://example.org/docs")
    new = {"Repository": "https://example.org/a/b", "Documentation": "https://example.org/docs"}
    assert release.find_addresses() == new
    texts = [(tmp_path / name).read_text() for name in release.ADDRESSED]
    assert all(new["Repository"] in text for text in texts)
    assert not any(address in text for address in old.values() for text in texts)


def test_versions_agree(release):
    assert len(set(release.find_versions().values())) == 1, release.find_versions()


def test_a_release_is_refused_by_what_is_missing(release, tmp_path, monkeypatch, capsys):
    for name in (*release.ADDRESSED, "CHANGELOG.md"):
        (tmp_path / name).write_text((ROOT / name).read_text())
    monkeypatch.setattr(release, "ROOT", tmp_path)
    version = release.find_versions()["Cargo.toml"]
    assert any("version" in fault for fault in release.find_faults("v99.0.0"))
    assert any("begin with v" in fault for fault in release.find_faults(version))
    release.set_addresses("https://example.org/a/b", "https://example.org/docs")
    changelog = tmp_path / "CHANGELOG.md"
    text = re.sub(
        r"^(## \[[\d.]+\]).*$", r"\1 - unreleased", changelog.read_text(), count=1, flags=re.M
    )
    changelog.write_text(text)
    assert release.find_faults(f"v{version}") == ["the section of CHANGELOG.md has no date"]
    changelog.write_text(text.replace("unreleased", "2026-12-01", 1))
    assert release.find_faults(f"v{version}") == []


def test_notes_are_the_section_of_the_version(release, tmp_path, monkeypatch):
    text = "# Changelog\n\n## [0.2.0] - 2027-01-01\n\nNew.\n\n## [0.1.0] - 2026-12-01\n\nOld.\n"
    (tmp_path / "CHANGELOG.md").write_text(text)
    monkeypatch.setattr(release, "ROOT", tmp_path)
    assert release.find_section("0.2.0")[1] == "New.\n"
    assert release.find_section("0.1.0")[1] == "Old.\n"
    with pytest.raises(SystemExit, match=r"no section for 0\.3\.0"):
        release.find_section("0.3.0")


def test_notices_are_those_of_the_lock_file():
    """`make lint` asks cargo which crates are linked; this needs none, and sees a version move."""
    with loaded(TOOLS / "notices.py") as notices:
        listed = notices.read_titles((ROOT / "THIRD_PARTY_NOTICES.txt").read_text())
    locked = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    assert listed <= {f"{crate['name']} {crate['version']}" for crate in locked}
    names = {title.partition(" ")[0] for title in listed}
    assert {"pyo3", "numpy", "ed25519-dalek", "rayon-core", "dlmalloc"} <= names
    assert len(listed) > 50


def test_crates_carry_licenses_and_notices():
    for crate in ("core", "device"):
        for name in ("LICENSE", "THIRD_PARTY_NOTICES.txt"):
            copied = (ROOT / "rust" / crate / name).read_bytes()
            assert copied == (ROOT / name).read_bytes()


@each_case("path", sorted(WORKFLOWS.glob("*.yml")))
def test_actions_are_pinned_and_jobs_have_least_permissions(path):
    text = path.read_text()
    assert "\npermissions: {}\n" in text
    for action in re.findall(r"uses: (.*)", text):
        assert re.fullmatch(r"\./\.github/workflows/\w+\.yml|\S+@[0-9a-f]{40} # v[\d.]+", action)
    checkouts = text.count("uses: actions/checkout@")
    assert text.count("persist-credentials: false") == checkouts
    assert not re.search(r"\$\{\{ *secrets\.|pull_request_target", text)
    writes = re.findall(r"^ +(\S+): write(.*)$", text, re.MULTILINE)
    assert all(reason.startswith(" # ") for _, reason in writes), "a reason for each"
    assert not writes or path.stem in {"release", "docs"}


@each_case("path", sorted(WORKFLOWS.glob("*.yml")))
def test_workflows_call_verbs_and_scripts_that_exist(path):
    text = path.read_text()
    makefile = (ROOT / "Makefile").read_text()
    for verb in re.findall(r"run: make ([a-z]+)", text):
        assert re.search(rf"^{verb}:", makefile, re.MULTILINE) or verb == "wheels"
    for script in re.findall(r"(?:docs/tools|tests|\.ci)/[\w./]+", text):
        assert (ROOT / script).exists(), script
