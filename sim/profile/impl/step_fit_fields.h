#pragma once

#include "sim/profile/impl/field_words.h"
#include "sim/profile/step_fit.h"

namespace hdpsim {

// The fields of the record of a fit to measured steps, each stated once; see profile_fields.h.

template <class Io>
void fields(Io& io, typename Io::template Of<FittedParameter>& p) {
  io.one_line();
  io.word("name", p.name);
  io.number("start", p.start);
  io.number("value", p.value);
  io.number("p5", p.p5);
  io.number("p95", p.p95);
  io.number("prior_p5", p.prior_p5);
  io.number("prior_p95", p.prior_p95);
  io.meaning("whether the rows say something about it");
  io.choice("determined", "choice", p.determined, Words<bool>{{"yes", true}, {"no", false}});
  io.meaning("correlations with the parameters before it, in their order");
  io.numbers("correlations", p.correlations);
}

template <class Io>
void fields(Io& io, typename Io::template Of<FittedRow>& r) {
  io.one_line();
  io.word("figure", r.figure);
  io.text("row", r.row);
}

template <class Io>
void fields(Io& io, typename Io::template Of<StepFit>& f) {
  io.meaning("the profile from which the fit started, and its label");
  io.text("start", f.start);
  io.meaning("the name of the set of rows");
  io.text("set", f.set);
  io.meaning("where the rows come from");
  io.text("source", f.source);
  io.meaning("mean |predicted / measured - 1| over the rows, with the starting profile");
  io.number("error_before", f.error_before);
  io.meaning("the same after the fit");
  io.number("error_after", f.error_after);
  io.meaning("the same of rows that are predicted by a fit to rows of other groups; 0: not computed");
  io.number("error_cross_validated", f.error_cross_validated);
  io.meaning("values with intervals of 90 %, and what was believed before");
  io.list("parameters", {"a fitted parameter", "parameter", true}, f.parameters);
  io.meaning("the rows that the profile was fitted to: hdpsim validate does not count their errors");
  io.list("rows", {"a fitted row", "row", true}, f.rows);
}

}  // namespace hdpsim
