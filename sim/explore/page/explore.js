// ---- The page as a whole: settings ask for figures, and figures come twice, of the first step and of all steps.

let running = null;  // the AbortController of what is asked now
let waiting = null;  // the timer before it is asked

const say = (text) => {
  part("done").textContent = text;
};
function show_state(text, share) {
  part("state").textContent = text;
  part("progress").hidden = part("stop").hidden = share === undefined;
  if (share !== undefined) part("progress").value = share;
}

// Settings have changed: what is asked for the old ones is of no use any more.
function changed() {
  history.replaceState(
      null, "", address_of(settings, pinned) === "#" ? location.pathname + location.search : address_of(settings, pinned));
  say("");
  running?.abort();
  clearTimeout(waiting);
  waiting = setTimeout(simulate, 25);
}

async function simulate() {
  const mine = running = new AbortController();
  const asked = new Map(settings);
  const begin = performance.now();
  document.documentElement.dataset.busy = "yes";
  try {
    await ask("answer", asked, (line) => {
      if (mine === running) take_line(line, asked, begin);
    }, mine.signal);
    if (mine === running) document.documentElement.dataset.busy = "no";
  } catch (error) {
    if (mine === running && error.name !== "AbortError") fail(program.why_silent(error));
  }
}

function take_line(line, asked, begin) {
  if (line.kind === "problems") return take_problems(line);
  if (line.kind === "failed") return fail(line.text);
  part("problems").hidden = true;
  if (line.kind === "progress") return show_state(`${line.text[0].toUpperCase()}${line.text.slice(1)}.`, line.share);
  show_problems([]);
  answers.set(address_of(asked, []), line);
  show_answer_of(line);
  const time = `${Math.round(performance.now() - begin)} ms`;
  document.documentElement.dataset.answered = line.final ? "all" : "first";
  document.documentElement.dataset.took = String(Math.round(performance.now() - begin));
  if (line.final)
    show_state(`Of ${plural(line.steps, "step")} of each plan.`);
  else
    show_state(`${so_far(line).slice(0, -1) || "The first step"}, after ${time}. The rest follows.`, 0);
}

function take_problems({text, problems}) {
  show_problems(problems);
  show_refusal("These settings cannot be simulated.", text);
}
const fail = (text) => show_refusal("There is no answer.", text);
function show_refusal(why, text) {
  part("answer").textContent = why;
  part("problems").hidden = false;
  part("problems")
      .replaceChildren(
          ...(latest ? [element("p", {}, "The figures below are of the settings before.")] : []),
          element("pre", {tabIndex: 0}, text));
  part("figures").classList.add("old");
  show_state("");
  document.documentElement.dataset.busy = "no";
}

function stop() {
  running?.abort();
  running = null;
  document.documentElement.dataset.busy = "no";
  show_state("Stopped: the figures are of the first step.");
}

// ---- Variants

function pin() {
  if (!latest) return;
  pinned.push(new Map(settings));
  answers.set(address_of(settings, []), latest);
  history.replaceState(null, "", address_of(settings, pinned));
  show_variants();
  say("Pinned. Change a setting to compare.");
}
function unpin(index) {
  pinned.splice(index, 1);
  history.replaceState(null, "", address_of(settings, pinned));
  show_variants();
}
function use_variant(from) {
  settings = new Map(from);
  mark_changes();
  study_shown = answers.get(address_of(from, []))?.result.study ?? study_shown;
  show_values();
  changed();
}
// Variants of a link were not asked for yet.
async function ask_for_pinned() {
  for (const from of pinned) {
    const key = address_of(from, []);
    if (answers.has(key)) continue;
    await ask("answer", from, (line) => {
      if (line.kind === "answer") answers.set(key, line);
    }).catch(() => {});
    if (latest) show_variants();
  }
}

// ---- Files

function save(name, text, type) {
  const link = element("a", {href: URL.createObjectURL(new Blob([text], {type})), download: name});
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
const file_name = (ending) => data.name.replace(/[^\w.-]+/g, "_") + ending;

async function save_study() {
  await ask("study", settings, (line) => {
    if (line.kind === "problems") return take_problems(line);
    save(file_name(".yaml"), line.yaml, "application/yaml");
    say(line.dropped ? `Put ${line.dropped} into the folder of the file.` :
                       `hdpsim study ${file_name(".yaml")} prints these figures.`);
  });
}
async function save_report() {
  part("save-report").disabled = true;
  say("The report is being made …");
  await ask("report", settings, (line) => {
    if (line.kind === "problems") take_problems(line);
    if (line.kind === "failed") fail(line.text);
    if (line.kind === "progress") say(`The report: ${line.text}.`);
    if (line.kind !== "report") return;
    save(file_name(".html"), line.html, "text/html");
    say("");
  });
  part("save-report").disabled = false;
}
async function copy_link() {
  await navigator.clipboard.writeText(location.href)
      .then(
          () => say("Copied. " + program.life_of_links),
          () => say("The address of this page is the link."));
}

// On a phone settings and figures are far apart.
const sees_figures = () => part("time").getBoundingClientRect().top < innerHeight / 2;
const name_jump = () => {
  part("to-figures").textContent = sees_figures() ? "Settings ↑" : "Figures ↓";
};
const jump = () => sees_figures() ? scrollTo({top: 0}) : part("time").scrollIntoView();

function begin() {
  read_address(location.hash);
  add_controls();
  part("stop").addEventListener("click", stop);
  part("skip").addEventListener("click", () => part("main").focus());
  part("to-figures").addEventListener("click", jump);
  addEventListener("scroll", name_jump, {passive: true});
  part("pin").addEventListener("click", pin);
  part("save-study").addEventListener("click", save_study);
  part("save-report").addEventListener("click", save_report);
  part("copy-link").addEventListener("click", copy_link);
  part("reset").addEventListener("click", () => {
    settings.clear();
    study_shown = data.study;
    plan_rows = [];
    show_values();
    mark_changes();
    changed();
  });
  addEventListener("hashchange", () => location.reload());
  simulate().then(ask_for_pinned);
  document.documentElement.dataset.shown = "yes";
}
begin();
