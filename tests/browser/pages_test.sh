#!/usr/bin/env bash
# usage: pages_test.sh HDPSIM SOURCE_FOLDER CHROMIUM
#
# Opens all kinds of pages in headless Chromium, on a desk and on a phone, light and dark: nothing is complained of on
# its console (a page's own policy would complain of a request to a network), every chart is drawn and legible, every
# figure has its table, and names out of files stay text whatever is in them. Exit code 77 (skipped) without Chromium.
set -euo pipefail
hdpsim=$1
source_folder=$2
chromium=$3
if [[ ! -x $chromium ]]; then
  echo "NOT RUN: there is no Chromium here (Debian: apt-get install chromium)" >&2
  exit 77
fi
probe=$source_folder/tests/browser/probe.js
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
failures=0

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  failures=$((failures + 1))
}

# browse PAGE OPTION...: Chromium on a page; its console goes to console.txt.
browse() {
  local page=$1
  shift
  timeout 120 "$chromium" --headless=new --no-sandbox --disable-gpu --user-data-dir="$work/profile" \
    --hide-scrollbars --virtual-time-budget=10000 --enable-logging=stderr "$@" "file://$work/$page" 2>chromium.txt ||
    fail "$page: Chromium ended with code $?"
  grep CONSOLE chromium.txt >console.txt || true
}

count() { { grep -o -- "$1" "$2" || true; } | wc -l; }

# open_page PAGE [WIDTH [light|dark]]: the page as it stands after its script (dom.txt), without a problem (probe.js).
open_page() {
  local width=${2:-1200} scheme=${3:-light} problems
  local code=1
  [[ $scheme == dark ]] && code=0
  { cat "$1"; echo "<script>"; cat "$probe"; echo "</script>"; } >probed.html
  # No window is as narrow as a phone; a frame is. Its page takes the place of this one when it has been drawn.
  cat >frame.html <<FRAME
<iframe src="probed.html" style="width: ${width}px; height: 1000px" onload="
  document.replaceChild(document.adoptNode(this.contentDocument.documentElement), document.documentElement)"></iframe>
FRAME
  browse frame.html --allow-file-access-from-files --window-size=1300,1000 \
    --blink-settings=preferredColorScheme=$code --dump-dom >dom.txt
  [[ -s console.txt ]] && fail "$1, $width $scheme: the console says: $(cat console.txt)"
  grep -q 'data-shown="[0-9]' dom.txt || fail "$1: the script did not come to its end"
  grep -q "data-ground=\"$scheme\"" dom.txt || fail "$1: the page is not $scheme"
  problems=$(tr '\n' '|' <dom.txt | sed -n 's/.*data-problems="\([^"]*\)".*/\1/p' | tr '|' '\n')
  [[ -z $problems ]] || fail "$1, $width $scheme:"$'\n'"$problems"
  grep -q "data-width=\"$width\" data-problems=" dom.txt || fail "$1, $width $scheme: it was not looked at"
}

# Every look that a page can have; it stands in dom.txt as on a desk.
open_everywhere() {
  open_page "$1" 400 light
  open_page "$1" 400 dark
  open_page "$1" 1200 dark
  open_page "$1" 1200 light
}

# check_charts PAGE COUNT: of the page in dom.txt.
check_charts() {
  grep -q "data-charts=\"$2\"" dom.txt ||
    fail "$1: $(grep -o 'data-charts="[0-9]*"' dom.txt) where $2 belong"
}

