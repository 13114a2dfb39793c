// Reads every file of a corpus and so many random changes of them, for compilers without a fuzzer. Prints what it was
// reading when the program dies, and how to read it again.
//
// usage: hdpsim_fuzz --target=NAME CORPUS... [--changes N] [--seed S] [--only I]

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "sim/base/random.h"
#include "tests/fuzz/target.h"

namespace hdpsim::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr unsigned longest_s = 5;
constexpr rlim_t most_memory = rlim_t{3} << 30;

struct Options {
  std::vector<fs::path> corpus;
  std::uint64_t changes = 0;
  std::uint64_t seed = 1;
  std::int64_t only = -1;
};

std::vector<std::string> inputs_of(const std::vector<fs::path>& folders) {
  std::vector<fs::path> paths;
  for (const fs::path& folder : folders) {
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.path().extension() == target().extension) paths.push_back(entry.path());
    }
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> inputs;
  for (const fs::path& path : paths) {
    std::ifstream file(path, std::ios::binary);
    inputs.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return inputs;
}

/// Changes inputs as hostile or broken writers would.
class Changer {
 public:
  Changer(const std::vector<std::string>& inputs, std::uint64_t seed, std::uint64_t index)
      : inputs_(inputs), random_(seed, "fuzz", index) {}

  std::string changed() {
    std::string text = inputs_[random_.below(inputs_.size())];
    const std::uint64_t changes = 1 + random_.below(4);
    for (std::uint64_t i = 0; i < changes; ++i) change(text);
    return text;
  }

 private:
  std::size_t place(const std::string& text) { return static_cast<std::size_t>(random_.below(text.size() + 1)); }

  void change(std::string& text) {
    constexpr std::size_t longest_slice = 64;
    const std::size_t at = place(text);
    const std::size_t length = std::min<std::size_t>(text.size() - at, random_.below(longest_slice));
    switch (random_.below(7)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(random_.below(256));
        return;
      case 1:
        text.erase(at, length);
        return;
      case 2:
        text.insert(at, text.substr(place(text), longest_slice));
        return;
      case 3:
        return number(text, at);
      case 4:
        text.insert(at, random_.below(2) == 0 ? std::string(1000, '[') : std::string(1000, '{'));
        return;
      case 5:
        text.resize(at);
        return;
      default:
        const std::string& other = inputs_[random_.below(inputs_.size())];
        text.replace(at, length, other.substr(place(other), 4 * longest_slice));
    }
  }

  /// The number that follows becomes one that arithmetic dislikes.
  void number(std::string& text, std::size_t at) {
    static const std::vector<std::string> numbers = {
        "0", "-1", "9223372036854775807", "9223372036854775808", "1e308", "-0.0", "nan", "1e-320", "4294967296", "1Ti"};
    const std::size_t begin = text.find_first_of("0123456789", at);
    if (begin == std::string::npos) return;
    const std::size_t end = std::min(text.find_first_not_of("0123456789.e", begin), text.size());
    text.replace(begin, end - begin, numbers[random_.below(numbers.size())]);
  }

  const std::vector<std::string>& inputs_;
  RandomStream random_;
};

// What is being read: for the handler, which may not allocate.
std::string now_reading;
std::string last_input;

void say_and_die(int signal) {
  (void)!write(STDERR_FILENO, now_reading.data(), now_reading.size());
  const int reason = signal == SIGALRM ? SIGABRT : signal;
  (void)std::signal(reason, SIG_DFL);
  (void)std::raise(reason);
}

void read_one(const std::string& input, std::string what) {
  now_reading = std::move(what);
  alarm(longest_s);
  read(input);
  alarm(0);
}

Options options_of(const std::vector<std::string>& arguments) {
  Options options;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const auto number = [&] { return std::stoull(arguments.at(++i)); };
    if (arguments[i] == "--changes") {
      options.changes = number();
    } else if (arguments[i] == "--seed") {
      options.seed = number();
    } else if (arguments[i] == "--only") {
      options.only = static_cast<std::int64_t>(number());
    } else if (!arguments[i].starts_with("--target=")) {
      options.corpus.emplace_back(arguments[i]);
    }
  }
  return options;
}

int run(const Options& options) {
  const std::vector<std::string> inputs = inputs_of(options.corpus);
  if (inputs.empty()) {
    fmt::print(stderr, "no {} files in the corpus\n", target().extension);
    return 2;
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) read_one(inputs[i], fmt::format("file {} of the corpus\n", i));
  for (std::uint64_t i = 0; i < options.changes; ++i) {
    if (options.only >= 0 && i != static_cast<std::uint64_t>(options.only)) continue;
    last_input = Changer(inputs, options.seed, i).changed();
    if (options.only >= 0) std::ofstream("replayed-input", std::ios::binary) << last_input;
    read_one(last_input, fmt::format("died or took more than {} s; replay with --changes {} --seed {} --only {}\n",
                                     longest_s, options.changes, options.seed, i));
  }
  fmt::print("{}: {} files, {} changes of them\n", target().name, inputs.size(), options.changes);
  return 0;
}

}  // namespace
}  // namespace hdpsim::fuzz

int main(int count, char** arguments) {
  if (!hdpsim::fuzz::choose_target(arguments, arguments + count)) {
    fmt::print(stderr, "which reader? --target=NAME, one of tests/fuzz/corpus\n");
    return 2;
  }
  for (const int signal : {SIGALRM, SIGABRT, SIGSEGV, SIGFPE, SIGBUS, SIGILL}) {
    (void)std::signal(signal, hdpsim::fuzz::say_and_die);
  }
#if !defined(__SANITIZE_ADDRESS__)  // which reserves more than it uses
  const rlimit memory{hdpsim::fuzz::most_memory, hdpsim::fuzz::most_memory};
  setrlimit(RLIMIT_AS, &memory);
#endif
  return hdpsim::fuzz::run(hdpsim::fuzz::options_of({arguments + 1, arguments + count}));
}
