#!/usr/bin/env python3
"""Each public header compiles alone and twice, as C11 and as C++17, without warnings.

    check_headers.py [tree]        compilers from CC and CXX, by default cc and c++
"""
import os
import subprocess

import house

LANGUAGES = [
    ("CC", "cc", ["-x", "c", "-std=c11", "-Wstrict-prototypes", "-Wc++-compat"]),
    ("CXX", "c++", ["-x", "c++", "-std=c++17"]),
]
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Wno-sign-conversion", "-Wundef", "-Werror"]


def main():
    root, findings = house.root_from_arguments(), []
    headers = [f for f in house.tree_files(root) if f.startswith("include/grove/") and f.endswith(".h")]
    for path in headers:
        name = path.removeprefix("include/")
        for variable, default, options in LANGUAGES:
            compiler = os.environ.get(variable) or default
            command = [compiler, *options, *WARNINGS, "-fsyntax-only", "-I", os.path.join(root, "include"), "-"]
            done = subprocess.run(command, input=f'#include "{name}"\n#include "{name}"\n', stderr=subprocess.PIPE, text=True)
            if done.returncode:
                findings.append(f"{path}:1: not accepted by {compiler} {options[2]}:\n{done.stderr.rstrip()}")
    house.finish(findings, f"{len(headers)} public headers compiled alone")


if __name__ == "__main__":
    main()
