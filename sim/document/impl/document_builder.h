#pragma once

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/mark.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "sim/document/document.h"

namespace hdpsim {

/// Builds a document from the events of the YAML parser, and counts while it does: a hostile file is refused before it
/// fills the memory, and so is one that keeps the parser itself running for ever.
class DocumentBuilder final : public YAML::EventHandler {
 public:
  static constexpr std::size_t most_keys = 50'000;  ///< Of one map.

  /// Thrown through the parser when a limit is passed, which has been reported by then.
  struct GivenUp {};
  enum class Task : std::uint8_t {
    build,
    build_repeated,  ///< A key that stands several times has an entry for each; otherwise that is an error.
    count,           ///< Nothing is kept: only limits that are passed are reported.
  };

  DocumentBuilder(std::string file, Diagnostics& diagnostics, Task task = Task::build)
      : file_(std::move(file)), diagnostics_(diagnostics), task_(task) {}

  /// The first document. Further documents are reported if they have any content.
  [[nodiscard]] Value take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& mark) override;
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override;
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override;
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override;
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value style) override;
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override;
  void OnMapEnd() override { close(); }

 private:
  /// A map or list whose end has not been parsed yet.
  struct Open {
    Value value;
    YAML::anchor_t anchor = 0;
    std::size_t room_before = 0;
    // Whether a key of this map waits for its value.
    bool has_key = false;
    bool key_counts = true;  ///< False for a key that was reported: its value is dropped.
    std::string key;
    Position key_position;
    std::set<std::string> keys;
  };
  struct Anchored {
    Value value;
    std::size_t room = 0;
  };

  [[nodiscard]] Position position_of(const YAML::Mark& mark) const { return {file_, mark.line + 1, mark.column + 1}; }
  /// Adds to the memory in use, in units of a small value; throws GivenUp past the limit.
  void count(const Position& position, std::size_t room);
  /// Keeps a copy for the aliases of an anchor, which counts as memory too.
  void keep(YAML::anchor_t anchor, const Value& value, std::size_t room);
  void open(Value::Kind kind, const YAML::Mark& mark, YAML::anchor_t anchor);
  void close();
  /// Puts a finished value in its place: as an item, a key, the value of a key, or the document.
  void place(Value value);
  void take_key(Open& map, Value key);

  std::string file_;
  Diagnostics& diagnostics_;
  Task task_;
  std::size_t documents_ = 0;
  int document_start_ = 0;  ///< Characters before the latest document.
  bool told_second_ = false;
  std::size_t room_ = 0;
  std::size_t kept_room_ = 0;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, Anchored> anchored_;
  Value root_;
};

}  // namespace hdpsim
