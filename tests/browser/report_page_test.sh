#!/usr/bin/env bash
# usage: report_page_test.sh HDPSIM SOURCE_FOLDER CHROMIUM
#
# Opens report pages in headless Chromium: nothing is complained of on its console, every chart is drawn, every figure
# has its table, and names out of files stay text whatever is in them. Exit code 77 (skipped) without Chromium.
set -euo pipefail
hdpsim=$1
source_folder=$2
chromium=$3
if [[ ! -x $chromium ]]; then
  echo "NOT RUN: there is no Chromium here (Debian: apt-get install chromium)" >&2
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
failures=0

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  failures=$((failures + 1))
}

# browse FOLDER OPTION...: Chromium on the folder's report; its console goes to console.txt.
browse() {
  local folder=$1
  shift
  timeout 120 "$chromium" --headless=new --no-sandbox --disable-gpu --user-data-dir="$work/profile" \
    --virtual-time-budget=10000 --enable-logging=stderr "$@" "file://$work/$folder/report.html" 2>chromium.txt
  grep CONSOLE chromium.txt >console.txt || true
}

count() { { grep -o -- "$1" "$2" || true; } | wc -l; }

# The page as it stands after its script: dom.txt.
open_page() {
  browse "$1" --dump-dom >dom.txt
  [[ -s console.txt ]] && fail "$1: the console says: $(cat console.txt)"
  grep -q 'data-shown="[0-9]' dom.txt || fail "$1: the script did not come to its end"
}

# What every page holds, with charts or without.
check_tables() {
  local tables captions
  tables=$(count '<table>' dom.txt)
  captions=$(count '<caption>' dom.txt)
  ((tables >= 8)) || fail "$1: $tables tables"
  [[ $tables == "$captions" ]] || fail "$1: $tables tables, but $captions captions"
  [[ $(count '<summary>' dom.txt) == "$(count 'class="figures"><div class="scroll"' dom.txt)" ]] ||
    fail "$1: a chart without its table"
}

