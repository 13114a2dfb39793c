// ---- The program that answers: that of the server whose page this is. A page without a server has brought one with the
// same members (browser/loader.js).

const served_program = {
  // Hands every line of the answer to `take`. The program stops working for an answer that nobody reads: `signal` ends
  // it.
  async ask(question, take, signal) {
    const response = await fetch("ask", {method: "POST", signal, body: JSON.stringify(question)});
    if (!response.ok) throw new Error(await response.text());
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const {done, value} = await reader.read();
      if (done) return;
      const lines = (rest + value).split("\n");
      rest = lines.pop();
      lines.filter(Boolean).forEach((line) => take(JSON.parse(line)));
    }
  },
  // {file, name} of a file that data.lengths can name from now on.
  async take_lengths(file) {
    const response = await fetch("lengths?name=" + encodeURIComponent(file.name), {method: "POST", body: file});
    if (response.ok) return response.json();
    throw new Error(response.status === 413 ? "it is larger than 64 MB" : response.status);
  },
  why_silent: () => "hdpsim explore does not answer: has it been ended?",
  life_of_links: "It works as long as this hdpsim explore runs.",
};
const program = window.hdpsim_program ?? served_program;

const ask = (want, from, take, signal) => program.ask({want, set: assignments(from)}, take, signal);
