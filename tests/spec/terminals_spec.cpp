#include <fmt/format.h>

#include <algorithm>

#include "tests/spec/workplace.h"
#include "tests/support/catch.h"
#include "tests/support/not_run.h"

namespace hdpsim::spec {
namespace {

// What no terminal may get: all that it would obey.
bool holds_control(const std::string& text) {
  const auto is_control = [](unsigned char c) { return (c < 0x20 && c != '\n') || c == 0x7f; };
  return std::any_of(text.begin(), text.end(), is_control) || text.find("\xc2\x9b") != std::string::npos ||
         text.find("\u202e") != std::string::npos;
}

// As a shell reads it, and as YAML does.
constexpr char in_shell[] = "$(printf 'a\\033[31m\\302\\233\\342\\200\\256b')";
constexpr char in_yaml[] = "\"a\\e[31m\\u009b\\u202eb\"";

void check_harmless(const Workplace& here, const std::string& command, int code) {
  const Outcome outcome = here.hdpsim(command);
  CAPTURE(command, outcome.err);
  CHECK(outcome.code == code);
  CHECK((outcome.out + outcome.err).find("[31m") != std::string::npos);  // it was told
  CHECK_FALSE(holds_control(outcome.out));
  CHECK_FALSE(holds_control(outcome.err));
}

// A shipped file under another `name`.
void write_renamed(const Workplace& here, const std::string& shipped, const std::string& copy) {
  std::string text = here.read(shipped);
  const std::size_t begin = text.find("name:");
  here.write(copy, text.replace(begin, text.find('\n', begin) - begin, fmt::format("name: {}", in_yaml)));
}

TEST_CASE("no control character of a name reaches the terminal", "[terminals]") {
  const Workplace here;
  write_renamed(here, "configs/studies/tiny.yaml", "study.yaml");
  check_harmless(here, "study study.yaml --set data.steps=1", 0);
  check_harmless(here, "replay study.yaml --point 0 --steps 2", 0);
  write_renamed(here, "configs/clusters/h100-rail.yaml", "cluster.yaml");
  check_harmless(here, "cluster show cluster.yaml", 0);
  check_harmless(here, "comm all_reduce --cluster cluster.yaml -b 8 -e 8", 0);
  check_harmless(here, "comm permutation --cluster cluster.yaml -g 16 --size 1M", 0);
}

TEST_CASE("no control character of an argument reaches the terminal", "[terminals]") {
  const Workplace here;
  for (const char* command : {"study configs/studies/tiny.yaml --format", "explain", "study", "--data-dir",
                              "check --kind", "trace describe", "plan configs/studies/tiny.yaml --plan", "tune"}) {
    check_harmless(here, fmt::format("{} \"{}\"", command, in_shell), 2);
  }
  here.write("a\033[31mb.txt", "1\n2\n");
  check_harmless(here, "check \"$(printf 'a\\033[31mb')\".txt --kind lengths", 0);
}

TEST_CASE("formats for programs keep every byte of a name and escape it as they do", "[terminals]") {
  const Workplace here;
  write_renamed(here, "configs/clusters/h100-rail.yaml", "cluster.yaml");
  CHECK(here.run("cluster show cluster.yaml --format json")
            .out.find("\"a\\u001b[31m\xc2\x9b\xe2\x80\xae"
                      "b\"") != std::string::npos);
}

TEST_CASE("a standard error that is closed or full changes neither results nor exit codes", "[terminals]") {
  const Workplace here;
  if (!fs::exists("/dev/full")) return test::say_not_run("there is no /dev/full here");
  struct Case {
    const char* command;
    int code;
    std::vector<const char*> files;
  };
  for (const Case& each :
       {Case{"study configs/studies/tiny.yaml --set data.steps=1 --jobs 1", 0, {"runs.csv", "result.json"}},
        Case{"study nonexistent.yaml", 2, {}}}) {
    REQUIRE(here.hdpsim(fmt::format("{} --out well >.stdout", each.command)).code == each.code);
    for (const char* stream : {"2>/dev/full", "2>&- 0<&-", "2> >(true)"}) {
      CAPTURE(each.command, stream);
      // The redirection is of a shell inside: outside of it standard error is kept.
      const Outcome outcome =
          here.hdpsim("--version >.stdout", fmt::format("bash -c \"'{}' {} --out odd {} >.told\"; code=$?; exit $code;",
                                                        HDPSIM_BINARY, each.command, stream));
      CHECK(outcome.code == each.code);
      for (const char* file : each.files)
        check_same_file(here, fmt::format("well/{}", file), fmt::format("odd/{}", file));
      fs::remove_all(here.folder() / "odd");
    }
    fs::remove_all(here.folder() / "well");
  }
}

TEST_CASE("a closed standard output refuses results, and no file takes its place", "[terminals]") {
  const Workplace here;
  for (const char* streams : {">&-", "0<&- >&-"}) {
    CHECK(here.hdpsim(fmt::format("plan configs/studies/tiny.yaml --plan static {}", streams)).code == 3);
  }
}

}  // namespace
}  // namespace hdpsim::spec
