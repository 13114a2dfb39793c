// In a worker, behind what emscripten has written: does what the page asks for, one message at a time. The answer to a
// message is any number of {line}, then {done} or {failed}.

let engine;

// Copies of bytes and texts for the program's own memory.
const with_bytes = (bytes, work) => {
  const at = engine._malloc(bytes.length);
  engine.HEAPU8.set(bytes, at);
  work(at);
  engine._free(at);
};
const write_text = (path, text) => {
  engine.FS.mkdirTree(path.slice(0, path.lastIndexOf("/")));
  engine.FS.writeFile(path, text);
};

const actions = {
  async start({module}) {
    engine = await make_engine({
      take_line: (line) => postMessage({line}),
      instantiateWasm(imports, take) {
        WebAssembly.instantiate(module, imports).then((instance) => take(instance, module));
        return {};
      },
    });
  },
  begin({study, text}) {
    if (text !== undefined) write_text(study, text);
    engine.ccall("hdpsim_begin", null, ["string"], [study]);
  },
  page: () => engine.ccall("hdpsim_page", null, [], []),
  lengths({name, bytes}) {
    with_bytes(bytes, (at) => engine.ccall("hdpsim_take_lengths", null, ["string", "number", "number"],
                                           [name, at, bytes.length]));
  },
  ask: ({question}) => engine.ccall("hdpsim_ask", null, ["string"], [question]),
};

onmessage = async ({data}) => {
  try {
    await actions[data.action](data);
    postMessage({done: true});
  } catch (error) {
    postMessage({failed: String(error)});
  }
};
