#include <fmt/format.h>

#include "sim/app/command.h"
#include "sim/app/from_samples.h"
#include "sim/app/from_steps.h"
#include "sim/app/from_trace.h"

namespace hdpsim::app {
namespace {

struct NoOptions {};

int refuse(const NoOptions&, const Session&) {
  throw MachineError(
      "this program was built only for studies, without kernels\n"
      "        ./scripts/build builds all of it");
}

struct CalibrateOptions {
  FromStepsOptions steps;
  FromTraceOptions traces;
  FromSamplesOptions samples;
  std::vector<std::string> nccl_tests;
  std::string out;
  std::string name;
  std::optional<Command> command;
};

int calibrate(const CalibrateOptions& options, const Session& session) {
  const bool from_trace = !options.traces.traces.empty();
  const bool from_messages = !options.nccl_tests.empty() && !options.steps.like.empty() && !from_trace;
  const bool from_samples = !options.samples.files.empty();
  if (options.steps.rows.empty() && !from_trace && !from_messages && !from_samples) return refuse({}, session);
  for (const std::string& extra : options.command->remaining()) {
    throw InputError(fmt::format("calibrate knows no '{}' where it measures nothing", extra),
                     "hdpsim calibrate --help has its options");
  }
  if (from_messages && options.steps.rows.empty()) {
    return calibrate_from_nccl_tests(options.nccl_tests, options.steps.like, options.out, session);
  }
  if (from_trace || from_samples) require_no_format(options.steps);
  if (from_samples) {
    return calibrate_from_samples({options.samples.files, options.steps.like, options.out, options.name}, session);
  }
  if (from_trace) return calibrate_from_trace(options.traces, options.steps.like, options.out, session);
  return calibrate_from_steps(options.steps, options.out, session);
}

void add_missing(Command app, Session& session, const char* name, const char* help) {
  const Command command = app.add_subcommand(name, help);
  command.allow_extras();
  command.footer("Not in this build, which has no kernels: ./scripts/build builds all of it.");
  add_command(command, session, refuse);
}

}  // namespace

// What needs no kernels is here, too.
void add_calibrate_command(Command app, Session& session) {
  const Command command = app.add_subcommand("calibrate", calibrate_help);
  command.allow_extras();
  command.footer(
      "In this build, which has no kernels, it fits profiles to measured steps, samples, traces and nccl-tests: "
      "./scripts/build builds all of it.\n"
      "Example:\n  hdpsim calibrate --from-steps sc21 --fit gemm,host_issue --out fitted.yaml");
  CalibrateOptions& options = add_command(command, session, calibrate);
  options.command = command;
  add_from_steps(command, options.steps);
  add_from_trace(command, options.traces);
  add_nccl_tests(command, options.nccl_tests);
  add_from_samples(command, options.samples);
  command.option("--from-trace").excludes(command.option("--from-steps"));
  for (const char* from : {"--from-steps", "--from-trace"})
    command.option("--from-samples").excludes(command.option(from));
  command.add_option("--out", options.out, "The fitted profile, FILE.yaml (default: none)").type_name("PATH");
  command.add_option("--name", options.name, "Name of the new profile of samples (default: DEVICE-measured)")
      .type_name("NAME")
      .needs(command.option("--from-samples"));
}

void add_execute_command(Command app, Session& session) {
  add_missing(app, session, "execute", execute_help);
}

}  // namespace hdpsim::app
