#pragma once

#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "sim/document/reader.h"
#include "sim/profile/device_profile.h"

namespace hdpsim {

/// Reads the sections of a profile one by one. A value that is missing or wrong is reported and left at zero; whoever
/// calls throws the profile away if anything was reported.
class ProfileReader {
 public:
  explicit ProfileReader(Diagnostics& diagnostics) : diagnostics_(diagnostics) {}

  [[nodiscard]] DeviceProfile profile(const Value& document);

 private:
  static constexpr Range positive_range{1, std::numeric_limits<double>::infinity()};

  Provenance provenance(const Value& value);
  Datasheet datasheet(const Value& value);
  std::vector<AttentionCurve> attention(const Value& value);
  AttentionCurve curve(const Value& value);
  void tile(MapReader& map, AttentionCurve& curve);
  AttentionSample sample(const Value& value, const AttentionCurve& curve);
  GemmTable gemm(const Value& value);
  GemmWorkSample work_sample(const Value& value);
  GemmShapeSample shape_sample(const Value& value, Duration launch);
  MemoryBoundRate memory_bound(const Value& value);
  void links(const Value& value, DeviceProfile& profile);
  LinkProfile link(const Value& value, const std::string& what);
  SendRecvRate send_recv(const Value& value);
  CollectiveRate collective(const Value& value);
  HostCopies host_copies(const Value& value);
  Overheads overheads(const Value& value);
  Overhead overhead(const Value& value, const std::string& what);
  BackwardRing backward_ring(const Value& value);

  Duration sample_time(MapReader& map, Flops work);
  void check_launch(MapReader& map, Duration time, Duration launch);
  std::optional<Spread> spread(MapReader& map);
  std::string source(MapReader& map);
  std::string text(MapReader& map, std::string_view key);
  std::int64_t count(MapReader& map, std::string_view key);
  Duration time(MapReader& map, std::string_view key);
  template <class T>
  T positive(MapReader& map, std::string_view key);
  template <class T>
  void check_positive(const Value& value, std::string_view key, const T& quantity);
  const std::vector<Value>& samples(MapReader& map, std::string_view key, bool required);

  Diagnostics& diagnostics_;
  ProfileLabel label_ = ProfileLabel::measured;
  FlopRate peak_;
};

}  // namespace hdpsim
