// The program of the page without a server, compiled to WebAssembly: what browser/worker.js calls. Answers go to it as
// lines of JSON, those of ExploreSession and:
//   {"kind": "page", "html": "..."}       the page of the session
//   {"kind": "lengths", "taken": {...}}   what take_lengths() says
#include <emscripten.h>

#include <exception>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "sim/base/diagnostic.h"
#include "sim/document/json.h"
#include "sim/explore/session.h"
#include "sim/explore/session_lines.h"

namespace hdpsim {
namespace {

// Where the linker has put the shipped files (browser.cmake), and where those of the user go.
constexpr std::string_view data_folder = "/hdpsim";
constexpr std::string_view scratch_folder = "/session";

// clang-format off
EM_JS(void, hand_over, (const char* line), { Module.take_line(UTF8ToString(line)); })
// clang-format on

void send_line(std::string_view text) {
  hand_over(std::string(text).c_str());
}

/// The script that started the work. It ends the whole worker when nobody reads any more, so that a stream is never
/// found closed.
class ScriptStream final : public AnswerStream {
 public:
  void send(std::string_view text) override { send_line(text); }
  [[nodiscard]] bool is_closed() const override { return false; }
};

std::unique_ptr<ExploreSession>& session() {
  static std::unique_ptr<ExploreSession> only;
  return only;
}

template <class Work>
void guarded(const Work& work) {
  try {
    work();
  } catch (const InputError& error) {
    send_line(failure_line(error.diagnostics().text()));
  } catch (const std::exception& error) {
    send_line(failure_line(error.what()));
  }
}

}  // namespace
}  // namespace hdpsim

extern "C" {

/// Begins the session of a study, by its path. Sends a line if it fails.
EMSCRIPTEN_KEEPALIVE void hdpsim_begin(const char* study) {
  using namespace hdpsim;
  guarded([&] {
    session() = std::make_unique<ExploreSession>(ExploreOptions{.study = study,
                                                                .data = std::filesystem::path(data_folder),
                                                                .scratch = std::filesystem::path(scratch_folder),
                                                                .version = HDPSIM_VERSION,
                                                                .jobs = 1});
  });
}

EMSCRIPTEN_KEEPALIVE void hdpsim_page() {
  using namespace hdpsim;
  guarded([] { send_line(json_line({{"kind", "page"}, {"html", session()->page("")}})); });
}

EMSCRIPTEN_KEEPALIVE void hdpsim_take_lengths(const char* name, const char* bytes, int size) {
  using namespace hdpsim;
  guarded([&] {
    const std::string taken = session()->take_lengths(name, std::string(bytes, static_cast<std::size_t>(size)));
    send_line(json_line({{"kind", "lengths"}, {"taken", parsed_json(taken)}}));
  });
}

EMSCRIPTEN_KEEPALIVE void hdpsim_ask(const char* question) {
  hdpsim::ScriptStream stream;
  hdpsim::session()->answer(question, stream);
}

}  // extern "C"
