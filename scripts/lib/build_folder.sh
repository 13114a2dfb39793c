# shellcheck shell=bash
# Where builds are. To be sourced in the folder of the source tree.

# build_folder PRESET: build/PRESET, or PRESET in HDPSIM_BUILD_DIR (an absolute path), as a source tree needs that cannot
# be written.
build_folder() { printf '%s/%s\n' "${HDPSIM_BUILD_DIR:-build}" "$1"; }
