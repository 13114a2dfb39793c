// The page without a server: its program runs in workers. A worker that is busy hears nothing, so that one whose answer
// nobody reads any more is ended; another one takes its place, which is told all that the ended one knew.
"use strict";

(() => {
  const most_bytes = 64 * 2 ** 20;  // of a file of lengths, as on a server's page
  const parts = {};                 // of this file: texts, compressed

  const unpacked = (id) => {
    const text = document.getElementById(id).textContent;
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")));
  };

  // ---- Workers

  const known = [];  // what every worker is told first
  const idle = [];   // promises of workers that are ready

  // Resolves when the worker has done what the message says. Lines of its answer go to `take`.
  const tell = (worker, message, take = () => {}) => new Promise((resolve, reject) => {
    worker.onmessage = ({data}) => {
      if (data.line !== undefined) return take(JSON.parse(data.line));
      if (data.failed !== undefined) return reject(new Error(data.failed));
      resolve();
    };
    worker.onerror = (event) => reject(new Error(event.message));
    worker.postMessage(message);
  });

  async function started() {
    const {script, module} = parts;
    const worker = new Worker(await script);
    await tell(worker, {action: "start", module: await module});
    return {worker, told: 0};
  }

  // A worker with all that is known.
  async function ready() {
    const one = await (idle.pop() ?? started());
    while (one.told < known.length) await tell(one.worker, known[one.told++]);
    return one;
  }

  async function work(message, take, signal) {
    const one = await ready();
    if (signal?.aborted) {
      idle.push(Promise.resolve(one));
      throw signal.reason;
    }
    let end;
    const ended = new Promise((_, reject) => {
      end = () => reject(signal.reason);
      signal?.addEventListener("abort", end, {once: true});
    });
    try {
      await Promise.race([tell(one.worker, message, take), ended]);
      idle.push(Promise.resolve(one));
    } catch (error) {
      one.worker.terminate();  // it is busy, or has failed: then its memory is not to be trusted
      if (idle.length === 0) idle.push(ready());
      throw error;
    } finally {
      signal?.removeEventListener("abort", end);
    }
  }

  // ---- The program of the page (page/program.js)

  window.hdpsim_program = {
    ask: (question, take, signal) => work({action: "ask", question: JSON.stringify(question)}, take, signal),
    async take_lengths(file) {
      if (file.size > most_bytes) throw new Error("it is larger than 64 MB");
      const message = {action: "lengths", name: file.name, bytes: new Uint8Array(await file.arrayBuffer())};
      const one = await ready();
      let answer;
      await tell(one.worker, message, (line) => answer = line);
      if (answer.kind === "failed") throw new Error(answer.text);
      known.push(message);
      one.told = known.length;
      idle.push(Promise.resolve(one));
      return answer.taken;
    },
    why_silent: (error) => `The program in this page has ended: ${error.message}. Change a setting to go on.`,
    life_of_links: "It opens these settings of this page; files of yours are not in it.",
  };

  // ---- The choice of a study

  const show_state = (text) => document.getElementById("state").textContent = text;

  async function show(study, text) {
    show_state("The simulator starts …");
    const begin = {action: "begin", study, text};
    const one = await started();
    let answer;
    await tell(one.worker, begin, (line) => answer = line);
    if (!answer) await tell(one.worker, {action: "page"}, (line) => answer = line);
    if (answer.kind === "failed") return show_state(answer.text);
    known.push(begin);
    one.told = known.length;
    idle.push(Promise.resolve(one));
    document.open();
    document.write(answer.html);
    document.close();
    const others = Object.assign(document.createElement("a"), {href: "?", textContent: "other studies"});
    document.querySelector(".brand").append(" · ", others);
  }

  async function take_study([file]) {
    if (file) await guarded(show(`/own/${file.name.replaceAll("/", "_")}`, await file.text()));
  }
  const guarded = (shown) => shown.catch((error) => show_state(`The simulator does not start: ${error.message}`));

  parts.script = unpacked("script").text().then((text) => URL.createObjectURL(new Blob([text])));
  parts.module = unpacked("module").arrayBuffer().then((bytes) => WebAssembly.compile(bytes));
  document.getElementById("own").addEventListener("change", ({target}) => take_study(target.files));
  const name = new URLSearchParams(location.search).get("study");
  if (/^[\w.-]+$/.test(name ?? "")) guarded(show(`/hdpsim/configs/studies/${name}.yaml`));
})();
