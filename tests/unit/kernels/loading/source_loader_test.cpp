#include "kernels/loading/source_loader.h"

#include <chrono>
#include <csignal>
#include <string>
#include <vector>

#include "kernels/loading/line_stream.h"
#include "tests/support/catch.h"

namespace hdpsim::kernels {
namespace {

using namespace std::chrono_literals;

// "line 0\n", "line 1\n", ...: lines of unlike lengths.
std::string numbered_lines(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += "line " + std::to_string(i * i) + "\n";
  return text;
}

// `count` bytes of a text that begins again where it ends.
std::string bytes_from(const std::string& text, std::uint64_t begin, std::uint64_t count) {
  std::string bytes;
  for (std::uint64_t i = 0; i < count; ++i) bytes += text[(begin + i) % text.size()];
  return bytes;
}

TEST_CASE("a sample begins with the first line behind the one before it", "[loading]") {
  const std::string text = "ab\ncdef\ng";
  CHECK(next_line(text, 0, 0) == 0);
  CHECK(next_line(text, 0, 1) == 3);
  CHECK(next_line(text, 0, 3) == 3);  // "ab\n" ends with its line
  CHECK(next_line(text, 0, 4) == 8);  // "ab\nc"
  CHECK(next_line(text, 3, 5) == 8);  // "cdef\n"
  CHECK(next_line(text, 8, 1) == 0);  // the last line has no end: the text begins again
  CHECK(next_line(text, 8, 2) == 3);  // "ga"
  CHECK(next_line(text, 3, 9) == 3);  // once around, and "ab\n" again
  CHECK(next_line("no line", 0, 3) == 0);
}

TEST_CASE("a loader process delivers bytes, goes back, and is known to be dead", "[loading]") {
  const std::string text = numbered_lines(20);
  LoaderProcess loader(text, 10s);
  std::string bytes(50, ' ');
  const auto first = loader.deliver(bytes);
  REQUIRE(first);
  CHECK(bytes == text.substr(0, 50));
  CHECK(loader.pass(10)->begin == first->next);
  CHECK(loader.go_to(first->begin));
  CHECK(loader.pass(50) == first);
  loader.kill();
  CHECK(!loader.deliver(bytes));
  CHECK(!loader.pass(1));
}

TEST_CASE("a loader that stands still counts as dead", "[loading]") {
  const std::string text = numbered_lines(20);
  LoaderProcess loader(text, 50ms);
  REQUIRE(loader.pass(10));
  kill(loader.id(), SIGSTOP);
  CHECK(!loader.pass(10));
}

TEST_CASE("whatever loaders die, every sample comes once and in its order", "[loading]") {
  const std::string text = numbered_lines(40);
  for (const int shadows : {0, 1, 2}) {
    for (const std::int64_t snapshot : {1, 3}) {
      CAPTURE(shadows, snapshot);
      SourceLoader loader(text, {shadows, snapshot, 10s});
      std::uint64_t place = 0;
      std::int64_t since_snapshot = 0;
      std::vector<std::int64_t> repeated;
      for (std::int64_t step = 0; step < 7; ++step) {
        loader.begin_step(step);
        if (step % snapshot == 0) since_snapshot = 0;
        for (std::uint64_t count = 1; count < 5; ++count) {
          if (step % 2 == 1 && count == 3) {
            loader.kill_loader();
            repeated.push_back(shadows > 0 ? 0 : since_snapshot);
          }
          std::string bytes(40 * count, ' ');
          const LoadedSample sample = loader.deliver(bytes);
          CHECK(sample.begin == place);
          CHECK(bytes == bytes_from(text, place, bytes.size()));
          place = next_line(text, place, bytes.size());
          CHECK(sample.next == place);
          ++since_snapshot;
        }
      }
      REQUIRE(loader.deaths().size() == 3);
      for (std::size_t i = 0; i < 3; ++i) {
        CHECK(loader.deaths()[i].step == static_cast<std::int64_t>(2 * i + 1));
        CHECK(loader.deaths()[i].has_shadow == (shadows > 0));
        CHECK(loader.deaths()[i].repeated == repeated[i]);
      }
    }
  }
}

}  // namespace
}  // namespace hdpsim::kernels
