// ---- Settings: what the page changes of its study, path by path, as after --set. The address holds them after its #,
// with those of the variants that are pinned.

const controls = data.controls;
const main_controls = controls.groups.flatMap((group) => group.controls);

let settings = new Map();  // path -> YAML text
let pinned = [];           // the settings of each variant

// A whole cluster comes before its parts, whatever was set first.
const order_of = (path) => {
  const index = main_controls.findIndex((control) => control.path === path);
  return index < 0 ? main_controls.length : index;
};
const in_order = (from) => [...from].sort(([a], [b]) => order_of(a) - order_of(b));
const assignments = (from) => in_order(from).map(([path, text]) => `${path}=${text}`);

function address_of(from, pins) {
  const parameters = new URLSearchParams(in_order(from));
  for (const pin of pins) parameters.append("pin", new URLSearchParams(in_order(pin)).toString());
  return "#" + parameters;
}
function read_address(fragment) {
  const parameters = [...new URLSearchParams(fragment.replace(/^#/, ""))];
  settings = new Map(parameters.filter(([path]) => path !== "pin"));
  pinned = parameters.filter(([path]) => path === "pin").map(([, pin]) => new Map(new URLSearchParams(pin)));
}

// ---- Values as YAML and as text

const needs_quotes = (text) => !/^[A-Za-z0-9_./%@^-][A-Za-z0-9_./%@^ -]*$/.test(text) || /^\s|\s$/.test(text);
const yaml_of = (value) => {
  if (value === null || value === undefined) return "null";
  if (Array.isArray(value)) return `[${value.map(yaml_of).join(", ")}]`;
  if (typeof value === "object") return `{${options_of(value)}}`;
  if (typeof value === "number") return Number.isInteger(value) ? tokens(value).replaceAll(",", "") : String(value);
  return typeof value === "string" && needs_quotes(value) ? JSON.stringify(value) : String(value);
};
// {cp: 8, order: given} without its braces.
const options_of = (map) => Object.entries(map).map(([key, value]) => `${key}: ${yaml_of(value)}`).join(", ");

// Counts of controls whose stops are plain numbers are plain, too; others are like 8Ki.
const plain_counts =
    main_controls.filter(({stops}) => !stops.some((stop) => /[KMG]i$/.test(stop))).map(({path}) => path);
const text_in = (study, path) => {
  const value = value_at(study, path);
  return Number.isInteger(value) && plain_counts.includes(path) ? String(value) : yaml_of(value);
};
const value_at = (study, path) => path.split(".").reduce((at, key) => at?.[key], study);

// "200 Gbit/s", "25 GB/s", "2Mi", "1k" and "1024" as numbers; rates in Gbit/s, so that stops can be put in order.
function amount(text) {
  const match = /^\s*([\d.]+)\s*(Ki|Mi|Gi|k|M|G)?\s*((?:T|G|M)(?:B|bit)\/s)?\s*$/.exec(text);
  if (!match) return NaN;
  const sizes = {Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, k: 1e3, M: 1e6, G: 1e9};
  const rates = {T: 1e3, G: 1, M: 1e-3};
  const [, number, size, rate] = match;
  return Number(number) * (size ? sizes[size] : 1) * (rate ? rates[rate[0]] * (rate.includes("B") ? 8 : 1) : 1);
}
