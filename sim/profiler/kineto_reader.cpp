#include "sim/profiler/profiler_readers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "sim/base/first_problems.h"
#include "sim/document/compression.h"
#include "sim/document/json.h"
#include "sim/document/limits.h"
#include "sim/profiler/impl/tracked_input.h"

namespace hdpsim {
namespace {

/// A scalar of the file: a number, or else a text.
struct Scalar {
  bool is_number = false;
  double number = 0;
  std::int64_t whole = 0;  ///< The number without its fraction.
  std::string text;
};

struct TextField {
  std::string_view key;
  std::string ProfilerEvent::*member;
};
struct WholeField {
  std::string_view key;
  std::int64_t ProfilerEvent::*member;
};

// The keys of arguments that count; Kineto's older spellings and the newer ones.
constexpr auto text_arguments = std::to_array<TextField>({
    {"Collective name", &ProfilerEvent::collective},
    {"dtype", &ProfilerEvent::type},
    {"Process Group Name", &ProfilerEvent::group},
    {"Process Group Ranks", &ProfilerEvent::group_ranks},
});
constexpr auto whole_arguments = std::to_array<WholeField>({
    {"External id", &ProfilerEvent::external_id},
    {"external id", &ProfilerEvent::external_id},
    {"correlation", &ProfilerEvent::correlation},
    {"stream", &ProfilerEvent::stream},
    {"device", &ProfilerEvent::device},
    {"bytes", &ProfilerEvent::bytes},
    {"Group size", &ProfilerEvent::group_size},
    {"In msg nelems", &ProfilerEvent::elements_in},
    {"Out msg nelems", &ProfilerEvent::elements_out},
});

constexpr std::array<std::string_view, 3> gpu_categories = {"kernel", "gpu_memcpy", "gpu_memset"};

bool is_of_device(const std::string& category) {
  return std::find(gpu_categories.begin(), gpu_categories.end(), category) != gpu_categories.end();
}

/// Takes the parser's events; the names of these functions are the library's.
class KinetoBuilder {
 public:
  KinetoBuilder(TrackedInput& input, const TakeEvent& take, Diagnostics& diagnostics)
      : input_(input), take_(take), problems_(diagnostics) {}

  [[nodiscard]] ProfilerHeader take_header() { return std::move(header_); }
  [[nodiscard]] bool has_events() const { return has_events_; }
  void finish() { problems_.finish({input_.position().file, 0, 0}, "events"); }