check_tables() {
  local tables captions
  tables=$(count '<table' dom.txt)
  captions=$(count '<caption>' dom.txt)
  ((tables >= $2)) || fail "$1: $tables tables"
  [[ $tables == "$captions" ]] || fail "$1: $tables tables, but $captions captions"
  [[ $(count '<div class="figures">' dom.txt) == "$(count '<div class="figures"><div class="scroll' dom.txt)" ]] ||
    fail "$1: a chart without its table"
}

has() { grep -q -- "$2" dom.txt || fail "$1: nothing like: $2"; }
has_not() { if grep -q -- "$2" dom.txt; then fail "$1: there is: $2"; fi; }

run_hdpsim() {
  "$hdpsim" --data-dir "$source_folder" "$@" >stdout.txt 2>stderr.txt || fail "hdpsim $*: $(cat stderr.txt)"
}
tiny=$source_folder/configs/studies/tiny.yaml
run_tiny() { run_hdpsim study "$tiny" --set output.html=true "$@"; }

# ---- The report

# activities, why, ranks (map, histogram), timeline, groups, memory (by use, over time), lengths, evidence
charts_of_a_point=10

run_tiny --set data.steps=2 --out tiny
open_everywhere tiny/report.html
check_tables tiny 8
check_charts tiny $((charts_of_a_point + 1))  # and the sweep
has tiny '<p class="lead">hdp-balance is the fastest plan at all 2 points, 1\.'
has tiny 'What shrinks is cp_comm, waiting for keys and values'
has tiny 'costs are taken as exact'
has tiny '<abbr title="ByteScale, Algorithm 2'
has tiny 'attention twice as fast'
has tiny '<td[^>]*data-title="The busiest one"'
has_not tiny 'only point'
has tiny '<th[^>]*>p5 – p95</th>'
has tiny '<caption>6 runs, p5 – p95 of 2 steps; the fastest plan of a point is bold</caption>'
has_not tiny 'id="narrower"'

# One point, one plan, nobody to compare with: what there is no data for is not there.
run_tiny --set sweep={} --set 'plans=[static]' --set compare_to=static --set data.steps=1 --out one
open_everywhere one/report.html
check_charts one $charts_of_a_point
has one '<p class="lead">static takes '
has_not one ' id="choose-point"'
has_not one '<th[^>]*>p5 – p95</th>'  # of one step

# Numbers are swept: a curve a plan, and panels for what else is.
run_tiny --set 'sweep={data.context: [16Ki, 32Ki, 128Ki], mesh.capacity: [8Ki, 16Ki]}' --set data.steps=1 --out curves
open_everywhere curves/report.html
check_charts curves $((charts_of_a_point + 2))
has curves 'aria-label="Step time over data.context, 16Ki"'

# Intervals of the means, with what would narrow them: on the page, not only in its script.
check_intervals() {
  has "$1" '<th[^>]*>p5 – p50 – p95</th>'
  has "$1" '<span id="points-intervals">the 5th to 95th percentile over 50 samples'
  has "$1" "<ul class=\"notes\" id=\"narrower\"><li>[^<]*$2[^<]*\.</li>"
  has "$1" '<caption>Where the variance of the mean step time comes from'
  [[ $(count '<circle cx="[^>]* r="3"' dom.txt) == 6 ]] || fail "$1: no dot at the median of each of six runs"
}
run_tiny --set 'uncertainty={samples: 50}' --set data.steps=2 --out sure
open_page sure/report.html
check_intervals sure 'leaves out the error of gemm, which is not known; to know it: calibrate'
has sure 'costs are taken as exact where their error is not known'
errors='attention_forward: 0.01, attention_backward: 0.01, gemm: 0.3, memory_bound: 0.01, messages: 0.01'
run_tiny --set data.steps=2 --out known \
  --set "uncertainty={samples: 50, errors: {$errors, collectives: 0.01, host_copies: 0.01}}"
open_page known/report.html
check_intervals known "All runs: most of the variance comes from gemm; to narrow the interval: calibrate matrix"

# What does not fit the memory is the fastest of nothing, and a trace that is read again is told, with what is split.
printf '%s\n' length 300 20000 9000 500 200000 >lengths.csv
run_tiny --set data.steps=2 --out small \
  --set cluster.node.gpu_memory='30 GB' --set "data.lengths={file: $work/lengths.csv}" --set sweep={}
open_everywhere small/report.html
has_not small 'class="best"'
has small '<p class="lead">No plan fits the memory'
(($(grep -o '<s>[^<]*</s>' dom.txt | wc -l) >= 3 * 3)) || fail "small: not every figure of a misfit is struck out"
has small 'struck out: 3 runs of a plan that does not fit'
has small '<span class="misfit">does not fit: [0-9.]* of 30.0 GB'
has small 'The 5 documents of the trace are read 9.13 times\.'
has small '1 of the 5 documents of the trace (20%), with 87% of its tokens, are longer than the context of 128Ki and are'

# A pipeline: lanes and bars by stage, and a section of its own.
run_tiny --set sweep={} --set data.steps=1 --set data.context=32Ki --set mesh.pp=4 --out pipeline
open_everywhere pipeline/report.html
check_tables pipeline 8
check_charts pipeline $((charts_of_a_point + 1))
has pipeline 'rank [0-9]* stage 3'
has pipeline 'bubble'

# Names that would be markup, and a file whose path has quotes, a newline and a tag.
hostile=$'it\'s <b>"odd"\n</script>.csv'
mkdir -p "${hostile%/*}"
run_hdpsim trace generate --preset github --count 2000 --out lengths.csv
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
run_hdpsim study hostile.yaml --out hostile
open_page hostile/report.html
check_charts hostile $charts_of_a_point
has hostile '<title>&lt;/script&gt;&lt;script&gt;document.title'
has_not hostile '<img src="x"'
[[ $(count '<script' dom.txt) == 3 ]] || fail "$(count '<script' dom.txt) script elements, with the probe, instead of 3"
has hostile "&lt;b&gt;"

# On paper: the charts and the study take some pages.
browse tiny/report.html --no-pdf-header-footer --print-to-pdf="$work/tiny.pdf"
pages=$(grep -a -c '/Type */Page\b' tiny.pdf) || true
((pages >= 3)) || fail "the printed report has $pages pages"

# ---- The other pages

run_hdpsim replay "$tiny" --point 1 --steps 12 --out replay
open_everywhere replay/replay.html
check_charts replay 2  # times and lengths
has replay '<p class="lead">hdp-balance takes '
has replay 'id="slowest"'

run_hdpsim tune "$source_folder/configs/studies/tune.yaml" --set data.steps=2 --set 'tune.space={mesh.tp: [2, 4]}' --out tuned
open_everywhere tuned/tune.html
check_charts tune 1  # the front
has tune '<p class="lead">The best of '
has tune 'id="plans-title">The best of each plan'

# Steps of milliseconds on this processor: what a page shows of them does not hang on how fast it is.
cat >tiny.json <<'MODEL'
{"architectures": ["LlamaForCausalLM"], "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
 "num_attention_heads": 1, "vocab_size": 64}
MODEL
cat >fast.yaml <<'STUDY'
name: fast
cluster: {preset: laptop-cpu, gpus: 2, node: {gpus: 2}}
model: {hf_config: tiny.json}
profile: epyc-cpu
data: {lengths: {preset: github}, context: 128, tokens_per_step: 256, steps: 2}
mesh: {capacity: 64}
plans: [static: {cp: 2}, hdp-balance]
STUDY
run_hdpsim execute fast.yaml --plan static --plan hdp-balance --steps 2 --repeat 2 --out real
run_hdpsim compare real --out compared
open_everywhere compared/comparison.html
check_tables comparison 9  # step times; of two plans instructions, activities, busy ranks, exposed exchanges
has comparison '<p class="lead">The predicted step time is off by at most '

cat >small.yaml <<'SET'
name: small
about: two plans of one job
source: nobody
study:
  cluster: {preset: a100-rail-3tier}
  model: {preset: llama-7b}
  profile: a100-published
  plans: [static]
columns: [tp, dp, micro_batch, global_batch, sequence, step_time_s, tokens_per_s_per_gpu]
rows:
  - [1, 8, 2, 16, 4Ki, 2, ~]
  - [2, 4, 1, 16, 4Ki, 4, 2048]
SET
run_hdpsim validate ./small.yaml --out validated
open_everywhere validated/validation.html
check_charts validation 2  # step times and throughput
has validation '<p class="lead">Of 3 published figures 3 are predicted'

((failures == 0)) || exit 1
echo "pages: all charts drawn and legible on a desk and a phone, light and dark, nothing on the console"
