#!/usr/bin/env python3
"""Prints the licence notices of all foreign crates that are linked into the given packages of the workspace.

Usage: scripts/third-party-notices.py PACKAGE...

Their licences ask that copies carry these notices. Fails if a crate has neither a text nor a licence's name.
"""

import json
import pathlib
import re
import subprocess
import sys

NOTICE = re.compile(r"^(licen[cs]e|copying|copyright|notice|unlicense)", re.IGNORECASE)


def metadata():
    host = re.search(r"^host: (.*)$", subprocess.check_output(["rustc", "-vV"], text=True), re.MULTILINE).group(1)
    command = ["cargo", "metadata", "--format-version=1", "--locked", f"--filter-platform={host}"]
    return json.loads(subprocess.check_output(command, text=True))


def linked(data, roots):
    """Ids of all that the roots link to, themselves included: neither build scripts' nor tests' dependencies."""
    nodes = {node["id"]: node for node in data["resolve"]["nodes"]}
    todo, seen = list(roots), set()
    while todo:
        package = todo.pop()
        if package in seen:
            continue
        seen.add(package)
        for dependency in nodes[package]["deps"]:
            if any(kind["kind"] is None for kind in dependency["dep_kinds"]):
                todo.append(dependency["pkg"])
    return seen


def notices(package):
    directory = pathlib.Path(package["manifest_path"]).parent
    files = sorted(file for file in directory.iterdir() if file.is_file() and NOTICE.match(file.name))
    return [file.read_text(errors="replace").strip() for file in files]


def main():
    data = metadata()
    packages = {package["id"]: package for package in data["packages"]}
    roots = [package["id"] for package in data["packages"] if package["name"] in sys.argv[1:] and not package["source"]]
    if not roots or len(roots) != len(sys.argv) - 1:
        sys.exit(__doc__)
    users = {}  # text -> crates with this text
    for package in (packages[id] for id in linked(data, roots)):
        if not package["source"]:
            continue
        if not package["license"]:
            sys.exit(f"third-party-notices: {package['name']} names no licence")
        crate = f"{package['name']} {package['version']} ({package['license']})"
        for text in notices(package) or [f"Licence: {package['license']}. Authors: {', '.join(package['authors'])}"]:
            users.setdefault(text, []).append(crate)
    for text, crates in sorted(users.items(), key=lambda item: sorted(item[1])):
        print("\n".join(sorted(crates)), text, sep="\n\n", end="\n\n" + "-" * 100 + "\n\n")


main()
