#!/usr/bin/env python3
"""The shared libraries export grv_ names only, and libgrove_base needs no MPI (STYLE.md 5 and 60, design.md 5).

    check_symbols.py libgrove_base.so libgrove.so
"""
import os
import subprocess
import sys

import house

NOT_IN_BASE = ("libmpi", "libpng", "libdnnl", "libopen-rte")


def lines_of(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()


def main():
    libraries, findings, count = sys.argv[1:], [], 0
    if not libraries:
        sys.exit(__doc__)
    for library in libraries:
        name = os.path.basename(library)
        exported = [line.split()[-1] for line in lines_of("nm", "-D", "--defined-only", library)]
        count += len(exported)
        if not exported:
            findings.append(f"{name}: exports nothing")
        findings += [f"{name}: exports '{symbol}', which does not start with grv_" for symbol in exported if not symbol.startswith("grv_")]
        if name.startswith("libgrove_base"):
            needed = [line.split("[")[1].rstrip("]") for line in lines_of("readelf", "-d", library) if "(NEEDED)" in line]
            findings += [f"{name}: needs {other}" for other in needed if other.startswith(NOT_IN_BASE)]
    house.finish(findings, f"{count} exported symbols of {len(libraries)} libraries")


if __name__ == "__main__":
    main()
