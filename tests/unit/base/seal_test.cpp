#include "sim/base/seal.h"

#include "tests/support/catch.h"

namespace hdpsim {
namespace {

using Lines = std::vector<std::string>;

const std::string object = R"({"step":3,"time_ps":[17,4]})";

// A line without its end.
std::string sealed(const std::string& owner, const std::string& text = object) {
  std::string line = Seal(owner).closed(text);
  line.pop_back();
  return line;
}

TEST_CASE("fingerprints are those of FNV-1a", "[seal]") {
  CHECK(fingerprint("") == 0xcbf29ce484222325);
  CHECK(fingerprint("a") == 0xaf63dc4c8601ec8c);  // the authors' test vectors
  CHECK(fingerprint("foobar") == 0x85944171f73967e8);
  CHECK(fingerprint("bar", fingerprint("foo")) == fingerprint("foobar"));
}

TEST_CASE("a sealed line is the object with one more member, and opens to the object", "[seal]") {
  const std::string line = sealed("me");
  CHECK(line.starts_with(R"({"step":3,"time_ps":[17,4],"checksum":")"));
  CHECK(line.size() == object.size() + std::string(R"(,"checksum":"0123456789abcdef")").size());
  CHECK(Seal("me").opened(line) == object);
}

TEST_CASE("a line opens for its owner alone", "[seal]") {
  CHECK_FALSE(Seal("you").opened(sealed("me")));
  CHECK_FALSE(Seal("").opened(sealed("me")));
}

TEST_CASE("a line of which any byte is another one, is missing or stands there twice does not open", "[seal]") {
  const std::string line = sealed("me");
  for (std::size_t at = 0; at < line.size(); ++at) {
    CAPTURE(at);
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = line;
      changed[at] = static_cast<char>(changed[at] ^ (1 << bit));
      REQUIRE_FALSE(Seal("me").opened(changed));
    }
    REQUIRE_FALSE(Seal("me").opened(line.substr(0, at)));
    REQUIRE_FALSE(Seal("me").opened(line.substr(at + 1)));
    REQUIRE_FALSE(Seal("me").opened(line.substr(0, at) + line[at] + line.substr(at)));
  }
}

TEST_CASE("lines are complete with their end", "[seal]") {
  CHECK(complete_lines("").empty());
  CHECK(complete_lines("a").empty());
  CHECK(complete_lines("a\n\nb\nc") == std::vector<std::string_view>{"a", "", "b"});
}

TEST_CASE("lines that do not open, and those that nobody can use, are told with their place", "[seal]") {
  const std::string one = sealed("me", R"({"number":1})");
  const std::string two = sealed("me", R"({"number":2})");
  const std::string other = sealed("you", R"({"number":3})");
  Lines taken;
  Lines told;
  const auto take = [&](const std::string& text, std::string_view) -> std::string {
    taken.push_back(text);
    return text == R"({"number":2})" ? "not this one" : "";
  };
  const auto tell = [&](const Diagnostic& part) { told.push_back(damage_text(part)); };
  CHECK_FALSE(take_sealed("x.jsonl", {"the header", one, other, two}, Seal("me"), take, tell));
  CHECK(taken == Lines{R"({"number":1})", R"({"number":2})"});
  CHECK(told == Lines{"x.jsonl:3:1: this line is damaged", "x.jsonl:4:1: not this one"});
  CHECK(take_sealed("x.jsonl", {"the header", one}, Seal("me"), take, tell));
}

}  // namespace
}  // namespace hdpsim
