#!/usr/bin/env python3
"""Relative links of the documents lead somewhere, and so do paths in backticks that start with a folder of the tree.
Every folder of src has a README.md.

    check_links.py [tree]

Paths with wildcards or placeholders (*, <name>, {a,b}) and build products are not looked at; code blocks neither.
"""
import os
import re

import house

LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
PATH = re.compile(r"`((?:src|include|tests|tools|bench|docs|cmake|examples)/[\w./-]+)`")


def text_lines(text):
    """(number, line) outside of code blocks."""
    in_block = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            in_block = not in_block
        elif not in_block:
            yield number, line


def main():
    root, findings = house.root_from_arguments(), []
    files = house.tree_files(root)
    documents = [f for f in files if f.endswith(".md") and f != "STYLE.md"]
    modules = sorted({f.split("/")[1] for f in files if f.startswith("src/")})
    findings += [f"src/{module}/README.md:1: is missing" for module in modules if f"src/{module}/README.md" not in files]
    for path in documents:
        for number, line in text_lines(house.read(root, path)):
            links = [os.path.join(os.path.dirname(path), link) for link in LINK.findall(line) if "://" not in link]
            findings += [f"{path}:{number}: leads nowhere: {target}" for target in links + PATH.findall(line)
                         if not os.path.exists(os.path.join(root, target))]
    house.finish(findings, f"links of {len(documents)} documents")


if __name__ == "__main__":
    main()
