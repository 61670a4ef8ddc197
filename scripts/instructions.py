#!/usr/bin/env python3
"""Counts the instructions that the library takes for each write-set, by crate and by function, without a database.

Usage: scripts/instructions.py [--clients N] LIBRARY...        for instance: target/instructions/release/libtrireme.so

Valgrind runs three nodes of `trireme bench provider` (make build) and counts for some seconds. On a shared machine a count
says more than a time: two runs of one library differ by one or two percent. The second library is compared with the first.
Valgrind hides the vDSO, so the library must be built without direct use of it:
  RUSTFLAGS="--cfg=rustix_use_libc" cargo build --release -p trireme-provider --target-dir target/instructions
"""

import argparse
import collections
import glob
import re
import subprocess
import sys
import tempfile
import time

WRITE_SET = "trireme_certification::certification::Certification::certify"
WARM_UP_S, COUNTED_S = 25, 14


def count(library, clients):
    """Returns instructions and calls by function."""
    with tempfile.TemporaryDirectory() as out:
        command = ["valgrind", "--tool=callgrind", "--trace-children=yes", f"--callgrind-out-file={out}/%p.out"]
        command += ["target/release/trireme", "bench", "provider", "--systems", f"measured={library}", "--nodes", "3"]
        command += ["--clients", str(clients), "--durability", "os", "--repetitions", "1", "--out", f"{out}/report"]
        bench = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for wait_s, request in [(WARM_UP_S, "--zero"), (COUNTED_S, "--dump")]:
            time.sleep(wait_s)
            subprocess.run(["callgrind_control", request], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        bench.wait()
        instructions, calls = collections.Counter(), collections.Counter()
        for dump in glob.glob(f"{out}/*.out.1"):
            add(dump, instructions, calls)
    if not calls[WRITE_SET]:
        sys.exit(f"instructions: {library} has certified nothing under valgrind: run the bench without it, and see its log")
    return instructions, calls


def add(dump, instructions, calls):
    """Adds one process's dump (valgrind.org/docs/manual/cl-format.html)."""
    names, function, callee, is_call = {}, None, None, False

    def name(text):
        number, new = re.match(r"(\(\d+\))(?: (.*))?", text).groups()
        if new:
            names[number] = re.sub(r"::h[0-9a-f]{16}|'\d+$", "", new)
        return names[number]

    for line in open(dump, errors="replace"):
        if line.startswith("fn="):
            function = name(line[3:-1])
        elif line.startswith("cfn="):
            callee = name(line[4:-1])
        elif line.startswith("calls="):
            calls[callee] += int(line[6:].split()[0])
            is_call = True
        elif re.match(r"[0-9+*-]", line):
            # The line behind "calls=" has what the called function took.
            if not is_call:
                instructions[function] += int(line.split()[1])
            is_call = False


def crate(function):
    found = re.search(r"\b(trireme\w*|[a-z_0-9]+)::", function)
    return found.group(1) if found else "libc"


def table(title, rows, least):
    print(f"\n{title}")
    for key in sorted(rows, key=lambda key: -rows[key][-1]):
        if max(rows[key]) >= least:
            print(" ".join(f"{value:9.0f}" for value in rows[key]), " ", key[:120])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--clients", type=int, default=1, help="of each node")
    parser.add_argument("library", nargs="+")
    arguments = parser.parse_args()
    by_function, by_crate = collections.defaultdict(list), collections.defaultdict(list)
    for number, library in enumerate(arguments.library):
        instructions, calls = count(library, arguments.clients)
        total = sum(instructions.values()) / calls[WRITE_SET]
        print(f"{library}: {total:.0f} instructions for each write-set on each node")
        for function, taken in instructions.items():
            for key, rows in [(function, by_function), (crate(function), by_crate)]:
                rows[key] += [0.0] * (number + 1 - len(rows[key]))
                rows[key][number] += taken / calls[WRITE_SET]
    for rows in (by_function, by_crate):
        for values in rows.values():
            values += [0.0] * (len(arguments.library) - len(values))
    table("by crate", by_crate, 100)
    table("by function", by_function, 250)


if __name__ == "__main__":
    main()
