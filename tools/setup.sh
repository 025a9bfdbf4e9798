#!/usr/bin/env bash
# Installs the Debian packages that are missing, and nothing when none are (then it takes milliseconds, no network).
#   tools/setup.sh GROUP...    groups: build (compiler, libraries, tests), dev (formatting, lint, fuzzing, bare-system test)
# MINFER_SETUP=0 turns it off, for machines whose tools come from elsewhere.
set -euo pipefail

build_packages=(
  g++ cmake ninja-build ccache pkg-config
  libfmt-dev nlohmann-json3-dev libcli11-dev libutf8proc-dev libssl-dev libreadline-dev
  libcurl4-openssl-dev libgtest-dev libgmock-dev
  python3 python3-pip
)
dev_packages=(clang clang-format clang-tidy libclang-rt-dev debootstrap)
# A package whose only use is one command need not come from Debian: the command is enough.
declare -A command_of=([cmake]=cmake [ninja-build]=ninja [ccache]=ccache [python3]=python3 [python3-pip]=pip3
  [clang-format]=clang-format [clang-tidy]=clang-tidy [debootstrap]=debootstrap)

say() { printf 'setup: %s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }

[ "${MINFER_SETUP:-1}" != 0 ] || exit 0

wanted=()
for group in "$@"; do
  case $group in
    build) wanted+=("${build_packages[@]}") ;;
    dev) wanted+=("${dev_packages[@]}") ;;
    *) fail "unknown group '$group', expected build or dev" ;;
  esac
done
[ ${#wanted[@]} -gt 0 ] || fail 'usage: tools/setup.sh build|dev ...'

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  missing=()
  for tool in g++ cmake ninja pkg-config python3; do
    command -v "$tool" >/dev/null || missing+=("$tool")
  done
  [ ${#missing[@]} -eq 0 ] || fail "this is no Debian system: install ${missing[*]} by hand; the libraries needed are, by
setup: their Debian names: ${build_packages[*]}"
  exit 0  # CMake names any library that is missing
fi

declare -A installed=()
while read -r state name; do
  [ "$state" = ii ] && installed[$name]=1
done < <(dpkg-query -W -f='${db:Status-Abbrev} ${Package}\n' "${wanted[@]}" 2>/dev/null || true)

missing=()
for package in "${wanted[@]}"; do
  [ -z "${installed[$package]:-}" ] || continue
  tool=${command_of[$package]:-}
  [ -n "$tool" ] && command -v "$tool" >/dev/null && continue
  missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || fail "as root, run: apt-get install ${missing[*]}"
  as_root=(sudo)
fi
say "installing with apt-get: ${missing[*]}"
apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o Acquire::Retries=3 -o Dpkg::Use-Pty=0)
"${apt[@]}" update >&2 || fail "the package lists could not be fetched (is there a network?); needed: ${missing[*]}"
"${apt[@]}" install -y --no-install-recommends "${missing[@]}" </dev/null >&2 ||
  fail "apt-get could not install: ${missing[*]}"
say 'done'
