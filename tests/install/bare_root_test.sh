#!/usr/bin/env bash
# usage: bare_root_test.sh BUILD_FOLDER | [--alone] PACKAGE...
#
# Unpacks packages of the program (.deb, .tar.gz; of a build folder both are made) each into a root that has nothing but
# the libraries that it needs, and runs the main study there, without a network. Libraries of a Debian package must
# belong to the packages on which it depends; with --alone, no library but those of C may be needed.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
alone=
failures=0

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  failures=$((failures + 1))
}

not_run() {
  echo "NOT RUN: $1" >&2
  exit 0
}

# ---- Libraries

# The packages named in a list of dependencies.
names_in() { tr ',|' '\n' | sed -E 's/[(:].*//; s/[[:space:]]//g; /^$/d'; }

# What packages need. Of one that is not installed, such as an empty one that lets others stand in for it, apt may know.
needs_of() {
  local missing
  # shellcheck disable=SC2016  # dpkg's own variables
  mapfile -t missing < <(comm -23 <(printf '%s\n' "$@" | sort -u) <(dpkg-query -W -f '${Package}\n' "$@" 2>/dev/null | sort -u))
  # shellcheck disable=SC2016
  {
    dpkg-query -W -f '${Depends},${Pre-Depends}\n' "$@" || true
    if ((${#missing[@]} > 0)); then
      apt-cache show --no-all-versions "${missing[@]}" | sed -n 's/^\(Pre-\)\{0,1\}Depends: //p'
    fi
  } 2>/dev/null | names_in
}

# All packages that these need, and they themselves.
closure() {
  local -A known=()
  local waiting=("$@") needs package
  while ((${#waiting[@]} > 0)); do
    for package in "${waiting[@]}"; do known[$package]=yes; done
    mapfile -t needs < <(needs_of "${waiting[@]}" | sort -u)
    waiting=()
    for package in "${needs[@]}"; do [[ -n ${known[$package]:-} ]] || waiting+=("$package"); done
  done
  printf '%s\n' "${!known[@]}"
}

# owners_of LIBRARY...: a line each, its package and it. dpkg knows some by the path that they had before /lib became a
# link.
owners_of() {
  local -A owners=()
  local library file line paths=()
  for library; do
    file=$(realpath "$library")
    paths+=("$file" "${file#/usr}")
  done
  while read -r line; do owners[${line##*: }]=${line%%[:,]*}; done < <(dpkg -S "${paths[@]}" 2>/dev/null)
  for library; do
    file=$(realpath "$library")
    echo "${owners[$file]:-${owners[${file#/usr}]:-nothing}} $library"
  done
}

# libraries_of PROGRAM: the paths of all that the loader maps, itself included.
libraries_of() { ldd "$1" | sed -nE 's/^[^/]*(\/[^ ]*) \(.*$/\1/p'; }

# check_owners DEB PROGRAM
check_owners() {
  local library direct needed libraries package
  mapfile -t direct < <(dpkg-deb -f "$1" Depends | names_in)
  for package in "${direct[@]}"; do
    [[ -n $(needs_of "$package") ]] && continue
    echo "NOT RUN: whose the libraries are: neither dpkg nor apt knows what $package needs" >&2
    return
  done
  mapfile -t needed < <(closure "${direct[@]}")
  mapfile -t libraries < <(libraries_of "$2")
  while read -r package library; do
    [[ " ${needed[*]} " == *" $package "* ]] ||
      fail "$(basename "$1") does not depend on $package, which has $library"
  done < <(owners_of "${libraries[@]}")
}

# check_alone ARCHIVE PROGRAM
check_alone() {
  local others
  others=$(libraries_of "$2" | grep -vE '/(lib(c|m|dl|rt|pthread)\.so|ld-linux)' || true)
  [[ -z $others ]] || fail "$(basename "$1") needs more than the C library: $others"
}

# ---- Roots

# Runs a command in a root that has /proc, without a network. NAMESPACE is what allows it here.
in_root() {
  local root=$1
  shift
  # shellcheck disable=SC2016  # expanded inside
  "${namespace[@]}" bash -c 'mount --rbind /proc "$1/proc" && root=$1 && shift && exec chroot "$root" "$@"' bash "$root" \
    /usr/bin/env -i "$@"
}

check_in_root() {
  local package=$1 root=$2 program=$3 data=$4 command
  in_root "$root" "$program" study "$data/configs/studies/bytescale-7b.yaml" --set data.steps=1 --set sweep=null --out /results \
    >"$work/out.txt" 2>&1 || fail "$(basename "$package"): the main study: $(tail -5 "$work/out.txt")"
  grep -q '"schema": "hdpsim.result/1"' "$root/results/result.json" || fail "$(basename "$package"): no results"
  for command in "new /mine.yaml --gpus 16" "study /mine.yaml"; do
    # shellcheck disable=SC2086  # words
    in_root "$root" "$program" $command </dev/null >"$work/out.txt" 2>&1 ||
      fail "$(basename "$package"): $command: $(tail -5 "$work/out.txt")"
  done
}

check_package() {
  local package=$1 root program library
  root=$(mktemp -d -p "$work")
  mkdir "$root/proc"
  case $package in
    *.deb) dpkg-deb -x "$package" "$root" ;;
    *) tar -xzf "$package" -C "$root" ;;
  esac
  program=$(find "$root" -path '*/bin/hdpsim' -type f)
  [[ -x $program ]] || { fail "$package has no program"; return; }
  case $package in
    *.deb)
      check_owners "$package" "$program"
      dpkg-deb -f "$package" Depends | grep -q libc6 || fail "$package says of no library that it needs it"
      [[ -z $(find "$root" -name '_native*') ]] || fail "$package has a module for one version of Python"
      ;;
  esac
  for file in man/man1/hdpsim.1 bash-completion/completions/hdpsim zsh/vendor-completions/_hdpsim \
    fish/vendor_completions.d/hdpsim.fish hdpsim/configs/studies/tiny.yaml; do
    compgen -G "${program%/bin/hdpsim}/share/$file*" >/dev/null || fail "$package has no $file"
  done
  [[ -z $alone ]] || check_alone "$package" "$program"
  cp -L --parents /usr/bin/env "$root"  # for the test itself
  { libraries_of "$program"; libraries_of /usr/bin/env; } | sort -u | while read -r library; do
    cp -L --parents "$library" "$root"
  done
  program=${program#"$root"}
  check_in_root "$package" "$root" "$program" "${program%/bin/hdpsim}/share/hdpsim"
}

# ---- Which packages

packages=()
for argument; do
  case $argument in
    --alone) alone=yes ;;
    *) packages+=("$argument") ;;
  esac
done
if [[ -d ${packages[0]:?a build folder or a package} ]]; then
  command -v dpkg-shlibdeps >/dev/null || not_run "no packages are made without dpkg-shlibdeps (Debian: dpkg-dev)"
  for kind in DEB TGZ; do
    (cd "${packages[0]}" && cpack -G "$kind" -B "$work/packages") >"$work/cpack.txt" 2>&1 || fail "cpack: $(cat "$work/cpack.txt")"
  done
  packages=("$work"/packages/*.deb "$work"/packages/*.tar.gz)
fi

namespace=(unshare --mount --net --propagation private)
(($(id -u) == 0)) || namespace=(unshare --user --map-root-user --mount --net --propagation private)
mkdir "$work/probe"
"${namespace[@]}" mount --rbind /proc "$work/probe" 2>"$work/refusal.txt" ||
  not_run "a bare root needs a mount namespace: $(tail -1 "$work/refusal.txt")"

for package in "${packages[@]}"; do check_package "$package"; done
((failures == 0)) || exit 1
echo "${#packages[@]} packages run in bare roots"
