#!/usr/bin/env bash
# scripts/check_spills on pretended logs of ptxas: what it lets pass and what it refuses.
set -euo pipefail
check_spills=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/scripts/check_spills
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
failures=0

# kernel FILE ARCHITECTURE SPILLED-BYTES: adds a kernel to the log of a compiled file.
kernel() {
  : >"$build/$1.cu.o"
  cat >>"$build/$1.cu.o.ptxas" <<LOG
ptxas info    : Compiling entry function '_Z4fastv' for '$2'
ptxas info    : Function properties for _Z4fastv
    ${3} bytes stack frame, ${3} bytes spill stores, ${3} bytes spill loads
ptxas info    : Used 168 registers, used 1 barriers
LOG
}

# expect NAME EXIT-CODE TEXT: then checks the pretended build and starts a new one.
expect() {
  local status=0 said
  said=$("$check_spills" "$build" sm_80 sm_90a 2>&1) || status=$?
  if [[ $status != "$2" || $said != *"$3"* ]]; then
    echo "FAILED: $1: exit code $status, not $2, or no \"$3\" in: $said" >&2
    failures=$((failures + 1))
  fi
  rm -f "$build"/*
}

kernel a sm_80 0
kernel b sm_90a 0
expect "kernels without spills pass" 0 "1 kernels for sm_90a"

kernel a sm_80 0
kernel a sm_90a 8
expect "a spill of one architecture is found" 1 "sm_90a: _Z4fastv spills: 8 bytes stored, 8 bytes loaded"

kernel a sm_80 0
expect "an architecture without kernels is found" 1 "no kernel was compiled for sm_90a"

kernel a sm_80 0
kernel b sm_90a 0
echo "ptxas info    : (C7508) Potential Performance Loss: wgmma.mma_async instructions are serialized" >>"$build/b.cu.o.ptxas"
expect "serialised wgmma is found" 1 "instructions are serialized"

kernel b sm_90a 0
kernel a sm_80 0
echo "ptxas warning : setmaxnreg ignored to maintain minimum register requirements" >>"$build/b.cu.o.ptxas"
expect "an ignored setmaxnreg is found" 1 "setmaxnreg ignored"

kernel a sm_80 0
kernel b sm_90a 0
rm "$build/b.cu.o.ptxas"
expect "an object without a log is found" 1 "compile it again"

expect "an empty build is found" 1 "no compiled CUDA sources"

((failures == 0)) && echo "all cases pass"
