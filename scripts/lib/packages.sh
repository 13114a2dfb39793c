# shellcheck shell=bash
# The one list of distribution packages that the project needs and the one way to install them. To be sourced.

# shellcheck disable=SC2034  # read by the scripts that source this file
readonly simulator_packages=(cmake ninja-build g++ libfmt-dev libyaml-cpp-dev libpugixml-dev nlohmann-json3-dev
                             libcli11-dev zlib1g-dev libzstd-dev libbz2-dev liblzma-dev pkg-config libcpp-httplib-dev
                             libtomlplusplus-dev libeigen3-dev libmimalloc-dev)
# shellcheck disable=SC2034
readonly build_packages=("${simulator_packages[@]}" libopenblas-pthread-dev libopenmpi-dev openmpi-bin
                         catch2 libbenchmark-dev python3-jsonschema python3-yaml python3-dev pybind11-dev python3-venv
                         python3-numpy python3-pip python3-setuptools python3-wheel)
# shellcheck disable=SC2034
readonly oracle_packages=(libsimgrid-dev)  # for scripts/dev oracle alone
# shellcheck disable=SC2034
readonly browser_packages=(chromium)  # for the test of the report page, which is skipped without
# shellcheck disable=SC2034
readonly page_packages=(cmake ninja-build emscripten python3 dpkg-dev libfmt-dev nlohmann-json3-dev libcli11-dev
                        libeigen3-dev)  # for scripts/build_page alone
# shellcheck disable=SC2034
readonly torch_packages=(python3-torch)  # for the tests of hdpsim.torch, which say where it is missing
readonly cmake_min=3.22  # presets of version 3
readonly gcc_min=12

say() { printf '==> %s\n' "$*" >&2; }

# The machine refuses: exit code 3, as of hdpsim itself.
refuse() {
  printf 'error: %s\n' "$1" >&2
  shift
  (($# == 0)) || printf '%s\n' "$@" >&2
  exit 3
}

# install_by_hand REASON PACKAGE...
install_by_hand() {
  local reason=$1
  shift
  refuse "$reason" "Please install these packages by hand (names as in Debian and Ubuntu):" "    $*" \
    "and run this again, with HDPSIM_NO_INSTALL=1 where there is no dpkg to find them."
}

is_installed() { dpkg-query -W -f '${db:Status-Status}\n' "$1" 2>/dev/null | grep -qx installed; }

# Does apt know a version of every package? Not on a fresh machine, until apt-get update.
apt_knows() {
  local known
  known=$(LC_ALL=C apt-cache policy "$@" 2>/dev/null | grep -c 'Candidate: [^(]') || true
  ((known == $#))
}

# install_missing PACKAGE...: calls no apt when all are there.
install_missing() {
  [[ ${HDPSIM_NO_INSTALL:-} != 1 ]] || return 0
  if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    install_by_hand "this is not a Debian or Ubuntu machine: no apt-get" "$@"
  fi
  local package missing=()
  for package; do
    is_installed "$package" || missing+=("$package")
  done
  ((${#missing[@]} > 0)) || return 0

  local as_root=()
  if (($(id -u) != 0)); then
    command -v sudo >/dev/null || install_by_hand "packages are missing, and there are neither root rights nor sudo" "${missing[@]}"
    as_root=(sudo)
    [[ -t 0 ]] || as_root+=(-n)  # nobody there to type a password
    "${as_root[@]}" true || install_by_hand "packages are missing, and sudo refused" "${missing[@]}"
  fi
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive
             apt-get -q -y -o DPkg::Lock::Timeout=300 -o Acquire::Retries=2)
  local install=("${apt[@]}" install --no-install-recommends "${missing[@]}")

  say "installing with apt-get: ${missing[*]}"
  {
    apt_knows "${missing[@]}" || "${apt[@]}" update || true
    # A second try with fresh lists: old ones name versions that the mirror no longer has.
    "${install[@]}" || { "${apt[@]}" update && "${install[@]}"; } ||
      install_by_hand "apt-get failed (see above): is there a network?" "${missing[@]}"
  } </dev/null >&2
}

# install_if_possible WHAT PACKAGE...: what only some tests need is no reason to stop.
install_if_possible() {
  local what=$1
  shift
  (install_missing "$@") || say "without $what: not installed: $*"
}

# Presets need a recent cmake, wherever it comes from.
require_cmake() {
  command -v cmake >/dev/null || install_by_hand "there is no cmake" "${build_packages[@]}"
  local version
  version=$(cmake --version | awk 'NR == 1 { print $3 }')
  printf '%s\n' "$cmake_min" "$version" | sort -V -C ||
    refuse "$(command -v cmake) is version $version, $cmake_min or later is needed (Debian 12, Ubuntu 22.04)"
}

# Ubuntu 22.04 has GCC 11 as g++ and a later one beside it. A compiler that the user chose (CXX) stays.
choose_compiler() {
  [[ -z ${CXX:-} ]] && command -v g++ >/dev/null || return 0
  if (($(g++ -dumpversion | cut -d. -f1) < gcc_min)); then
    install_missing "g++-$gcc_min"
    export CXX=g++-$gcc_min
  fi
}
