#!/usr/bin/env bash
# Reports long functions and files (STYLE.md 12); tells, does not fail. usage: check_sizes.sh [tree]
# A function is what stands between a '{' and a '}' in the first column, as clang-format leaves it.
set -eu
cd "${1:-$(dirname "$0")/..}"
function_lines=60
file_lines=800

list() { find src include tests bench -name '*.[ch]' -not -path 'src/kernels/*' 2>/dev/null | sort; }

list | xargs -r awk -v limit=$function_lines '
    FNR == 1          { inside = 0 }
    /^[A-Za-z].*\(/   { name = $0; sub(/\(.*/, "", name); sub(/.*[ *]/, "", name) }
    /^\{/             { start = FNR; inside = 1 }
    /^\}/ && inside   { n = FNR - start - 1; inside = 0
                        functions++; if (n > 40) long++
                        if (n > limit) printf "%s:%d: %s has %d lines\n", FILENAME, start, name, n }
    END               { printf "%d functions, %d longer than 40 lines (kernels are exempt)\n", functions, long }'
list | xargs -r wc -l | awk -v limit=$file_lines '$2 != "total" { files++; if ($1 > limit) printf "%s: %d lines\n", $2, $1 }
    END { printf "%d files; those above %d lines are listed\n", files, limit }'
