#!/usr/bin/env python3
"""File names are unique in the whole tree, and no file names a place that exists only on one machine (STYLE.md 9).

    check_names.py [tree]

Places: absolute paths of home or work folders, and host names of package registries.
"""
import os
import re

import house

REPEATED = {"README.md", "CMakeLists.txt", ".gitignore"}  # one per folder
PLACES = [
    (re.compile(r"(?<![\w.$}/-])/(work|root|home/\w+)/"), "a path of one machine"),
    (re.compile(r"https?://\S*(debian|pypi|npm)|(pypi|npmjs|debian)\.(org|com)|pythonhosted\.org", re.IGNORECASE), "the host of a package registry"),
]


def main():
    root, findings, seen = house.root_from_arguments(), [], {}
    files = house.tree_files(root)
    for path in files:
        name = os.path.basename(path)
        if name not in REPEATED and seen.setdefault(name, path) != path:
            findings.append(f"{path}:1: another file has this name: {seen[name]}")
        if path == "tools/check_names.py" or b"\0" in open(os.path.join(root, path), "rb").read(8192):
            continue
        for number, line in enumerate(house.read(root, path).splitlines(), 1):
            findings += [f"{path}:{number}: {what}: {match[0]}" for pattern, what in PLACES if (match := pattern.search(line))]
    house.finish(findings, f"names of {len(files)} files")


if __name__ == "__main__":
    main()
