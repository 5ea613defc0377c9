"""What the check scripts share: the files of the tree, and how findings are reported."""
import functools
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Public headers that no source file of their module is named after.
HEADER_MODULE = {"status": "core", "use": "report", "grove": "cli"}


def root_from_arguments():
    """The tree to look at: the first argument, or the one that this script is in."""
    return os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else ROOT


@functools.cache
def tree_files(root):
    """Files that belong to the project, relative to root: what git knows or would add; without git, all but build folders."""
    listed = subprocess.run(["git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard"],
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    if listed.returncode == 0:
        return sorted(f for f in set(listed.stdout.splitlines()) if os.path.isfile(os.path.join(root, f)))
    found = []
    for folder, folders, files in os.walk(root):
        folders[:] = [f for f in folders if f not in ("build", "runs", "data") and not f.startswith(".")]
        found += [os.path.relpath(os.path.join(folder, f), root) for f in files]
    return sorted(found)


@functools.cache
def header_module(root, header):
    """Module of include/grove/<header>.h: the one of that name, or the one whose source files are named after the header."""
    if header in HEADER_MODULE or os.path.isdir(os.path.join(root, "src", header)):
        return HEADER_MODULE.get(header, header)
    for pattern in (rf"src/\w+/{header}(_impl)?\.[ch]", rf"src/\w+/{header}_\w+\.[ch]"):
        owners = {f.split("/")[1] for f in tree_files(root) if re.fullmatch(pattern, f)}
        if len(owners) == 1:
            return owners.pop()
    return header


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
        return file.read()


def finish(findings, checked):
    """Prints the findings, 'path:line: what is wrong', and a last line; exit status 1 if there are any."""
    for finding in findings:
        print(finding)
    print(f"{checked}: " + (f"{len(findings)} findings" if findings else "ok"))
    sys.exit(1 if findings else 0)
