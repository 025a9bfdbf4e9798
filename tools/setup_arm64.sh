#!/usr/bin/env bash
# Prepares cross-building for 64-bit Arm on a Debian machine and running what was built under emulation (make neon).
#   tools/setup_arm64.sh FOLDER
# Installs the cross compiler and qemu when they are missing, and unpacks the libraries' arm64 packages into FOLDER, a system
# root that cmake/aarch64.cmake points the compiler at. The machine's own packages and architectures stay as they are.
# Instant when nothing is missing. MINFER_SETUP=0 turns it off.
set -euo pipefail

tools=(g++-aarch64-linux-gnu qemu-user-static)
# Their dependencies come along: libc, libstdc++, and the libraries behind each -dev package.
libraries=(
  libstdc++6 libfmt-dev nlohmann-json3-dev libcli11-dev libutf8proc-dev libssl-dev libgtest-dev libgmock-dev
)

say() { printf 'setup: %s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }

[ "${MINFER_SETUP:-1}" != 0 ] || exit 0
[ $# -eq 1 ] || fail 'usage: tools/setup_arm64.sh FOLDER'
root=$1
stamp=$root/.packages
if [ "$(cat "$stamp" 2>/dev/null)" = "${libraries[*]}" ] && command -v aarch64-linux-gnu-g++ >/dev/null &&
  command -v qemu-aarch64-static >/dev/null; then
  exit 0
fi
command -v apt-get >/dev/null || fail "this is no Debian system: install ${tools[*]} by hand and unpack the arm64 packages
setup: ${libraries[*]} with what they depend on into $root"

if ! command -v aarch64-linux-gnu-g++ >/dev/null || ! command -v qemu-aarch64-static >/dev/null; then
  as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || fail "as root, run: apt-get install ${tools[*]}"
    as_root=(sudo)
  fi
  say "installing with apt-get: ${tools[*]}"
  apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o Acquire::Retries=3 -o Dpkg::Use-Pty=0)
  "${apt[@]}" update >&2 || fail 'the package lists could not be fetched (is there a network?)'
  "${apt[@]}" install -y --no-install-recommends "${tools[@]}" </dev/null >&2 || fail "could not install ${tools[*]}"
fi

# A second apt with lists, cache and state of its own, which believes to be on an empty arm64 machine.
mkdir -p "$root"
root=$(cd "$root" && pwd)
apt_dir=$(mktemp -d)
trap 'rm -rf "$apt_dir"' EXIT
mkdir -p "$apt_dir"/{lists/partial,archives/partial}
: >"$apt_dir/status"
arm=(apt-get -q -o Acquire::Retries=3 -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Install-Recommends=0
  -o APT::Sandbox::User="$(id -un)" -o Dir::State="$apt_dir" -o Dir::State::lists="$apt_dir/lists" -o Dir::State::status="$apt_dir/status"
  -o Dir::Cache="$apt_dir" -o Dir::Cache::archives="$apt_dir/archives" -o APT::Keep-Downloaded-Packages=true
  -o Debug::NoLocking=true -o 'DPkg::Post-Invoke=' -o 'APT::Update::Post-Invoke=')
say "fetching arm64 packages into $root: ${libraries[*]}"
"${arm[@]}" update >&2 || fail 'the arm64 package lists could not be fetched (is there a network?)'
"${arm[@]}" install -y --download-only "${libraries[@]}" </dev/null >&2 || fail 'the arm64 packages could not be fetched'
for package in "$apt_dir"/archives/*.deb; do
  dpkg-deb -x "$package" "$root"
done
# Links to absolute names would lead out of the folder.
find "$root" -type l -lname '/*' | while read -r link; do
  ln -sfn "$(realpath -m --relative-to="$(dirname "$link")" "$root$(readlink "$link")")" "$link"
done
printf '%s' "${libraries[*]}" >"$stamp"
say 'done'
