#!/usr/bin/env bash
# scripts/gpu_check on a pretended machine, whose programs pass or fail as a case wants.
# shellcheck disable=SC2016  # programs expand their own variables
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
machine=$(mktemp -d)
trap 'rm -rf "$machine"' EXIT
failures=0
cases=0

# program PATH BODY
program() {
  mkdir -p "$(dirname "$machine/$1")"
  printf '#!/bin/bash\n%s\n' "$2" >"$machine/$1"
  chmod +x "$machine/$1"
}

# A tree with a kit that was built from it, on a machine with a GPU and without PyTorch.
new_machine() {
  rm -rf "${machine:?}"/*
  mkdir -p "$machine"/{scripts/lib,kernels,calib,sim,tests/gpu,tests/support,tests/unit/kernels/laws}
  cp "$root/scripts/gpu_check" "$machine/scripts/"
  cp "$root/scripts/lib/packages.sh" "$machine/scripts/lib/"
  echo 'project(pretended)' >"$machine/CMakeLists.txt"
  program bin/nvidia-smi 'echo "GPU 0: pretended"'
  program bin/python3 'exit 1'
  program bin/compute-sanitizer 'exit 0'
  program bin/cmake 'echo "cmake $*"; exit 1'
  program build/gpu_kit/test_gpu 'exit 0'
  program build/gpu_kit/hdpsim_gpu_bench 'while [[ $1 != --out ]]; do shift; done; echo "{\"ratios\": []}" >"$2"'
  program build/gpu_kit/hdpsim 'echo "calibrated: $*"'
  (
    cd "$machine"
    find CMakeLists.txt -print0 | xargs -0 sha256sum | sha256sum | cut -c1-16 >build/gpu_kit/fingerprint
  )
}

# expect NAME EXIT-CODE TEXT: what gpu_check does there, and what it says or leaves.
expect() {
  local status=0 said
  said=$(PATH="$machine/bin:$PATH" HDPSIM_NO_INSTALL=1 "$machine/scripts/gpu_check" --out "$machine/out" 2>&1) || status=$?
  said+=$(cat "$machine"/out/results.json "$machine"/out/calibration.log 2>/dev/null || true)
  cases=$((cases + 1))
  if [[ $status != "$2" || $said != *"$3"* ]]; then
    printf 'FAILED: %s: exit code %s, not %s, or no "%s" in:\n%s\n' "$1" "$status" "$2" "$3" "$said" >&2
    failures=$((failures + 1))
  fi
}

new_machine
expect "all parts pass" 0 '{"name": "tests", "verdict": "passed", "exit_code": 0'
expect "the calibration writes beside the results" 0 "--out $machine/out/gpu-check.yaml"
expect "without PyTorch there is no comparison" 0 'skipped: python3 has no PyTorch'
expect "the results of the benchmark are part of the results" 0 '"bench": {"ratios": []}'

new_machine
program build/gpu_kit/test_gpu 'echo "a test failed"; exit 5'
expect "a part that fails is told" 1 '{"name": "tests", "verdict": "failed", "exit_code": 5'
expect "and does not keep the others from running" 1 'calibrated: '

new_machine
program build/gpu_kit/hdpsim_gpu_bench 'exit 1'
expect "results without a benchmark are results" 1 '"parts": ['

new_machine
echo '# changed' >>"$machine/CMakeLists.txt"
expect "a kit of other sources is built again" 1 'was built from other sources'

new_machine
program bin/nvidia-smi 'echo "no devices were found"; exit 6'
expect "without a GPU nothing runs" 3 'there is no NVIDIA GPU here'

((failures == 0)) && echo "$cases cases pass"
