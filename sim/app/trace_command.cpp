#include <fmt/format.h>

#include <array>
#include <optional>

#include "sim/app/command.h"
#include "sim/app/standard_input.h"
#include "sim/base/machine_limits.h"
#include "sim/study/catalog.h"
#include "sim/trace/trace.h"

namespace hdpsim::app {
namespace {

/// A file of lengths and how to read it.
struct Input {
  std::string file;
  std::string format;
  std::string column;
  std::string step_column;
  std::int64_t neighbours = 0;    ///< Of the interactions of a graph; 0: that of EdgeOptions.
  std::int64_t interactions = 0;  ///< Of a step of those; 0: the lengths have no steps.
  std::int64_t seed = 1;
  std::int64_t count = DrawOptions{}.count;

  /// The same, with a file that can be read several times in place of standard input.
  [[nodiscard]] Input readable(std::optional<StandardInput>& kept) const {
    Input same = *this;
    if (file == "-") same.file = kept.emplace().path();
    return same;
  }
  [[nodiscard]] TraceOptions options() const {
    EdgeOptions edges;
    if (neighbours > 0) edges.neighbours = neighbours;
    if (interactions > 0) edges.interactions = interactions;
    if (neighbours + interactions > 0 && format != name_of(TraceFormat::edges)) {
      throw InputError("--neighbours and --interactions belong to the interactions of a graph", "add --from edges");
    }
    return {trace_format(format), column, step_column, edges};
  }
  [[nodiscard]] DrawOptions draw() const { return {static_cast<std::uint64_t>(seed), count}; }
  [[nodiscard]] std::unique_ptr<LengthSource> open() const { return open_lengths(file, options(), draw()); }
};

// Draws of ten minutes or so.
constexpr std::int64_t most_draws = 10'000'000'000;

void add_input(Command command, Input& input) {
  command.add_option("FILE", input.file, "Lengths, in any format of traces/README.md; - is standard input").required();
  command.add_option("--from", input.format, "The format of FILE (default: by its extension and columns)")
      .one_of(trace_format_names())
      .type_name("FORMAT");
  command.add_option("--column", input.column, "Column or field of the lengths").type_name("NAME");
  command.add_option("--step-column", input.step_column, "Column or field of the steps").type_name("NAME");
  add_count(command, "--neighbours", input.neighbours,
            "Most earlier neighbours in a sequence, if FILE holds the interactions of a graph (default: 10)", 1);
  add_count(command, "--interactions", input.interactions, "Interactions of a step of such a file (default: no steps)");
  add_count(command, "--count", input.count, "Lengths to draw, if FILE holds a distribution (default: 1,000,000)", 1,
            most_draws);
  add_count(command, "--seed", input.seed, "Seed of the draws (default: 1)", 0);
}

struct FigureOptions {
  Input input;
  Format format = Format::table;
};

// Opens the lengths, and says so where they are not those of documents.
std::unique_ptr<LengthSource> opened(const Input& input, const std::string& name) {
  const TraceFormat format = detect_format(input.file, input.options());
  if (holds_distribution(format)) {
    note(fmt::format("{} holds a distribution ({}): {} lengths are drawn from it", name, name_of(format), input.count));
  }
  return input.open();
}

int run_describe(const FigureOptions& options, const Session& /*session*/) {
  std::optional<StandardInput> kept;
  print(formatted(describe(*opened(options.input.readable(kept), options.input.file)), options.format), options.format);
  return 0;
}

int run_fit(const FigureOptions& options, const Session& /*session*/) {
  std::optional<StandardInput> kept;
  print(formatted(fit(*opened(options.input.readable(kept), options.input.file)), options.format), options.format);
  return 0;
}

constexpr std::int64_t most_points_of_table = 1'000'000;

struct ConvertOptions {
  Input input;
  std::string to;
  std::string out;
  std::int64_t points = WriteOptions{}.points;
};

// The default is in the working folder: lengths.txt becomes lengths.quantiles.csv.
std::filesystem::path default_output(const ConvertOptions& options) {
  const std::string& file = options.input.file;
  const std::filesystem::path stem = file == "-" ? "stdin" : std::filesystem::path(file).stem();
  if (options.to == "lines") return stem.string() + ".txt";
  const bool is_table = options.to == "histogram" || options.to == "quantiles";
  return fmt::format("{}.{}{}", stem.string(), options.to, is_table ? ".csv" : "");
}

void say_written(const std::filesystem::path& path, std::int64_t count) {
  note(count == 0 ? fmt::format("wrote {}", path.string())
                  : fmt::format("wrote {} lengths to {}", count, path.string()));
}

int run_convert(const ConvertOptions& options, const Session& /*session*/) {
  if (options.to.empty() && options.out.empty()) throw InputError("say what to write: --to FORMAT or --out FILE");
  if (options.points > most_points_of_table) throw InputError("--points is more than a million");
  const auto path = options.out.empty() ? default_output(options) : std::filesystem::path(options.out);
  const WriteOptions write{trace_format(options.to), static_cast<int>(options.points)};
  std::optional<StandardInput> kept;
  const Input input = options.input.readable(kept);
  say_written(path, convert(input.file, input.options(), path, write, input.draw()));
  return 0;
}

struct GenerateOptions {
  std::string preset;
  std::vector<double> lognormal;
  std::string edges;  ///< Empty: those of MixtureOptions.
  std::int64_t lowest = MixtureOptions{}.lowest;
  std::int64_t count = DrawOptions{}.count;
  std::int64_t seed = 1;
  std::int64_t steps = 0;
  std::int64_t context = 0;
  std::int64_t tokens_per_step = 0;
  std::string to;
  std::string out;
};

LengthDistributionPtr distribution_of(const GenerateOptions& options, const Session& session) {
  if (options.preset.empty() == options.lognormal.empty()) {
    throw InputError("lengths are drawn from a --preset or from a --lognormal");
  }
  if (!options.lognormal.empty()) return make_distribution(Lognormal{options.lognormal[0], options.lognormal[1]});
  MixtureOptions mixture{.lowest = options.lowest};
  if (!options.edges.empty()) mixture.edges = options.edges == "upper" ? ClassEdges::upper : ClassEdges::lower;
  return load_preset(options.preset, Catalog(session.data_folder).traces(), mixture);
}

// About as much as a file of so many lengths takes: the digits of the middle one and the end of its line, or the words
// of JSON; tables take nothing.
double written_bytes(const std::filesystem::path& path, const WriteOptions& write, const LengthDistribution& lengths,
                     double count) {
  const std::optional<TraceFormat> format = write.format ? write.format : format_of_extension(path);
  if (format == TraceFormat::npy) return 8 * count;
  if (!format || holds_distribution(*format)) return 0;
  const auto line = static_cast<double>(fmt::formatted_size("{}\n", lengths.quantile(0.5)));
  return (line + (format == TraceFormat::jsonl ? 12 : 0)) * count;
}

int run_generate(const GenerateOptions& options, const Session& session) {
  const LengthDistributionPtr distribution = distribution_of(options, session);
  session.inputs.require_none_at(options.out);
  const WriteOptions write{trace_format(options.to)};
  const auto seed = static_cast<std::uint64_t>(options.seed);
  if (options.steps == 0) {
    require_disk(options.out, written_bytes(options.out, write, *distribution, static_cast<double>(options.count)));
    say_written(options.out, write_trace(*make_drawn_lengths(distribution, seed, options.count), options.out, write));
    return 0;
  }
  if (options.context == 0 || options.tokens_per_step < options.context) {
    throw InputError("--steps needs --context and a --tokens-per-step that is not less");
  }
  const BatchOptions batch{.context = options.context,
                           .tokens_per_step = options.tokens_per_step,
                           .overlong = Overlong::split,
                           .seed = seed};
  const BatchSourcePtr batches = make_batches(distribution, batch);
  const double sequences = batches->sequences_per_step() * static_cast<double>(options.steps);
  require_memory("a step", batches->sequences_per_step() * sizeof(Sequence));
  require_disk(options.out, written_bytes(options.out, write, *distribution, sequences));
  say_written(options.out, write_trace(*make_batch_lengths(*batches, options.steps), options.out, write));
  return 0;
}

void add_generate(Command trace, Session& session) {
  const Command command =
      trace.add_subcommand("generate", "Draw lengths, or the batches of a run, from a distribution");
  GenerateOptions& options = add_command(command, session, run_generate);
  command
      .add_option("--preset", options.preset,
                  "A distribution of traces/: github, byted, reasoning, rl-dapo, wikipedia, web")
      .type_name("NAME");
  command.add_option("--lognormal", options.lognormal, "Mean and deviation of ln(tokens)")
      .expected(2)
      .type_name("MU SIGMA");
  command.add_option("--edges", options.edges, "Which edge of a class its label is: upper or lower (default)")
      .one_of({"upper", "lower"})
      .type_name("EDGE");
  add_count(command, "--lowest", options.lowest, "Shortest length of the lowest class (default: 256)");
  add_count(command, "--count", options.count, "How many lengths (default: 1,000,000)", 1, most_draws);
  add_count(command, "--seed", options.seed, "Seed (default: 1)", 0);
  add_count(command, "--steps", options.steps, "Instead of a number of lengths: the batches of this many steps");
  add_count(command, "--context", options.context, "The longest sequence of a batch; longer ones are split");
  add_count(command, "--tokens-per-step", options.tokens_per_step, "Tokens of a batch");
  command.add_option("--to", options.to, "The format to write (default: by the extension)")
      .one_of(trace_format_names())
      .type_name("FORMAT");
  command.add_option("--out", options.out, "The file to write").required().type_name("FILE");
  command.footer("Example:\n  hdpsim trace generate --preset github --count 100k --out github.csv");
}

void add_convert(Command trace, Session& session) {
  const Command command = trace.add_subcommand("convert", "Rewrite a file of lengths in another format");
  ConvertOptions& options = add_command(command, session, run_convert);
  add_input(command, options.input);
  command.add_option("--to", options.to, "The format to write (default: by the extension of --out)")
      .one_of(trace_format_names())
      .type_name("FORMAT");
  command.add_option("--out", options.out, "The file to write (default: the name of FILE, in the working folder)")
      .type_name("FILE");
  add_count(command, "--points", options.points, "Points of a quantile table (default: 1000)", 16);
  command.footer("Example:\n  hdpsim trace convert dataset.idx --to quantiles");
}

}  // namespace

void add_trace_command(Command app, Session& session) {
  const Command trace = app.add_subcommand("trace", "Describe, generate, convert and fit sequence lengths");
  trace.require_subcommand();
  trace.footer(
      "Examples:\n  hdpsim trace describe traces/github.csv\n  hdpsim trace generate --preset byted --out byted.csv");
  const Command describe_command =
      trace.add_subcommand("describe", "Percentiles and the shares above 4Ki ... 2Mi tokens");
  FigureOptions& description = add_command(describe_command, session, run_describe);
  add_input(describe_command, description.input);
  add_format(describe_command, description.format);
  describe_command.footer(
      "Examples:\n  hdpsim trace describe traces/github.csv --format csv\n"
      "  seq 100 200 | hdpsim trace describe -");

  const Command fit_command = trace.add_subcommand("fit", "Fit a lognormal, with and without a Pareto tail");
  FigureOptions& fitted = add_command(fit_command, session, run_fit);
  add_input(fit_command, fitted.input);
  add_format(fit_command, fitted.format);
  fit_command.footer("Example:\n  hdpsim trace fit lengths.csv --column tokens");

  add_generate(trace, session);
  add_convert(trace, session);
}

}  // namespace hdpsim::app
