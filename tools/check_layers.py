#!/usr/bin/env python3
"""Includes go down only, and each third-party header is included in one folder (design.md 2, STYLE.md 4).

    check_layers.py [tree]

A module may include itself, modules of lower layers, and those named in BESIDE. A public header counts as its module.
Intrinsics stay in kernels, '#pragma omp' and omp.h in one file.
"""
import re

import house

LAYERS = [
    {"core"},
    {"kernels"},
    {"tensor", "comm", "store"},
    {"dist", "geom", "mesh"},
    {"graph", "ops", "sim"},
    {"models"},
    {"train", "data", "report", "batch"},
    {"cli"},
]
LAYER = {module: i for i, modules in enumerate(LAYERS) for module in modules}
BESIDE = {("mesh", "geom"), ("graph", "ops"), ("ops", "graph"), ("train", "data"), ("report", "train"), ("report", "data")}

# Third-party headers -> where they may be included: a folder, or one file.
THIRD_PARTY = {
    r"mpi\.h": "src/comm/",
    r"json-c/.*": "src/core/",
    r"yaml\.h": "src/core/",
    r"(zstd|blosc|zlib|lz4|lzma|bzlib|libdeflate)\.h": "src/store/",
    r"png\.h": "src/report/",
    r"xxhash\.h|dlfcn\.h": "src/batch/",
    r"(oneapi/dnnl/)?dnnl.*": "src/ops/",
    r"expat\.h": "src/mesh/",
    r"curl/.*": "src/store/",
    r"(kiss_fft|kiss_fftr|kiss_fftnd).*": "src/sim/",
    r".*intrin\.h|arm_neon\.h|arm_sve\.h|cpuid\.h": "src/kernels/",
    r"omp\.h": "src/core/parallel.c",
}
C_AND_POSIX = re.compile(
    r"(assert|ctype|errno|fenv|float|inttypes|limits|math|setjmp|signal|std\w+|string|strings|time|wchar|dirent|fcntl|glob|libgen|poll|"
    r"pthread|sched|semaphore|spawn|termios|unistd|sys/\w+|arpa/inet|netinet/in)\.h$")
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]')


def module_of(root, path):
    """Module of a source or public header, by its path in the tree."""
    folder, name = path.split("/")[:2] if path.startswith("src/") else ("grove", path.split("/")[-1])
    return name if folder == "src" else house.header_module(root, name.removesuffix(".h"))


def check_project_include(root, here, name):
    if "/" not in name:
        return None if name == "grove_build_info.h" else f"'{name}' must be included as \"module/{name}\""
    there = module_of(root, "include/" + name if name.startswith("grove/") else "src/" + name)
    if there not in LAYER:
        return f"'{name}' belongs to no module that tools/check_layers.py knows"
    if LAYER[there] < LAYER[here] or there == here or (here, there) in BESIDE:
        return None
    return f"{here} (layer {LAYER[here]}) must not include '{name}' of {there} (layer {LAYER[there]})"


def check_system_include(path, name):
    for pattern, place in THIRD_PARTY.items():
        if re.fullmatch(pattern, name):
            return None if path.startswith(place) else f"<{name}> may be included in {place} only"
    return None if C_AND_POSIX.match(name) else f"<{name}> is neither C nor POSIX nor a dependency that tools/check_layers.py knows"


def check_line(root, path, line):
    """What is wrong with a line of a source file, or None."""
    include = INCLUDE.match(line)
    if include and include[1] == '"':
        return check_project_include(root, module_of(root, path), include[2])
    if include:
        return check_system_include(path, include[2])
    if re.match(r"\s*#\s*pragma\s+omp\b", line) and path != THIRD_PARTY[r"omp\.h"]:
        return "'#pragma omp' belongs behind grv_parallel_for"
    return None


def main():
    root, findings = house.root_from_arguments(), []
    sources = [f for f in house.tree_files(root) if f.endswith((".c", ".h")) and f.startswith(("src/", "include/grove/"))]
    for path in sources:
        if module_of(root, path) not in LAYER:
            findings.append(f"{path}:1: its module is in no layer of tools/check_layers.py")
            continue
        for number, line in enumerate(house.read(root, path).splitlines(), 1):
            problem = check_line(root, path, line)
            if problem:
                findings.append(f"{path}:{number}: {problem}")
    house.finish(findings, f"layers of {len(sources)} files")


if __name__ == "__main__":
    main()
