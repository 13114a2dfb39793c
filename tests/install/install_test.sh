#!/usr/bin/env bash
# usage: install_test.sh CMAKE BUILD_FOLDER [PYTHON]
#
# Installs the program into one folder, moves it to another and runs it there, in a working folder that has nothing to
# do with either, and so the Python module, if it was built, in PYTHON. bare_root_test.sh does so with packages.
set -euo pipefail
cmake=$1
build=$2
python=${3:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  failures=$((failures + 1))
}

# check_tree FOLDER: FOLDER/bin/hdpsim with its data, manual page and completions.
check_tree() {
  local program=$1/bin/hdpsim share=$1/share presets
  cd "$work"
  [[ -z $(find "$1" -lname "$build*") ]] || fail "$1: links into the build folder"
  "$program" check "$share/hdpsim/configs/studies/tiny.yaml" >out.txt 2>&1 || fail "$1: check: $(cat out.txt)"
  "$program" study "$share/hdpsim/configs/studies/tiny.yaml" --set data.steps=1 --out results >out.txt 2>&1 ||
    fail "$1: study: $(cat out.txt)"
  "$program" cluster show h100-rail >out.txt 2>&1 || fail "$1: cluster show: $(cat out.txt)"
  # By its own name alone, as a shell finds it.
  PATH="$1/bin:$PATH" hdpsim trace generate --preset github --count 10 --out l.csv >out.txt 2>&1 || fail "$1: trace: $(cat out.txt)"
  presets=$(find "$share/hdpsim/calib/profiles" -name '*.yaml' | wc -l)
  ((presets > 0)) || fail "$1: no profiles"
  grep -q '^\.TH HDPSIM 1' "$share/man/man1/hdpsim.1"* 2>/dev/null ||
    zgrep -q '^\.TH HDPSIM 1' "$share/man/man1/hdpsim.1.gz" || fail "$1: no manual page"
  grep -q 'complete .* hdpsim' "$share/bash-completion/completions/hdpsim" || fail "$1: no completion for bash"
  grep -q '^#compdef hdpsim' "$share/zsh/vendor-completions/_hdpsim" || fail "$1: no completion for zsh"
  grep -q '^complete -c hdpsim' "$share/fish/vendor_completions.d/hdpsim.fish" || fail "$1: no completion for fish"
}

"$cmake" --install "$build" --prefix "$work/first" >/dev/null
mv "$work/first" "$work/moved"
check_tree "$work/moved"
if [[ -n $python ]]; then
  packages=$(dirname "$(find "$work/moved" -path '*/hdpsim/__init__.py' -printf '%h\n')")
  (cd "$work" && PYTHONPATH=$packages "$python" -c '
import hdpsim, sys
assert hdpsim.__file__.startswith(sys.argv[1]), hdpsim.__file__
print(hdpsim.run(sys.argv[1] + "/share/hdpsim/configs/studies/tiny.yaml", overrides={"data.steps": 1}))
' "$work/moved" >out.txt 2>&1) || fail "the Python module: $(cat "$work/out.txt")"
fi

((failures == 0)) || exit 1
echo "installed, moved: it runs everywhere"
