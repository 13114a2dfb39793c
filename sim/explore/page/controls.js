// ---- Controls. Each shows the value of the study, or what was set instead, and has a place for its problems.

const shown = new Map();       // path -> {show(study), box, problem}
let study_shown = data.study;  // with all defaults and settings put in, as it was last simulated

function set(path, text) {
  if (text === null)
    settings.delete(path);
  else
    settings.set(path, text);
  mark_changes();
  changed();
}
function mark_changes() {
  for (const [path, {box}] of shown) box.classList.toggle("changed", settings.has(path));
  part("reset").hidden = settings.size === 0;
}
const show_values = () => shown.forEach(({show}) => show(study_shown));
const text_at = (study, path) => settings.get(path) ?? text_in(study, path);

// A row: name, control, place for problems. `id` is that of the input which the name belongs to.
function control_box(control, id, ...inputs) {
  const back = element(
      "button",
      {type: "button", className: "back", title: "as in the study", "aria-label": `${control.label}: as in the study`},
      "↺");
  back.addEventListener("click", () => reset_control(control.path));
  const problem = element("p", {className: "problem", id: `${id}-problem`, hidden: true});
  const label = element("label", {htmlFor: id, title: plain_meaning(control)}, control.label);
  const box = element(
      "div", {className: "control", "data-path": control.path}, element("div", {className: "name"}, label, back),
      ...inputs, problem);
  return {box, problem};
}
const plain_meaning = ({path, meaning, values}) => [path, meaning, values && `${values}`]
                                                       .filter(Boolean)
                                                       .join("\n")
                                                       .replaceAll("`", "")
                                                       .replace(/ ?\(\[more\][^)]*\)\)/g, "");

function reset_control(path) {
  const undone = path === "cluster" ? ["cluster", "cluster.gpus", "cluster.node.nics.bandwidth", "profile"] : [path];
  undone.forEach((each) => settings.delete(each));
  if (path === "plans") settings.delete("compare_to");
  if (path === "cluster" || path === "plans") study_shown = {...study_shown, [path]: data.study[path]};
  show_values();
  set(path, null);
}

function add_control(form, control, id, inputs, show) {
  const {box, problem} = control_box(control, id, ...inputs);
  for (const input of box.querySelectorAll("input, select")) input.setAttribute("aria-describedby", `${id}-problem`);
  form.append(box);
  shown.set(control.path, {show, box, problem});
}

// ---- A slider over usual values, and a field that takes any

function add_scale(form, control, id) {
  const range = element("input", {type: "range", id, min: "0", step: "1"});
  const field = element(
      "input", {type: "text", "aria-label": `${control.label}, any value`, autocomplete: "off", spellcheck: false});
  let stops = control.stops;
  const show_stop = (text) => {
    const at = amount(text);
    const known = stops.findIndex((stop) => amount(stop) === at);
    range.value = known >= 0 ? known : stops.length / 2;
    range.setAttribute("aria-valuetext", text);
  };
  const show = (study) => {
    const own = text_in(data.study, control.path);
    const text = text_at(study, control.path);
    const extra = [own, text].filter(
        (each) => !Number.isNaN(amount(each)) && !control.stops.some((stop) => amount(stop) === amount(each)));
    stops = [...control.stops, ...new Map(extra.map((each) => [amount(each), each])).values()].sort(
        (a, b) => amount(a) - amount(b));
    range.max = stops.length - 1;
    if (document.activeElement !== field) field.value = text;
    show_stop(text);
  };
  range.addEventListener("input", () => {
    const text = stops[Number(range.value)];
    range.setAttribute("aria-valuetext", text);
    field.value = text;
    set(control.path, text);
  });
  field.addEventListener("change", () => {
    set(control.path, field.value.trim() || null);
    show_stop(field.value);
  });
  add_control(form, control, id, [element("div", {className: "scale"}, range, field)], show);
}

// ---- A list

function fill_select(select, options, value) {
  select.replaceChildren(...options.map(([each, text]) => element("option", {value: each}, text)));
  select.value = value;
}

// choices: [[name, text]]; name_in(study) is the one that a study has. A value that is none of them is shown as it is.
function add_choice(form, control, id, {choices, name_in, choose, more = []}) {
  const select = element("select", {id});
  const show = (study) => {
    const name = name_in(study);
    const options = choices(study);
    const others = options.some(([each]) => each === name) ? [] : [[name, name]];
    fill_select(select, [...others, ...options], name);
  };
  select.addEventListener("change", () => choose(select.value));
  add_control(form, control, id, [select, ...more], show);
}

const preset_in = (study, path) => {
  const value = value_at(study, path);
  return value?.preset ?? value?.name ?? (value?.file ?? value?.hf_config)?.split("/").at(-1) ??
      (typeof value === "string" ? value : yaml_of(value));
};
const preset_of = (path) => /^\{preset: ([^,}]*)\}$/.exec(settings.get(path) ?? "")?.[1];

