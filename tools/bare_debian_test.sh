#!/usr/bin/env bash
# Proves that a clean clone works on a machine with nothing on it: makes a minimal Debian 12 with make, git and CA
# certificates in a folder, clones this repository's HEAD into it, and there runs `make run` twice and `make test`,
# with times. Root only (debootstrap, chroot).
#   tools/bare_debian_test.sh DIR            DIR is made, or used again when a system of this script stands there
#   SUITE=bookworm MIRROR=URL                another release, another mirror (default: the one apt uses here)
#   STEPS="run run test"                     which make targets, in this order
#   CASES=DIR                                test data from outside, seen by the clone as ../shared/cases
# The new system gets this machine's ways to the network: apt's and pip's settings, name servers, CA certificates and the
# environment's proxy and certificate variables. Mounts live in a namespace of their own and vanish with the script.
set -euo pipefail

say() { printf 'bare: %s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }

[ $# -eq 1 ] || { echo 'usage: tools/bare_debian_test.sh DIR' >&2; exit 2; }
[ "$(id -u)" -eq 0 ] || fail 'must run as root'
command -v debootstrap >/dev/null || fail "needs debootstrap: run 'make setup-dev'"
if [ -z "${MINFER_BARE_NAMESPACE:-}" ]; then
  MINFER_BARE_NAMESPACE=1 exec unshare --mount --propagation private -- "$0" "$@"
fi

suite=${SUITE:-bookworm}
steps=${STEPS:-run run test}
repository=$(cd "$(dirname "$0")/.." && pwd)
cases=${CASES:-${MINFER_CASES:-$repository/../shared/cases}}
mkdir -p "$1"
system=$(cd "$1" && pwd)
home=${HOME:?}

# --- the system
if [ ! -e "$system/.minfer-bare" ]; then
  [ -z "$(ls -A "$system")" ] || fail "$system is not empty and not of this script's making"
  mirror=${MIRROR:-$(apt-get indextargets --format '$(CREATED_BY) $(CODENAME) $(REPO_URI)' |
    awk -v suite="$suite" '$1 == "Packages" && $2 == suite && !found { print $3; found = 1 }')}
  [ -n "$mirror" ] || fail "apt knows no mirror of $suite here; name one in MIRROR"
  say "making a minimal Debian ($suite) in $system"
  debootstrap --variant=minbase --include=make,git,ca-certificates "$suite" "$system" "$mirror" >"$system.log" 2>&1 ||
    { tail -n 20 "$system.log" >&2; fail "debootstrap failed; its output is in $system.log"; }
  touch "$system/.minfer-bare"
fi

# --- the way to the network
copy() { # copy PATH...: to the same place in the new system, those that exist
  local path
  for path in "$@"; do
    [ -e "$path" ] || continue
    mkdir -p "$system$(dirname "$path")"
    cp -rLT "$path" "$system$path"
  done
}
rm -rf "$system"/etc/apt/sources.list "$system"/etc/apt/sources.list.d
copy /etc/apt/sources.list /etc/apt/sources.list.d /etc/apt/apt.conf /etc/apt/apt.conf.d /etc/apt/auth.conf \
  /etc/apt/auth.conf.d /etc/apt/keyrings /etc/apt/trusted.gpg.d /etc/pip.conf "$home/.config/pip" "$home/.pip" \
  /etc/resolv.conf /etc/hosts /usr/local/share/ca-certificates
chroot "$system" update-ca-certificates >/dev/null 2>&1 || say 'update-ca-certificates failed'
copy /etc/ssl/certs/ca-certificates.crt

environment=(PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "HOME=$home" LANG=C.UTF-8 TERM="${TERM:-dumb}")
while IFS= read -r -d '' variable; do
  case ${variable%%=*} in
    http_proxy | https_proxy | no_proxy | all_proxy | HTTP_PROXY | HTTPS_PROXY | NO_PROXY | ALL_PROXY | \
      SSL_CERT_FILE | SSL_CERT_DIR | REQUESTS_CA_BUNDLE | CURL_CA_BUNDLE | GIT_SSL_CAINFO | \
      PIP_CERT | PIP_INDEX_URL | PIP_EXTRA_INDEX_URL | PIP_TRUSTED_HOST | PIP_DEFAULT_TIMEOUT)
      environment+=("$variable") ;;
  esac
done < <(env -0)

# --- the clone: of HEAD, so that what is not committed is missed here and not later
[ -z "$(git -C "$repository" status --porcelain)" ] || say 'note: what is not committed is not tested'
clone=$system/src/minfer
rm -rf "$system/src"
mkdir -p "$system/src"
git clone -q --no-local --no-hardlinks "$repository" "$clone"
rm -rf "${system:?}$home/.cache/minfer"

mkdir -p "$system/proc" "$system/sys" "$system/dev/shm" "$system/dev/pts"
mount -t proc proc "$system/proc"
mount --rbind /sys "$system/sys"
mount -t tmpfs -o mode=1777 tmpfs "$system/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666,mode=0620,gid=5 devpts "$system/dev/pts"
ln -sfn pts/ptmx "$system/dev/ptmx"
if [ -d "$cases" ]; then
  mkdir -p "$system/src/shared/cases"
  mount --bind -o ro "$(cd "$cases" && pwd)" "$system/src/shared/cases"
fi

inside() { chroot "$system" env -i "${environment[@]}" "$@"; }

# --- the runs
now_ms() { echo $(($(date +%s%N) / 1000000)); }
measured() { # copies stdin to stdout and notes when its first byte came
  local first
  IFS= read -r -N 1 first || true
  now_ms >"$system.first"
  printf '%s' "$first"
  cat
}
summary=()
for step in $steps; do
  say "make $step"
  rm -f "$system.first"
  start=$(now_ms)
  inside make --no-print-directory -C /src/minfer "$step" </dev/null | measured || fail "make $step failed"
  end=$(now_ms)
  summary+=("make $step: first output after $(($(cat "$system.first") - start)) ms, done after $((end - start)) ms")
done
rm -f "$system.first"
printf 'bare: %s\n' "${summary[@]}"
