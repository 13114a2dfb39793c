#pragma once

#include "sim/profile/impl/field_list.h"
#include "sim/profile/step_fit.h"
#include "sim/profile/trace_record.h"

namespace hdpsim {

// The fields of the records of how a profile came about: a fit to measured steps, traces of a profiler.

inline void declare(Fields<FittedParameter>& f) {
  using P = FittedParameter;
  f.one_line();
  f.word("name", &P::name);
  f.number("start", &P::start);
  f.number("value", &P::value);
  f.number("p5", &P::p5);
  f.number("p95", &P::p95);
  f.number("prior_p5", &P::prior_p5);
  f.number("prior_p95", &P::prior_p95);
  f.choice("determined", "choice", &P::determined, {{"yes", true}, {"no", false}},
           "whether the rows say something about it");
  f.numbers("correlations", &P::correlations, "correlations with the parameters before it, in their order");
}

inline void declare(Fields<FittedRow>& f) {
  f.one_line();
  f.word("figure", &FittedRow::figure);
  f.text("row", &FittedRow::row);
}

inline void declare(Fields<StepFit>& f) {
  f.text("start", &StepFit::start, "the profile from which the fit started, and its label");
  f.text("set", &StepFit::set, "the name of the set of rows");
  f.text("source", &StepFit::source, "where the rows come from");
  f.number("error_before", &StepFit::error_before,
           "mean |predicted / measured - 1| over the rows, with the starting profile");
  f.number("error_after", &StepFit::error_after, "the same after the fit");
  f.number("error_cross_validated", &StepFit::error_cross_validated,
           "the same of rows that are predicted by a fit to rows of other groups; 0: not computed");
  f.list("parameters", {"a fitted parameter", "parameter", true}, &StepFit::parameters,
         "values with intervals of 90 %, and what was believed before");
  f.list("rows", {"a fitted row", "row", true}, &StepFit::rows,
         "the rows that the profile was fitted to: hdpsim validate does not count their errors");
}

inline void declare(Fields<TracedPart>& f) {
  using P = TracedPart;
  f.one_line();
  f.text("part", &P::part);
  f.choice("how", "choice", &P::how, {{"fitted", "fitted"}, {"scaled", "scaled"}},
           "fitted to samples of many sizes, or the starting profile's figures times one factor");
  f.text("value", &P::value, "what came out");
  f.count("samples", &P::samples);
  f.count("sizes", &P::sizes, "different shapes or amounts of bytes among them");
  f.number("p10", &P::p10, "deciles 1 and 9 of measured / predicted over the samples");
  f.number("p90", &P::p90);
}

inline void declare(Fields<TracedFile>& f) {
  f.one_line();
  f.text("file", &TracedFile::file);
  f.count("kernels", &TracedFile::kernels);
}

inline void declare(Fields<KeptPart>& f) {
  f.one_line();
  f.text("part", &KeptPart::part);
  f.text("why", &KeptPart::why);
}

inline void declare(Fields<TraceRecord>& f) {
  f.text("start", &TraceRecord::start, "the profile from which the fit started, and its label");
  f.list("files", {"a trace", "trace", true}, &TraceRecord::files, "the traces, one for each rank");
  f.number("kernel_s", &TraceRecord::kernel_s, "time of all kernels in them");
  f.number("unclassified", &TraceRecord::unclassified, "the share of that time in kernels of unknown names");
  f.list("parts", {"a part from traces", "part"}, &TraceRecord::parts, "what came from the traces");
  f.list("kept", {"a kept part", "part"}, &TraceRecord::kept, "what is the starting profile's, and why");
}

}  // namespace hdpsim