  bool null() { return scalar({}); }
  bool boolean(bool is_true) { return scalar({.text = is_true ? "true" : "false"}); }
  bool number_integer(std::int64_t number) {
    return scalar({.is_number = true, .number = static_cast<double>(number), .whole = number, .text = {}});
  }
  bool number_unsigned(std::uint64_t number) {
    // Ids of frameworks fill 64 bits; only their identity counts.
    return scalar({.is_number = true,
                   .number = static_cast<double>(number),
                   .whole = static_cast<std::int64_t>(number),
                   .text = {}});
  }
  bool number_float(double number, const std::string& /*text*/) {
    constexpr double most = 9e18;
    const double within = std::clamp(number, -most, most);
    return scalar({.is_number = true, .number = number, .whole = static_cast<std::int64_t>(within), .text = {}});
  }
  bool string(std::string& text) { return scalar({.text = std::move(text)}); }
  bool binary(Json::binary_t& /*bytes*/) { return false; }
  bool key(std::string& text) {
    key_ = std::move(text);
    input_.value_found();
    return true;
  }
  bool start_object(std::size_t /*size*/) { return open(true); }
  bool start_array(std::size_t /*size*/) { return open(false); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool parse_error(std::size_t /*at*/, const std::string& /*token*/, const Json::exception& /*error*/) { return false; }

 private:
  enum class Place : std::uint8_t {
    document,
    events,
    event,
    arguments,
    list,        ///< An argument's value.
    inner_list,  ///< A list in it.
    devices,
    device,
    distribution,
    other_data,
    elsewhere,
  };

  [[nodiscard]] Place place() const { return places_.empty() ? Place::elsewhere : places_.back(); }

  [[nodiscard]] Place inside(bool is_object) const {
    if (places_.empty()) return is_object ? Place::document : Place::events;
    switch (place()) {
      case Place::document:
        if (key_ == "traceEvents" && !is_object) return Place::events;
        if (key_ == "deviceProperties" && !is_object) return Place::devices;
        if (key_ == "distributedInfo" && is_object) return Place::distribution;
        return key_ == "otherData" && is_object ? Place::other_data : Place::elsewhere;
      case Place::events:
        return is_object ? Place::event : Place::elsewhere;
      case Place::event:
        return is_object && key_ == "args" ? Place::arguments : Place::elsewhere;
      case Place::arguments:
        return is_object ? Place::elsewhere : Place::list;
      case Place::list:
        return is_object ? Place::elsewhere : Place::inner_list;
      case Place::devices:
        return is_object ? Place::device : Place::elsewhere;
      default:
        return Place::elsewhere;
    }
  }

  bool open(bool is_object) {
    input_.value_found();
    if (std::ssize(places_) >= deepest_level) {
      throw InputError(input_.position(), fmt::format("more than {} levels of lists and objects", deepest_level));
    }
    const Place place = inside(is_object);
    if (place == Place::events) has_events_ = true;
    if (place == Place::event) begin_event();
    if (place == Place::device) header_.devices.emplace_back();
    if (place == Place::list) list_key_ = key_;
    if (place == Place::inner_list) begin_tensor();
    // A list of tensors is no tensor: its dimensions are not one's.
    if (place == Place::elsewhere && this->place() == Place::inner_list) is_list_of_tensors_ = true;
    places_.push_back(place);
    return true;
  }

  bool close() {
    input_.value_found();
    if (place() == Place::event) end_event();
    if (place() == Place::inner_list && is_list_of_tensors_ && !event_.dims.empty()) event_.dims.back().clear();
    places_.pop_back();
    return true;
  }

  bool scalar(Scalar value) {
    input_.value_found();
    switch (place()) {
      case Place::event:
        event_field(value);
        break;
      case Place::arguments:
        argument(value);
        break;
      case Place::list:
        list_item(value);
        break;
      case Place::inner_list:
        if (is_dims() && value.is_number && event_.dims.back().size() < most_items) {
          event_.dims.back().push_back(value.whole);
        }
        break;
      case Place::device:
        device_field(value);
        break;
      case Place::distribution:
        distribution_field(value);
        break;
      case Place::other_data:
        if (key_ == "schema") header_.schema = value.text;
        break;
      default:
        break;
    }
    return true;
  }

  void begin_event() {
    event_ = {};
    event_.position = input_.position();
    phase_.clear();
    is_of_cpu_ = false;
    has_begin_ = has_duration_ = false;
    wrong_.clear();
  }

  void event_field(Scalar& value) {
    if (key_ == "ph") {
      phase_ = std::move(value.text);
    } else if (key_ == "cat") {
      text_field("cat", event_.category, value);
    } else if (key_ == "name") {
      text_field("name", event_.name, value);
    }
    if (key_ == "ts") has_begin_ = number_field("ts", event_.begin_us, value);
    if (key_ == "dur") has_duration_ = number_field("dur", event_.duration_us, value);
    if (key_ == "pid") is_of_cpu_ = value.text == "CPU functions";
    if (key_ == "tid" && value.is_number) event_.thread = value.whole;
  }

  void text_field(const char* key, std::string& member, Scalar& value) {
    if (value.is_number) wrong_ = fmt::format("its '{}' is a number", key);
    member = std::move(value.text);
  }

  bool number_field(const char* key, double& member, const Scalar& value) {
    constexpr double most_us = 9e15;  // so far a double knows picoseconds of no more, and nanoseconds of half of it
    if (!value.is_number) {
      wrong_ = fmt::format("its '{}' is no number", key);
    } else if (!(value.number >= -most_us && value.number <= most_us)) {
      wrong_ = fmt::format("its '{}' is {:g}: microseconds are at most {:g}", key, value.number, most_us);
    } else {
      member = value.number;
      return true;
    }
    return false;
  }

  void argument(Scalar& value) {
    for (const TextField& field : text_arguments) {
      if (key_ == field.key) event_.*field.member = std::move(value.text);
    }
    for (const WholeField& field : whole_arguments) {
      if (key_ == field.key && value.is_number) event_.*field.member = value.whole;
    }
  }

  [[nodiscard]] bool is_dims() const {
    return (list_key_ == "Input Dims" || list_key_ == "Input dims") && !event_.dims.empty();
  }

  void begin_tensor() {
    is_list_of_tensors_ = false;
    if ((list_key_ == "Input Dims" || list_key_ == "Input dims") && event_.dims.size() < most_items) {
      event_.dims.emplace_back();
    }
    if (list_key_ == "Input type" || list_key_ == "Input Types") add(event_.types, "");
    if (list_key_ == "Concrete Inputs") add(event_.concrete, "");
  }

  void list_item(Scalar& value) {
    if (list_key_ == "Input Dims" || list_key_ == "Input dims") {
      if (event_.dims.size() < most_items) event_.dims.emplace_back();  // a scalar, in files of older versions
    }
    if (list_key_ == "Input type" || list_key_ == "Input Types") {
      add(event_.types, std::move(value.text));
    } else if (list_key_ == "Concrete Inputs") {
      add(event_.concrete, value.is_number ? fmt::format("{}", value.whole) : std::move(value.text));
    }
  }

  static void add(std::vector<std::string>& items, std::string text) {
    if (items.size() < most_items) items.push_back(std::move(text));
  }

  void device_field(Scalar& value) {
    ProfiledDevice& device = header_.devices.back();
    if (key_ == "name") device.name = std::move(value.text);
    if (key_ == "numSms" && value.is_number) device.multiprocessors = value.whole;
    if (key_ == "totalGlobalMem" && value.is_number) device.memory_bytes = value.whole;
  }

  void distribution_field(Scalar& value) {
    if (key_ == "nccl_version") header_.nccl = std::move(value.text);
    if (key_ == "rank" && value.is_number) header_.rank = value.whole;
  }

  void end_event() {
    if (phase_ != "X") return;
    if (event_.category.empty() && is_of_cpu_) event_.category = "cpu_op";
    if (wrong_.empty() && is_of_device(event_.category)) {
      if (event_.name.empty()) wrong_ = "it has no 'name'";
      if (!has_begin_) wrong_ = "it has no 'ts'";
      if (!has_duration_) wrong_ = "it has no 'dur'";
    }
    if (wrong_.empty()) wrong_ = problem_of_duration(event_.duration_us, is_of_device(event_.category));
    if (!wrong_.empty()) {
      problems_.error(event_.position, fmt::format("an event of the trace cannot be read: {}", wrong_),
                      "export the trace again: prof.export_chrome_trace(\"trace.json\")");
      return;
    }
    if (problems_.count() == 0 && has_begin_ && has_duration_) take_(event_);
  }

  static constexpr std::size_t most_items = 256;  // of a list of arguments: operations have some ten

  TrackedInput& input_;
  const TakeEvent& take_;
  FirstProblems problems_;
  std::vector<Place> places_;
  std::string key_;
  std::string list_key_;
  ProfilerHeader header_;
  ProfilerEvent event_;
  std::string phase_;
  std::string wrong_;
  bool has_begin_ = false;
  bool has_duration_ = false;
  bool is_of_cpu_ = false;
  bool is_list_of_tensors_ = false;
  bool has_events_ = false;
};

}  // namespace

ProfilerHeader read_kineto(const std::filesystem::path& path, const TakeEvent& take, const ReportShare& report) {
  TrackedInput input(path, report);
  Diagnostics diagnostics;
  KinetoBuilder builder(input, take, diagnostics);
  const bool whole = Json::sax_parse(TrackedIterator(&input), TrackedIterator(), &builder);
  builder.finish();
  diagnostics.throw_if_any();
  if (!whole) {
    throw InputError(input.position(), input.ended() ? "the trace ends here: it is not whole" : "this is no JSON",
                     compression_of(path) != nullptr ? "copy or export the trace again"
                                                     : "copy or export it again; a compressed trace ends in .gz");
  }
  if (!builder.has_events()) {
    throw InputError(Position{path.string(), 0, 0}, "it has no 'traceEvents': this is no trace of PyTorch's profiler",
                     "prof.export_chrome_trace(\"trace.json\") writes one");
  }
  return builder.take_header();
}

}  // namespace hdpsim
