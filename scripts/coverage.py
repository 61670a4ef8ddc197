#!/usr/bin/env python3
"""Coverage per core, from the reports REPORT.lcov (lines) and REPORT.json (regions) of cargo-llvm-cov.

Usage: coverage.py REPORT LEAST_PERCENT UNCOVERED_FILE

A crate is compiled more than once (for its own tests, for the simulator). A line or region counts as reached if it was
reached in any of these; llvm-cov's own totals take the best single one for each function.
"""

import json
import re
import sys
from collections import defaultdict
from pathlib import Path

CORES = ("group", "certification", "replicator")
# What only tests, fuzz targets or the model check use.
HELPERS = re.compile(r"/(tests|benches|examples)/|/(tests|fuzzing|samples|strategies|model)\.rs$")
ROOT = Path(__file__).resolve().parent.parent


def core_of(path):
    """The core that a source file belongs to, if its lines count."""
    found = re.search(r"crates/(\w+)/src/", path)
    return found[1] if found and found[1] in CORES and not HELPERS.search(path) else None


def code_lines(path):
    """How many lines a file has up to its tests."""
    lines = Path(path).read_text().splitlines()
    for number, line in enumerate(lines[:-1]):
        if line == "#[cfg(test)]" and lines[number + 1].startswith("mod tests {"):
            return number
    return len(lines)


def read_lines(report):
    """How often each line was reached: {path: {line: count}}."""
    files, counts = defaultdict(lambda: defaultdict(int)), None
    for record in Path(f"{report}.lcov").read_text().splitlines():
        kind, _, value = record.partition(":")
        if kind == "SF":
            counts = files[value] if core_of(value) else None
        elif kind == "DA" and counts is not None:
            line, count = map(int, value.split(",")[:2])
            counts[line] += count
    return files


def read_regions(report):
    """How often each region was reached: {path: {(line, column, end line, end column): count}}."""
    files = defaultdict(lambda: defaultdict(int))
    for function in json.loads(Path(f"{report}.json").read_text())["data"][0]["functions"]:
        names = function["filenames"]
        for *span, count, file, _, kind in function["regions"]:
            # 0: code; the other kinds are expansions, skipped text, gaps and branches.
            if kind == 0 and core_of(names[file]):
                files[names[file]][tuple(span)] += count
    return files


def main():
    report, least, uncovered = sys.argv[1], float(sys.argv[2]), Path(sys.argv[3])
    totals = {core: {"lines": [0, 0], "regions": [0, 0]} for core in CORES}
    missed = []
    lines, regions = read_lines(report), read_regions(report)
    for path in sorted(set(lines) | set(regions)):
        end, text = code_lines(path), Path(path).read_text().splitlines()
        total, name = totals[core_of(path)], Path(path).relative_to(ROOT)
        for what, found in (("lines", lines[path]), ("regions", regions[path])):
            for place, count in found.items():
                first = place if what == "lines" else place[0]
                if first <= end:
                    total[what][0] += count > 0
                    total[what][1] += 1
                    if count == 0:
                        missed.append((str(name), first, what, place))

    at = {}
    for name, line, what, place in missed:
        column = place[1] if what == "regions" else None
        at.setdefault((name, line), []).append(column)
    with uncovered.open("w") as out:
        for (name, line), columns in sorted(at.items()):
            # A line of which only parts were not reached has the columns at which they begin.
            parts = sorted(column for column in columns if column)
            where = f"{name}:{line}" if None in columns else f"{name}:{line}:{','.join(map(str, parts))}"
            source = (ROOT / name).read_text().splitlines()[line - 1].strip()
            out.write(f"{where}: {source}\n")

    enough = True
    for core, total in totals.items():
        percent = {what: 100 * hit / max(of, 1) for what, (hit, of) in total.items()}
        enough &= all(value >= least for value in percent.values())
        print(f"{core:14}" + "".join(f"  {what} {percent[what]:5.1f} % of {total[what][1]:5}" for what in percent))
    print(f"not reached: {len(at)} places, in {uncovered}")
    if not enough:
        sys.exit(f"coverage: less than {least:g} % of a core")


main()
