#!/usr/bin/env bash
# Runs the NEON kernels under emulation: every kernel against the reference, then whole models whose logits must have the same
# SHA-256 as on this machine, for every KV type.
#   tools/check_arm64.sh ARM_BUILD HOST_MINFER SYSTEM_ROOT [MODEL.gguf ...]
# Without models: those of tests/data/models, and the small ones of MINFER_CASES (default ../shared/cases) when it is there.
# GTEST_FILTER chooses among the kernel tests, as in every test program.
set -euo pipefail
shopt -s nullglob globstar

[ $# -ge 3 ] || { echo 'usage: tools/check_arm64.sh ARM_BUILD HOST_MINFER SYSTEM_ROOT [MODEL.gguf ...]' >&2; exit 2; }
build=$1 host=$2 root=$3
shift 3
emulated=(qemu-aarch64-static -L "$root")

"${emulated[@]}" "$build/backend_test" --gtest_brief=1

models=("$@")
if [ ${#models[@]} -eq 0 ]; then
  models=(tests/data/models/*.gguf)
  for model in "${MINFER_CASES:-../shared/cases}"/models/**/*.gguf; do
    [ "$(stat -c %s "$model")" -gt 4000000 ] || models+=("$model")
  done
fi
# 38 tokens, so that every form of the matmul kernels has its turn; 14 where a model's context is shorter.
short=1,2,3,4,5,6,7,8,2,1,5,3,7,4
long=$short,6,1,2,8,3,5,8,8,1,3,2,4,7,5,6,2,1,7,3,4,6,8,5,1
paths=('--isa neon' '--isa neon --token-by-token --threads 1' '--isa scalar')

count=0 different=0 refused=0
for model in "${models[@]}"; do
  tokens=$long
  "$host" logits "$model" --tokens "$tokens" --sha256 >/dev/null 2>&1 || tokens=$short
  for kv in f32 f16 bf16 q8_0; do
    args=(logits "$model" --tokens "$tokens" --sha256 --cache-type "$kv")
    # What is refused here (q8_0 where heads are no multiple of 32, a model this program does not read) must be refused there,
    # in the same words.
    want=$("$host" "${args[@]}" 2>&1) || refused=$((refused + 1))
    for path in "${paths[@]}"; do
      read -ra flags <<<"$path"
      got=$("${emulated[@]}" "$build/minfer" "${args[@]}" "${flags[@]}" 2>&1) || true
      count=$((count + 1))
      [ "$got" = "$want" ] && continue
      different=$((different + 1))
      printf 'arm64: %s, KV %s, %s: found %s, expected %s\n' "$model" "$kv" "$path" "$got" "$want"
    done
  done
done
echo "arm64: ${#models[@]} models, $count runs ($((refused * ${#paths[@]})) refused alike), $different differ from this machine"
[ "$different" -eq 0 ] && [ "$count" -gt $((refused * ${#paths[@]})) ]
