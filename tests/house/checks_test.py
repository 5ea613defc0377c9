#!/usr/bin/env python3
"""Each check script finds what it is there to find: small trees with one fault each, and one without."""
import os
import subprocess
import sys
import tempfile
import unittest

TOOLS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools")
HEADER = """/** @file comm.h
 * A header.
 */
#ifndef GROVE_COMM_H
#define GROVE_COMM_H
%s
#endif
"""


def check(script, files):
    """(exit status, output) of a check script on a tree with these files."""
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
            with open(os.path.join(root, path), "w") as file:
                file.write(text)
        done = subprocess.run([sys.executable, os.path.join(TOOLS, script), root], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return done.returncode, done.stdout


class Checks(unittest.TestCase):
    def finds(self, script, files, *expected):
        status, output = check(script, files)
        self.assertEqual(status, 1, output)
        for text in expected:
            self.assertIn(text, output)

    def accepts(self, script, files):
        status, output = check(script, files)
        self.assertEqual(status, 0, output)

    def test_layers(self):
        source = lambda line: {"src/store/a.c": f"\n{line}\n"}
        self.accepts("check_layers.py", source('#include "core/check.h"'))
        self.accepts("check_layers.py", source('#include "grove/status.h"'))
        self.accepts("check_layers.py", source("#include <zstd.h>"))
        self.finds("check_layers.py", source('#include "train/loop.h"'), "src/store/a.c:2:", "store (layer 2) must not include")
        self.finds("check_layers.py", source('#include "grove/comm.h"'), "must not include")
        self.finds("check_layers.py", source("#  include <mpi.h>"), "src/comm/ only")
        self.finds("check_layers.py", source("#include <fftw3.h>"), "neither C nor POSIX")
        self.finds("check_layers.py", source('#include "a.h"'), 'must be included as "module/a.h"')
        self.finds("check_layers.py", source("#pragma omp parallel"), "behind grv_parallel_for")
        self.finds("check_layers.py", {"src/misc/a.c": "\n"}, "in no layer")

    def test_names(self):
        self.accepts("check_names.py", {"a/README.md": "x", "b/README.md": "see build/work/x and $HOME/root/y\n"})
        self.finds("check_names.py", {"a/x.c": "", "b/x.c": ""}, "b/x.c:1: another file has this name: a/x.c")
        self.finds("check_names.py", {"x.md": "first\nsee " + "/wo" + "rk/there/x\n"}, "x.md:2: a path of one machine")
        self.finds("check_names.py", {"x.md": "https:" + "//files.py" + "pi.example/simple\n"}, "x.md:1: the host of a package registry")

    def test_links(self):
        self.accepts("check_links.py", {"docs/a.md": "[b](../b.md#part) [c](https://example.org/x) `src/*.c`\n```\n`src/no.c`\n```\n", "b.md": "`docs/a.md`\n"})
        self.finds("check_links.py", {"docs/a.md": "one\n[b](b.md)\n"}, "docs/a.md:2: leads nowhere: docs/b.md")
        self.finds("check_links.py", {"src/core/x.c": ""}, "src/core/README.md:1: is missing")
        self.finds("check_links.py", {"a.md": "see `src/no.c`\n"}, "a.md:1: leads nowhere: src/no.c")

    def test_docs(self):
        header = lambda text: {"include/grove/comm.h": HEADER % text}
        self.accepts("check_docs.py", header("/** Adds. Not collective. */\nint grv_add(int a);\n/** A thing. */\ntypedef struct grv_t {\n"
                                             "    int a; /**< first */\n    /** second */\n    int b;\n} grv_t;\n/** Kinds. */\nenum grv_k { GRV_A, GRV_B };"))
        self.finds("check_docs.py", header("int grv_add(int a);"), "comm.h:6: statement 'grv_add()' has no")
        self.finds("check_docs.py", header("/** Adds. */\nint grv_add(int a);"), "does not say whether it is collective")
        self.assertIn("note: include/grove/comm.h:9: field 'b' has no",
                      check("check_docs.py", header("/** A thing. */\ntypedef struct grv_t {\n    int a; /**< first */\n    int b;\n} grv_t;"))[1])
        self.finds("check_docs.py", header("typedef struct grv_t {\n    int a; /**< first */\n} grv_t;"), "comm.h:6: statement 'grv_t' has no")
        self.finds("check_docs.py", header("#define GRV_MAX 3"), "macro 'GRV_MAX' has no")
        self.finds("check_docs.py", header("/** A. Not collective. */\nint grv_a(void);\n\nstatic inline int grv_b(void)\n{\n    return (struct p){1}.x;\n}"),
                   "comm.h:9: statement 'grv_b()' has no")

    def test_headers(self):
        self.accepts("check_headers.py", {"include/grove/comm.h": HEADER % "#include <stdint.h>\nint64_t grv_a(void);"})
        self.finds("check_headers.py", {"include/grove/comm.h": HEADER % "int64_t grv_a(void);"}, "std=c11", "std=c++17")
        self.finds("check_headers.py", {"include/grove/comm.h": HEADER % "int grv_a(int class);"}, "std=c++17")
        self.finds("check_headers.py", {"include/grove/comm.h": "struct grv_a { int x; };\n"}, "std=c11")


if __name__ == "__main__":
    unittest.main()
