"""Checks the licences of all packages in `cargo metadata` on standard input against the list in deny.toml."""

import json
import re
import sys


def allowed(expression: str, known: set[str]) -> bool:
    """Whether an SPDX expression can be met: `/` is an old way to write OR; an exception only adds rights."""
    tokens = re.findall(r"\(|\)|[^\s()]+", expression.replace("/", " OR "))
    position = 0

    def one() -> bool:
        nonlocal position
        token = tokens[position]
        position += 1
        if token == "(":
            found = either()
            position += 1
        else:
            found = token in known
        if position < len(tokens) and tokens[position] == "WITH":
            position += 2
        return found

    def both() -> bool:
        nonlocal position
        found = one()
        while position < len(tokens) and tokens[position] == "AND":
            position += 1
            found &= one()
        return found

    def either() -> bool:
        nonlocal position
        found = both()
        while position < len(tokens) and tokens[position] == "OR":
            position += 1
            found |= both()
        return found

    return either()


def main() -> int:
    text = open(sys.argv[1], encoding="utf-8").read()
    line = re.search(r"^allow = \[(.*?)\]$", text, re.MULTILINE | re.DOTALL)
    known = set(re.findall(r'"([^"]+)"', line.group(1))) if line else set()
    packages = json.load(sys.stdin)["packages"]
    foreign = [package for package in packages if package["source"]]
    odd = [package for package in foreign if not allowed(package["license"] or "none", known)]
    for package in odd:
        print(f"error: {package['name']} {package['version']}: licence {package['license']} is not in deny.toml")
    sources = {package["source"] for package in foreign if not package["source"].startswith("registry+")}
    for source in sources:
        print(f"error: a dependency comes from {source}")
    print(f"{len(foreign)} dependencies, {len(odd)} with other licences")
    return 1 if odd or sources else 0


if __name__ == "__main__":
    sys.exit(main())
