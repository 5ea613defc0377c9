#!/usr/bin/env python3
"""Every public declaration in include/grove has a /** */ comment; collective or not is said where ranks meet (STYLE.md 32).

    check_docs.py [tree]

A declaration is a function, type, macro or field of a public struct. A comment stands before it, or after it on the same line as
/**< */. Enumerators may go without where their name says it. So may fields, which are listed as notes for someone to judge.
In headers of COLLECTIVE modules each function's comment says "Collective on ..." or "Not collective", unless the head comment of the
file says that nothing there is collective.
"""
import re

import house

COLLECTIVE = {"comm", "dist", "store", "train"}
NOTHING_COLLECTIVE = re.compile(r"(nothing here|none of these( calls| functions)?) is collective|not collective unless", re.IGNORECASE)
TOKEN = re.compile(r"""(?P<doc>/\*\*.*?\*/)|(?P<comment>/\*.*?\*/|//[^\n]*)|(?P<directive>^[ \t]*\#(?:\\\n|[^\n])*)|(?P<string>"(?:\\.|[^"\\])*")|
                       (?P<open>\{)|(?P<close>\})|(?P<end>;)|(?P<space>\s+)|(?P<other>[^\s{};"/\#]+|[/\#])""", re.DOTALL | re.MULTILINE | re.VERBOSE)


def declarations(text):
    """(line, kind, text, doc comment or None) of each declaration: kind is 'macro', 'statement' or 'field'."""
    found, stack, doc, words, start, last = [], [], None, [], 0, None
    line = 1

    def close_statement(kind):
        nonlocal doc, words, last
        last = None
        if words:
            found.append([start, kind, " ".join(words), doc])
            last = found[-1]
        doc, words = None, []

    for token in TOKEN.finditer(text):
        kind, value = token.lastgroup, token.group()
        if kind == "doc":
            if value.startswith("/**<"):
                if words and stack:            # before the ';' or ',' of what it describes
                    doc = value
                elif last is not None:
                    last[3] = last[3] or value
            elif not words:
                doc = value
        elif kind == "directive":
            macro = re.match(r"\s*#\s*define\s+(\w+)", value)
            if macro and not stack:
                found.append([line, "macro", macro[1], doc])
            if not words:
                doc = None
        elif kind == "open":
            text_before = " ".join(words)
            if text_before == 'extern "C"':
                doc, words = None, []
            elif "struct" in words or "union" in words or "enum" in words:
                body = "enum" if "enum" in words else "struct"
                stack.append((body, start, words, doc))
                doc, words = None, []
            else:                              # body of an inline function, or an initialiser
                stack.append(("body", start, words, doc))
                doc, words = None, []
        elif kind == "close" and stack:        # without an open one it ends extern "C"
            body, opened, before, before_doc = stack.pop()
            start, words, doc = opened, before + ["{}"], before_doc
            if body == "body" and not stack:
                close_statement("statement")
        elif kind == "end":
            scope = stack[-1][0] if stack else "file"
            if scope == "file":
                close_statement("statement")
            elif scope == "struct":
                close_statement("field")
            else:
                doc, words = None, []
        elif kind in ("other", "string"):
            if not words:
                start = line
            words.append(value)
        line += value.count("\n")
    return found


def name_of(kind, text):
    if kind == "macro":
        return text
    if kind == "statement" and (function := re.search(r"(\w+)\s*\(", text.split("__attribute__")[0])) and "typedef" not in text:
        return function[1] + "()"
    return re.sub(r"\s*\{\}|\[.*", "", text).split()[-1].lstrip("*")


def is_exempt(kind, text):
    if kind == "macro":                        # include guard, or helper
        return text.endswith("_H") or not text.startswith("GRV_")
    if kind == "field":                        # named like its type: grv_node_kind kind
        return re.search(r"_(\w+) \1$", text) is not None
    return text.startswith(("_Static_assert", "struct ")) and "(" not in text and "{}" not in text


def check(path, text, module):
    head = re.match(r"\s*/\*\* @file .*?\*/", text, re.DOTALL)
    if not head:
        yield f"{path}:1: the file starts with no '/** @file' comment"
    silent = head and NOTHING_COLLECTIVE.search(re.sub(r"\s*\n \*\s*", " ", head[0]))
    for line, kind, declaration, doc in declarations(text[head.end():] if head else text):
        line += text[:head.end()].count("\n") if head else 0
        if is_exempt(kind, declaration):
            continue
        name = name_of(kind, declaration)
        if kind == "field":
            if not doc:
                print(f"note: {path}:{line}: {kind} '{name}' has no /** */ comment")
        elif not doc:
            yield f"{path}:{line}: {kind} '{name}' has no /** */ comment"
        elif module in COLLECTIVE and name.endswith("()") and not silent and "ollective" not in doc:
            yield f"{path}:{line}: the comment of {name} does not say whether it is collective"


def main():
    root, findings = house.root_from_arguments(), []
    headers = [f for f in house.tree_files(root) if f.startswith("include/grove/") and f.endswith(".h")]
    for path in headers:
        findings += check(path, house.read(root, path), house.header_module(root, path.split("/")[-1].removesuffix(".h")))
    house.finish(findings, f"comments of {len(headers)} public headers")


if __name__ == "__main__":
    main()