function choose_cluster(name) {
  const {device} = controls.clusters.find((cluster) => cluster.name === name);
  const profile = preset_of("profile") ?? text_at(study_shown, "profile");
  if (controls.profiles.find((each) => each.name === profile)?.device !== device) {
    settings.set(
        "profile", controls.profiles.find((each) => each.device === device && !each.is_implied)?.name ?? profile);
  }
  settings.delete("cluster.node.nics.bandwidth");
  set("cluster", `{preset: ${name}}`);
}

function add_cluster(form, control, id) {
  add_choice(form, control, id, {
    choices: () => controls.clusters.map(({name, device}) => [name, `${name} · ${device}`]),
    name_in: (study) => preset_of("cluster") ?? preset_in(study, "cluster"),
    choose: choose_cluster,
  });
}

function add_profile(form, control, id) {
  add_choice(form, control, id, {
    choices: () => controls.profiles.map(({name}) => [name, name]),
    name_in: (study) => text_at(study, "profile"),
    choose: (name) => set("profile", name),
  });
}

function add_model(form, control, id) {
  add_choice(form, control, id, {
    choices: () => controls.models.map((name) => [name, name]),
    name_in: (study) => preset_of("model") ?? preset_in(study, "model"),
    choose: (name) => set("model", `{preset: ${name}}`),
  });
}

// ---- Lengths: a preset, or a file that is chosen or dropped anywhere on the page

async function take_file(file) {
  part("done").textContent = `Reading ${file.name} …`;
  let taken;
  try {
    taken = await program.take_lengths(file);
  } catch (error) {
    part("done").textContent = `${file.name} was not taken: ${error.message}`;
    return;
  }
  part("done").textContent = "";
  study_shown = {...study_shown, data: {...study_shown.data, lengths: {file: taken.file}}};
  settings.set("data.lengths", `{file: ${JSON.stringify(taken.file)}}`);
  show_values();
  set("data.lengths", settings.get("data.lengths"));
}

function add_lengths(form, control, id) {
  const file = element("input", {type: "file", id: `${id}-file`});
  file.addEventListener("change", () => {
    if (file.files.length > 0) take_file(file.files[0]);
  });
  const drop =
      element("label", {className: "drop", htmlFor: file.id}, "or a file of lengths: choose it, or drop it here", file);
  add_choice(form, control, id, {
    choices: () => controls.lengths.map((name) => [name, name]),
    name_in: (study) => preset_of("data.lengths") ?? preset_in(study, "data.lengths"),
    choose: (name) => set("data.lengths", `{preset: ${name}}`),
    more: [drop],
  });
  addEventListener("dragover", (event) => {
    event.preventDefault();
    drop.classList.add("over");
  });
  addEventListener("dragleave", () => drop.classList.remove("over"));
  addEventListener("drop", (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    if (event.dataTransfer.files.length > 0) take_file(event.dataTransfer.files[0]);
  });
}

// ---- Plans: a row a policy, with its options as in a study

let plan_rows = [];  // {policy, options, on}; for plans of files their name, and `of_files`, their entry

function rows_of(study) {
  const entry_row = (entry) => {
    if (typeof entry === "string") return {policy: entry, options: ""};
    if ("file" in entry) return {policy: entry.name, options: "", of_files: yaml_of(entry)};
    return {policy: Object.keys(entry)[0], options: options_of(Object.values(entry)[0] ?? {})};
  };
  const entries = (study.plans ?? []).map(entry_row);
  const rows = entries.map((entry) => ({...entry, on: true}));
  // What was switched off stays in sight.
  const off = plan_rows.filter((row) => !row.on && !rows.some(({policy}) => policy === row.policy));
  const others = controls.policies.filter(({name}) => ![...rows, ...off].some(({policy}) => policy === name));
  return [...rows, ...off, ...others.map(({name}) => ({policy: name, options: "", on: false}))];
}

