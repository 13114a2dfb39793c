#include <fmt/format.h>

#include "tests/spec/workplace.h"
#include "tests/support/catch.h"

namespace hdpsim::spec {
namespace {

/// What `hdpsim explore --open` has told until it was interrupted, with $BROWSER as given: the address and a note.
std::string told_with(const Workplace& here, const std::string& browser) {
  const std::string wait = "until grep -q Ctrl-C told || ! kill -0 $pid; do sleep 0.1; done";
  CHECK(here.hdpsim(fmt::format(
                        "explore configs/studies/tiny.yaml --open >told 2>&1 & pid=$!; {}; kill -INT $pid; wait $pid",
                        wait),
                    fmt::format("unset DISPLAY WAYLAND_DISPLAY; export BROWSER='{}';", browser))
            .code == 130);
  return here.read("told");
}

// A program in place of a browser, which leaves the address that it gets.
std::string stand_in(const Workplace& here) {
  here.write("browser", "#!/bin/sh\necho \"$@\" > opened.part\nmv opened.part opened\n");
  fs::permissions(here.folder() / "browser", fs::perms::owner_all);
  return (here.folder() / "browser").string();
}

std::string opened(const Workplace& here) {
  const fs::path file = here.folder() / "opened";
  constexpr int most_tenths = 6000;  // ends what hangs
  for (int tenths = 0; tenths < most_tenths && !fs::exists(file); ++tenths) (void)std::system("sleep 0.1");
  return here.read("opened");
}

TEST_CASE("explore --open gives its address to the first program of $BROWSER that starts", "[explore]") {
  const Workplace here;
  const std::string browser = stand_in(here);
  const std::string told = told_with(here, fmt::format("no-such-browser:{} --new-window", browser));
  const std::string address = told.substr(0, told.find('\n'));
  CHECK(address.starts_with("http://127.0.0.1:"));
  CHECK(told == fmt::format("{}\nOpened with {} --new-window. Ctrl-C ends it.\n", address, browser));
  CHECK(opened(here) == fmt::format("--new-window {}\n", address));
}

TEST_CASE("explore --open says so where nothing opens addresses", "[explore]") {
  const Workplace here;
  const std::string told = told_with(here, "no-such-browser");
  CHECK(told.starts_with("http://127.0.0.1:"));
  CHECK_THAT(told, Catch::Contains("There is nothing to open it with"));
}

}  // namespace
}  // namespace hdpsim::spec
