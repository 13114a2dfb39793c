#pragma once

#include "sim/profile/impl/field_words.h"
#include "sim/profile/trace_record.h"

namespace hdpsim {

// The fields of the record of traces of a profiler, each stated once; see profile_fields.h.

template <class Io>
void fields(Io& io, typename Io::template Of<TracedPart>& p) {
  io.one_line();
  io.text("part", p.part);
  io.meaning("fitted to samples of many sizes, or the starting profile's figures times one factor");
  io.choice("how", "choice", p.how, Words<std::string>{{"fitted", "fitted"}, {"scaled", "scaled"}});
  io.meaning("what came out");
  io.text("value", p.value);
  io.count("samples", p.samples);
  io.meaning("different shapes or amounts of bytes among them");
  io.count("sizes", p.sizes);
  io.meaning("deciles 1 and 9 of measured / predicted over the samples");
  io.number("p10", p.p10);
  io.number("p90", p.p90);
}

template <class Io>
void fields(Io& io, typename Io::template Of<TracedFile>& f) {
  io.one_line();
  io.text("file", f.file);
  io.count("kernels", f.kernels);
}

template <class Io>
void fields(Io& io, typename Io::template Of<KeptPart>& k) {
  io.one_line();
  io.text("part", k.part);
  io.text("why", k.why);
}

template <class Io>
void fields(Io& io, typename Io::template Of<TraceRecord>& t) {
  io.meaning("the profile from which the fit started, and its label");
  io.text("start", t.start);
  io.meaning("the traces, one for each rank");
  io.list("files", {"a trace", "trace", true}, t.files);
  io.meaning("time of all kernels in them");
  io.number("kernel_s", t.kernel_s);
  io.meaning("the share of that time in kernels of unknown names");
  io.number("unclassified", t.unclassified);
  io.meaning("what came from the traces");
  io.list("parts", {"a part from traces", "part"}, t.parts);
  io.meaning("what is the starting profile's, and why");
  io.list("kept", {"a kept part", "part"}, t.kept);
}

}  // namespace hdpsim
