// Gives mutations of seeds to the targets, in processes of their own, and prints what became of them. Every find is
// written as a file, with the line that replays it.
//
// usage: hdpsim_fuzz [--target=NAME] [--changes N] [--seed S] [--only I] [--jobs J] [--found FOLDER]
//
// N executions in all, shared among the targets by Target::share; the seeds of a target are the first of its inputs.

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "sim/base/check.h"
#include "tests/fuzz/scratch_files.h"
#include "tests/fuzz/worker.h"

namespace hdpsim::fuzz {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::vector<const Target*> targets;
  std::uint64_t changes = 100'000;
  std::uint64_t seed = 1;
  std::optional<std::uint64_t> only;
  std::size_t jobs = 2;
  fs::path found = "found";
};

Options options_of(const std::vector<std::string>& arguments) {
  Options options;
  const auto number = [&](std::size_t& i) { return std::stoull(arguments.at(++i)); };
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& option = arguments[i];
    if (option.starts_with("--target=")) {
      const Target* target = target_of(option.substr(option.find('=') + 1));
      if (target == nullptr) throw std::invalid_argument(option);
      options.targets.push_back(target);
    } else if (option == "--changes") {
      options.changes = number(i);
    } else if (option == "--seed") {
      options.seed = number(i);
    } else if (option == "--only") {
      options.only = number(i);
    } else if (option == "--jobs") {
      options.jobs = number(i);
    } else if (option == "--found") {
      options.found = arguments.at(++i);
    } else {
      throw std::invalid_argument(option);
    }
  }
  if (options.targets.empty()) {
    for (const Target& target : targets()) options.targets.push_back(&target);
  }
  return options;
}

/// A target and what became of its inputs.
struct Attacked {
  Attacked(const Target& which, std::uint64_t count)
      : target(which), changer(which.extension, seeds_of(which)), executions(count) {}
  const Target& target;
  Changer changer;
  std::uint64_t executions;
  Counts counts;
  std::uint64_t finds = 0;
  std::set<std::string> kinds;  ///< Of finds.
};

class Attack {
 public:
  explicit Attack(Options options) : options_(std::move(options)), workers_(options_.jobs) {
    std::uint64_t shares = 0;
    for (const Target* target : options_.targets) shares += target->share;
    HDPSIM_CHECK(shares > 0, "{} targets", options_.targets.size());
    for (const Target* target : options_.targets) {
      attacked_.push_back(std::make_unique<Attacked>(*target, options_.changes * target->share / shares));
      add(*attacked_.back());
    }
  }

  /// Returns the number of finds.
  std::uint64_t run() {
    (void)shipped_catalog();  // once, for all workers, and so is the folder that goes when the attack ends
    (void)scratch();
    std::size_t busy = 0;
    for (Worker& worker : workers_) busy += start_next(worker) ? 1 : 0;
    while (busy > 0) {
      int status = 0;
      const pid_t ended = wait(&status);
      const auto worker =
          std::find_if(workers_.begin(), workers_.end(), [&](const Worker& w) { return w.process() == ended; });
      if (worker == workers_.end()) continue;
      fs::remove_all(scratch() / std::to_string(ended));
      take(*worker, status);
      if (!start_next(*worker)) --busy;
    }
    print_table();
    std::uint64_t finds = 0;
    for (const auto& attacked : attacked_) finds += attacked->finds;
    return finds;
  }

 private:
  void add(Attacked& attacked) {
    constexpr std::uint64_t batch = 250;
    if (attacked.changer.seeds() == 0) throw std::invalid_argument(fmt::format("{}: no seed", attacked.target.name));
    const auto put = [&](std::uint64_t begin, std::uint64_t end) {
      batches_.push_back({&attacked.target, &attacked.changer, options_.seed, begin, end});
    };
    if (options_.only) return put(*options_.only, *options_.only + 1);
    for (std::uint64_t i = 0; i < attacked.executions; i += batch) put(i, std::min(i + batch, attacked.executions));
  }

  bool start_next(Worker& worker) {
    if (batches_.empty()) return false;
    const WorkerBatch batch = batches_.front();
    batches_.pop_front();
    worker.start(batch);
    return true;
  }

  Attacked& attacked_by(const Worker& worker) {
    return **std::find_if(attacked_.begin(), attacked_.end(),
                          [&](const auto& attacked) { return &attacked->target == worker.batch().target; });
  }

  void take(const Worker& worker, int status) {
    const Report report = worker.report(status);
    Attacked& attacked = attacked_by(worker);
    attacked.counts.refused += report.counts.refused;
    attacked.counts.accepted += report.counts.accepted;
    attacked.counts.skipped += report.counts.skipped;
    attacked.counts.processor_s += report.counts.processor_s;
    if (options_.only) fmt::print("{}", report.reason);
    if (!report.find) return;
    tell(attacked, report.next - 1, *report.find);
    WorkerBatch rest = worker.batch();
    rest.begin = report.next;
    if (rest.begin < rest.end) batches_.push_front(rest);
  }

  // What tells two finds apart: their words without numbers.
  static std::string kind_of(const std::string& text) {
    std::string kind;
    std::copy_if(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(text.size(), 60)),
                 std::back_inserter(kind), [](unsigned char c) { return std::isdigit(c) == 0 && c != '.'; });
    return kind;
  }

  void tell(Attacked& attacked, std::uint64_t number, const std::string& text) {
    ++attacked.finds;
    const Target& target = attacked.target;
    const bool is_new = attacked.kinds.insert(kind_of(text)).second;
    fs::create_directories(options_.found);
    const fs::path file =
        options_.found / fmt::format("{}-{}-{}{}", target.name, options_.seed, number, target.extension);
    std::ofstream(file, std::ios::binary) << attacked.changer.input(options_.seed, number);
    fmt::print("{}{}: {}\n    replay: hdpsim_fuzz --target={} --seed {} --only {}\n    input: {}\n",
               is_new ? "" : "again ", target.name, text, target.name, options_.seed, number, file.string());
    (void)std::fflush(stdout);
  }

  void print_table() const {
    constexpr auto row = "{:<18}{:>11}{:>10}{:>10}{:>10}{:>7}{:>7}{:>13}\n";
    fmt::print(row, "target", "executions", "refused", "accepted", "skipped", "finds", "kinds", "processor s");
    Counts all;
    std::uint64_t finds = 0;
    std::size_t kinds = 0;
    const auto print = [&](std::string_view name, const Counts& counts, std::uint64_t found, std::size_t of_kinds) {
      fmt::print(row, name, counts.refused + counts.accepted + counts.skipped + found, counts.refused, counts.accepted,
                 counts.skipped, found, of_kinds, fmt::format("{:.1f}", counts.processor_s));
    };
    for (const auto& attacked : attacked_) {
      const Counts& counts = attacked->counts;
      print(attacked->target.name, counts, attacked->finds, attacked->kinds.size());
      all.refused += counts.refused;
      all.accepted += counts.accepted;
      all.skipped += counts.skipped;
      all.processor_s += counts.processor_s;
      finds += attacked->finds;
      kinds += attacked->kinds.size();
    }
    if (attacked_.size() > 1) print("all", all, finds, kinds);
  }

  Options options_;
  std::vector<Worker> workers_;
  std::vector<std::unique_ptr<Attacked>> attacked_;
  std::deque<WorkerBatch> batches_;
};

}  // namespace
}  // namespace hdpsim::fuzz

int main(int count, char** arguments) {
  using namespace hdpsim::fuzz;
  try {
    return Attack(options_of({arguments + 1, arguments + count})).run() == 0 ? 0 : 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 2;
  }
}