function set_plans() {
  const entries = plan_rows.filter(({on}) => on)
                      .map(
                          ({policy, options, of_files}) =>
                              of_files ?? (options.trim() ? `{${policy}: {${options.trim()}}}` : policy));
  const versus = text_at(study_shown, "compare_to");
  const kept = plan_rows.filter(({on}) => on).map(({policy}) => policy);
  if (versus !== "null" && kept.length > 0 && !kept.some((policy) => versus.replace(/^\{/, "").startsWith(policy))) {
    settings.set("compare_to", kept[0]);
  }
  set("plans", `[${entries.join(", ")}]`);
}

function plan_row(row, id) {
  const meaning = controls.policies.find(({name}) => name === row.policy)?.options ?? [];
  const on = element("input", {type: "checkbox", id, checked: row.on});
  const options = element("input", {
    type: "text",
    value: row.options,
    "aria-label": `options of ${row.policy}`,
    placeholder: row.of_files ? "plans of files" : "no options",
    disabled: row.of_files !== undefined,
    autocomplete: "off",
    spellcheck: false,
    title: meaning.map(plain_meaning).join("\n\n")
  });
  on.addEventListener("change", () => {
    row.on = on.checked;
    set_plans();
  });
  options.addEventListener("change", () => {
    row.options = options.value;
    if (row.on) set_plans();
  });
  return element(
      "div", {className: "plan"}, on, element("label", {htmlFor: id}, patch(plan_color(row.policy)), row.policy),
      options);
}

function add_plans(form, control, id) {
  const rows = element("div", {id, className: "plans", role: "group", "aria-label": "Plans"});
  const show = (study) => {
    if (rows.contains(document.activeElement)) {
      if (document.activeElement.type === "text") return;
    }
    const focused = document.activeElement?.id;
    plan_rows = rows_of(study);
    rows.replaceChildren(...plan_rows.map((row, i) => plan_row(row, `${id}-${i}`)));
    if (focused?.startsWith(id + "-")) part(focused)?.focus();
  };
  add_control(form, control, id, [rows], show);
}

function add_compare_to(form, control, id) {
  add_choice(form, control, id, {
    choices: () => [
        ["null", "no plan"], ...names_of_plans().map((name) => [name, name]),
        ...names_of_plans().map((name) => [yaml_of({[name]: "tuned"}), `${name} on its best mesh`])],
    name_in: (study) => text_at(study, "compare_to"),
    choose: (name) => set("compare_to", name),
  });
}
const names_of_plans = () => latest ? latest.result.runs.map(({plan}) => plan) : data.plans;

// ---- Any other key of a study

function add_any_key(form) {
  const keys = controls.keys.filter(({path}) => !main_controls.some((control) => control.path === path));
  const names = element(
      "datalist", {id: "all-keys"},
      ...keys.map(({path, meaning}) => element("option", {value: path}, meaning.replaceAll("`", ""))));
  const field =
      element("input", {type: "text", id: "any-key", placeholder: "mesh.zero", autocomplete: "off", spellcheck: false});
  field.setAttribute("list", names.id);
  const place = element("div", {id: "other-settings"});
  field.addEventListener("change", () => {
    const key = keys.find(({path}) => path === field.value.trim());
    if (!key) return;
    field.value = "";
    add_key(place, key).focus();
  });
  form.append(element(
      "fieldset", {}, element("legend", {}, "More"), place,
      element(
          "div", {className: "control"},
          element("div", {className: "name"}, element("label", {htmlFor: field.id}, "Any key of a study")), field,
          names)));
  for (const path of settings.keys()) {
    const known = keys.find((key) => key.path === path);
    if (known || !main_controls.some((control) => control.path === path)) add_key(place, known ?? {path, words: []});
  }
}

function add_key(place, key) {
  const id = "key-" + key.path.replaceAll(".", "-");
  if (part(id)) return part(id);
  const input = key.words.length > 0 ?
      element("select", {id}, ...key.words.map((word) => element("option", {value: word}, word))) :
      element("input", {type: "text", id, placeholder: key.default ?? "", autocomplete: "off", spellcheck: false});
  input.addEventListener("change", () => set(key.path, input.value.trim() || null));
  const meaning = element(
      "p", {className: "soft meaning"}, (key.meaning ?? "").replaceAll("`", "").replace(/ ?\(\[more\][^)]*\)\)/g, ""));
  const show = (study) => {
    if (document.activeElement === input) return;
    const text = text_at(study, key.path);
    input.value = text === "null" ? (key.words.length > 0 ? key.default : "") : text;
  };
  add_control(place, {...key, label: key.path}, id, [input, meaning], show);
  show(study_shown);
  return input;
}

// ---- All of them

const special = {
  cluster: add_cluster,
  profile: add_profile,
  model: add_model,
  "data.lengths": add_lengths,
  plans: add_plans,
  compare_to: add_compare_to,
};

function add_controls() {
  const form = part("settings");
  form.addEventListener("submit", (event) => event.preventDefault());
  for (const {title, controls: group} of controls.groups) {
    const fields = element("fieldset", {}, element("legend", {}, title));
    for (const control of group) {
      const id = "set-" + control.path.replaceAll(".", "-");
      (special[control.path] ?? add_scale)(fields, control, id);
    }
    fields.append(element("p", {className: "problem of-group", hidden: true}));
    form.append(fields);
  }
  add_any_key(form);
  show_values();
  mark_changes();
}

// ---- Problems, next to the control whose value they are about, or else below its group

function control_of(path) {
  const within = (whole, piece) => piece === whole || piece.startsWith(whole + ".");
  const found = [...shown.keys()].filter((each) => within(each, path)).sort((a, b) => b.length - a.length)[0];
  if (found) return shown.get(found).problem;
  const part_of = path && [...shown.keys()].find((each) => within(path, each));
  return part_of ? shown.get(part_of).box.closest("fieldset").querySelector(".of-group") ?? shown.get(part_of).problem :
                   null;
}

function show_problems(problems) {
  for (const place of document.querySelectorAll(".problem")) {
    place.hidden = true;
    place.replaceChildren();
  }
  for (const input of document.querySelectorAll("#settings [aria-invalid]")) input.removeAttribute("aria-invalid");
  for (const {path, message, help} of problems) {
    const place = control_of(path);
    if (!place) continue;
    place.hidden = false;
    place.append(element("span", {}, message), ...(help ? [element("span", {className: "help"}, help)] : []));
    place.closest(".control")
        ?.querySelectorAll("input, select")
        .forEach((input) => input.setAttribute("aria-invalid", "true"));
  }
}
