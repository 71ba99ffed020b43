"""Writes the notices and the bill of materials of a program: python3 .ci/notices.py FOLDER PACKAGE < cargo metadata.

`THIRD-PARTY-NOTICES.txt` has the licence files of every crate that is linked into the package; `PACKAGE.cdx.json` lists these
crates with version, licence, source and dependencies (CycloneDX 1.5).
"""

import json
import sys
from pathlib import Path

LICENCE_FILES = ("licen[cs]e*", "LICEN[CS]E*", "COPYING*", "NOTICE*", "UNLICENSE*")


def linked(metadata: dict, root: str) -> dict[str, list[str]]:
    """The packages that `root` links, by id, each with the ids of its own dependencies."""
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    found: dict[str, list[str]] = {}
    waiting = [root]
    while waiting:
        package = waiting.pop()
        if package in found:
            continue
        found[package] = sorted(
            dependency["pkg"]
            for dependency in nodes[package]["deps"]
            if any(kind["kind"] is None for kind in dependency["dep_kinds"])
        )
        waiting += found[package]
    return found


def notices(packages: list[dict]) -> str:
    """Every distinct licence text, below the packages that it covers."""
    covered: dict[str, list[str]] = {}
    for package in packages:
        folder = Path(package["manifest_path"]).parent
        files = sorted({path for pattern in LICENCE_FILES for path in folder.glob(pattern) if path.is_file()})
        texts = [path.read_text(encoding="utf-8", errors="replace").strip() for path in files]
        if not texts:
            texts = [f"No licence file in the package; {package['repository'] or 'no repository is named'}."]
        for text in texts:
            covered.setdefault(text, []).append(f"{package['name']} {package['version']} ({package['license']})")
    return "\n\n".join(f"{'=' * 80}\n{chr(10).join(names)}\n{'=' * 80}\n\n{text}" for text, names in covered.items()) + "\n"


def reference(package: dict) -> str:
    return f"pkg:cargo/{package['name']}@{package['version']}"


def bill(root: dict, packages: list[dict], links: dict[str, list[str]], names: dict[str, dict]) -> dict:
    """The packages as CycloneDX."""

    def component(package: dict) -> dict:
        licence = [{"expression": package["license"].replace("/", " OR ")}] if package["license"] else []
        return {
            "type": "application" if package is root else "library",
            "bom-ref": reference(package),
            "name": package["name"],
            "version": package["version"],
            "purl": reference(package),
            "licenses": licence,
        }

    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": component(root)},
        "components": [component(package) for package in packages if package is not root],
        "dependencies": [
            {"ref": reference(package), "dependsOn": [reference(names[link]) for link in links[package["id"]]]}
            for package in packages
        ],
    }


def main() -> int:
    folder, name = Path(sys.argv[1]), sys.argv[2]
    metadata = json.load(sys.stdin)
    names = {package["id"]: package for package in metadata["packages"]}
    root = next(package for package in names.values() if package["name"] == name)
    links = linked(metadata, root["id"])
    packages = sorted((names[package] for package in links), key=lambda package: (package["name"], package["version"]))
    foreign = [package for package in packages if package["source"]]
    (folder / "THIRD-PARTY-NOTICES.txt").write_text(notices(foreign), encoding="utf-8")
    text = json.dumps(bill(root, packages, links, names), indent=2, ensure_ascii=False)
    (folder / f"{name}.cdx.json").write_text(text + "\n", encoding="utf-8")
    print(f"notices of {len(foreign)} crates, bill of materials of {len(packages)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