check_charts() {
  local places drawn
  places=$(count 'class="chart"' dom.txt)
  drawn=$(count 'data-drawn="yes"' dom.txt)
  if grep -q 'id="no-charts" hidden' dom.txt; then
    ((places == $2)) || fail "$1: $places charts where $2 belong"
    [[ $places == "$drawn" ]] || fail "$1: $drawn of $places charts are drawn"
    [[ $places == "$(count 'role="img" aria-label="[^"]*" data-drawn' dom.txt)" ]] || fail "$1: a chart without a name"
    # Something is in each: an image of a chart without marks has a background and no more.
    [[ $(count '<path' dom.txt) -gt $((10 * places)) ]] || fail "$1: $(count '<path' dom.txt) marks in $places charts"
  else
    ((places == 0)) || fail "$1: built without charts, but there are $places"
    [[ $(count '<details open' dom.txt) == "$(count '<details' dom.txt)" ]] || fail "$1: a table is closed"
  fi
}

# speed-up, step time, activities, ranks (map, histogram), timeline, groups, memory (by use, over time), links, lengths,
# evidence
all_charts=12

run_study() {
  "$hdpsim" --data-dir "$source_folder" study "$@" >stdout.txt 2>stderr.txt || fail "hdpsim study $*: $(cat stderr.txt)"
}

run_study "$source_folder/configs/studies/tiny.yaml" --set data.steps=2 --set output.html=true --out tiny
open_page tiny
check_tables tiny
check_charts tiny $all_charts

# One point, one plan, nobody to compare with: what there is no data for is not there.
run_study "$source_folder/configs/studies/tiny.yaml" --set sweep={} --set 'plans=[static]' --set compare_to=static \
  --set data.steps=1 --set output.html=true --out one
open_page one
check_charts one $all_charts

# Intervals of the means, with what would narrow them: on the page, not only in its script.
check_intervals() {
  local dots
  grep -q '<th[^>]*>p5 – p50 – p95</th>' dom.txt || fail "$1: no medians in the table"
  for section in speedup step-time; do
    grep -q "<span id=\"$section-intervals\">5th to 95th percentile over 50 samples" dom.txt || fail "$1: $section"
  done
  grep -q "<ul id=\"narrower\"><li>[^<]*$2[^<]*\.</li>" dom.txt || fail "$1: nothing says what narrows the intervals"
  grep -q '<caption>Where the variance of the mean step time comes from' dom.txt || fail "$1: no shares of the variance"
  if grep -q 'id="no-charts" hidden' dom.txt; then  # two charts with a dot for each of two points and three plans
    dots=$(sed -n '/<section id="speedup"/,/<section id="breakdown"/p' dom.txt |
      { grep -o '<path[^>]*fill="#fff"[^>]*stroke="#1b1f24"' || true; } | wc -l)
    ((dots == 2 * 2 * 3)) || fail "$1: $dots dots at medians"
  fi
}
run_study "$source_folder/configs/studies/tiny.yaml" --set 'uncertainty={samples: 50}' --set data.steps=2 \
  --set output.html=true --out sure
open_page sure
check_tables sure
check_charts sure $all_charts
check_intervals sure 'leaves out the error of gemm, which is not known; to know it: calibrate'
errors='attention_forward: 0.01, attention_backward: 0.01, gemm: 0.3, memory_bound: 0.01, messages: 0.01'
run_study "$source_folder/configs/studies/tiny.yaml" --set data.steps=2 --set output.html=true --out known \
  --set "uncertainty={samples: 50, errors: {$errors, collectives: 0.01, host_copies: 0.01}}"
open_page known
check_intervals known "All runs: most of the variance comes from gemm; to narrow the interval: calibrate matrix"
open_page tiny
grep -q '<ul id="narrower" hidden="">' dom.txt || fail "tiny: what would narrow intervals that nobody asked for"
grep -q '<th[^>]*>p5 – p95</th>' dom.txt || fail "tiny: no spread of the steps in the table"
grep -q '<caption>6 runs, p5 – p95 of 2 steps; the fastest plan of a point is bold</caption>' dom.txt ||
  fail "tiny: nothing says of how many steps percentiles are"

# What does not fit the memory is the fastest of nothing, and a trace that is read again is told, with what is split.
printf '%s\n' length 300 20000 9000 500 200000 >lengths.csv
run_study "$source_folder/configs/studies/tiny.yaml" --set data.steps=2 --set output.html=true --out small \
  --set cluster.node.gpu_memory='30 GB' --set "data.lengths={file: $PWD/lengths.csv}" --set sweep={}
open_page small
if grep -q 'class="best"' dom.txt; then fail "small: a plan that does not fit is the fastest"; fi
(($(grep -o '<s>[^<]*</s>' dom.txt | wc -l) == 3 * 3)) || fail "small: not every figure of a misfit is struck out"
grep -q 'struck out: 3 runs of a plan that does not fit' dom.txt || fail "small: why figures are struck out"
grep -q 'does not fit: [0-9.]* of 30.0 GB' dom.txt || fail "small: no reason"
grep -q 'The 5 documents of the trace are read 9.13 times\.' dom.txt || fail "small: nothing of the trace"
grep -q '1 of the 5 documents of the trace (20%), with 87% of its tokens, are longer than the context of 128Ki and are' \
  dom.txt || fail "small: nothing of what is split"

# A pipeline: lanes and bars by stage, and a section of its own.
run_study "$source_folder/configs/studies/tiny.yaml" --set sweep={} --set data.steps=1 --set data.context=32Ki \
  --set mesh.pp=4 --set output.html=true --out pipeline
open_page pipeline
check_tables pipeline
check_charts pipeline $((all_charts + 1))
grep -q 'rank [0-9]* stage 3' dom.txt || fail "pipeline: no lane of stage 3"
grep -q 'bubble' dom.txt || fail "pipeline: no bubble"

# Names that would be markup, and a file whose path has quotes, a newline and a tag.
hostile=$'it\'s <b>"odd"\n</script>.csv'
mkdir -p "${hostile%/*}"
"$hdpsim" --data-dir "$source_folder" trace generate --preset github --count 2000 --out lengths.csv >/dev/null 2>&1
cp lengths.csv "$hostile"
cat >hostile.yaml <<'STUDY'
name: "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">\n{{data}} & 'more'"
cluster: {preset: a100-rail-3tier, gpus: 32}
model: {preset: llama-7b}
profile: a100-published
data:
  lengths: {file: "it's <b>\"odd\"\n</script>.csv"}
  context: 64Ki
  tokens_per_step: 1Mi
  steps: 2
mesh: {tp: 2}
plans: [static, hdp-balance]
output: {html: true}
STUDY
run_study hostile.yaml --out hostile
open_page hostile
check_tables hostile
check_charts hostile $((all_charts - 1))  # no speed-up
grep -q '<title>&lt;/script&gt;&lt;script&gt;document.title' dom.txt || fail "the title is not the study's name"
[[ $(count '<img src="x"' dom.txt) == 0 ]] || fail "a name became an element"
[[ $(count '<script' dom.txt) == 3 ]] || fail "$(count '<script' dom.txt) script elements instead of 3"
grep -q "&lt;b&gt;" dom.txt || fail "the path of the lengths is not on the page"

# On paper: the charts and the study take some pages.
browse tiny --no-pdf-header-footer --print-to-pdf="$work/tiny.pdf"
pages=$(grep -a -c '/Type */Page\b' tiny.pdf) || true
((pages >= 3)) || fail "the printed report has $pages pages"

((failures == 0)) || exit 1
echo "report pages: all charts drawn, nothing on the console"
