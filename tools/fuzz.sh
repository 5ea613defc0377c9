#!/usr/bin/env bash
# Builds the libFuzzer programs of tests/fuzz with clang, address and undefined-behaviour sanitizers, and runs them at low priority.
# usage: tools/fuzz.sh SECONDS [name...]       e.g. tools/fuzz.sh 1200, or tools/fuzz.sh 60 store_chunk; all names if none is given
#   JOBS=2      so many targets at a time (default: half the cores)
# What is found grows build/fuzz/corpus/<name>; a crash lies, minimised, in build/fuzz/crashes/<name>, together with its report.
# Crashes that were fixed belong into tests/corpus/<name>, where ./check replays them. Exit status 1 if anything was found.
set -u
cd "$(dirname "$0")/.." || exit 2
readonly seconds=${1:?usage: tools/fuzz.sh SECONDS [name...]}
readonly jobs=${JOBS:-$((($(nproc) + 1) / 2))} max_bytes=4096
shift
command -v clang >/dev/null || { echo "fuzz: clang is needed (Debian: clang, libclang-rt-14-dev)" >&2; exit 2; }
mkdir -p build/fuzz
{ cmake --preset fuzz && nice -n 19 cmake --build --preset fuzz -j"$jobs" -- --quiet; } >build/fuzz/build.log 2>&1 || {
    tail -n 40 build/fuzz/build.log
    echo "fuzz: the build failed; all of it is in build/fuzz/build.log" >&2
    exit 2
}

run_target() { # name
    local name=$1 program=build/fuzz/tests/fuzz/libfuzzer_$1 corpus=build/fuzz/corpus/$1 crashes=build/fuzz/crashes/$1
    mkdir -p "$corpus" "$crashes"
    local dictionary=() log=build/fuzz/$name.log
    [ -f "tests/fuzz/$name.dict" ] && dictionary=("-dict=tests/fuzz/$name.dict")
    # the stored corpus is read, never changed; new inputs go into the first folder
    nice -n 19 "$program" -max_total_time="$seconds" -max_len=$max_bytes -rss_limit_mb=2048 -malloc_limit_mb=512 -timeout=10 -print_final_stats=1 \
        -artifact_prefix="$crashes/" "${dictionary[@]}" "$corpus" "tests/corpus/$name" >"$log" 2>&1
    local status=$?
    for crash in "$crashes"/crash-* "$crashes"/oom-* "$crashes"/timeout-*; do
        [ -f "$crash" ] || continue
        "$program" -minimize_crash=1 -max_total_time=30 -exact_artifact_path="$crash.min" "$crash" >/dev/null 2>&1
        [ -f "$crash.min" ] || cp "$crash" "$crash.min"
        "$program" "$crash.min" >"$crash.txt" 2>&1
        echo "fuzz: $name: FOUND $crash.min ($(stat -c %s "$crash.min") bytes): $(grep -m1 -E 'ERROR|runtime error|SUMMARY' "$crash.txt")"
    done
    echo "fuzz: $name: $(grep -oE 'stat::number_of_executed_units: [0-9]+' "$log" | grep -oE '[0-9]+') inputs, coverage $(grep -oE 'cov: [0-9]+' "$log" | tail -n 1 | grep -oE '[0-9]+'), $(ls "$corpus" | wc -l) in the corpus, exit status $status"
    return $status
}
export -f run_target
export seconds max_bytes

if [ $# -eq 0 ]; then
    names=()
    for source in tests/fuzz/fuzz_*.c; do name=${source##*/fuzz_}; names+=("${name%.c}"); done
    set -- "${names[@]}"
fi
printf '%s\n' "$@" | xargs -P "$jobs" -I{} bash -c 'run_target {}' || exit 1
