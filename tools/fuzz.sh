#!/usr/bin/env bash
# Runs every fuzz target of a build folder for some seconds each; a crash stops it and names the input that caused it.
#   tools/fuzz.sh BUILD_FOLDER SECONDS
# The inputs found so far stay in BUILD_FOLDER/corpus/<target>; inputs that once crashed stand in tests/data/regress/<target>.
set -euo pipefail

[ $# -eq 2 ] || { echo 'usage: tools/fuzz.sh BUILD_FOLDER SECONDS' >&2; exit 2; }
build=$1 seconds=$2
shopt -s nullglob
count=0
for target in "$build"/fuzz_*; do
  [ -f "$target" ] && [ -x "$target" ] || continue
  name=$(basename "$target")
  corpus=$build/corpus/$name
  mkdir -p "$corpus" "$build/crashes"
  seeds=()
  [ ! -d "tests/data/regress/$name" ] || seeds=("tests/data/regress/$name")
  echo "fuzz: $name for $seconds s" >&2
  # 2 GiB and 10 s: no input of the targets' size may need more.
  "$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
    -artifact_prefix="$build/crashes/$name-" "$corpus" "${seeds[@]}"
  count=$((count + 1))
done
[ "$count" -gt 0 ] || { echo "fuzz: no fuzz_* program in $build" >&2; exit 1; }
echo "fuzz: $count targets, no crash"
