#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/profile/impl/field_reader.h"

namespace hdpsim {

/// Reads the sections of a profile one by one.
class ProfileReader : FieldReader {
 public:
  using FieldReader::FieldReader;

  [[nodiscard]] DeviceProfile profile(const Value& document);

 private:
  Provenance provenance(const Value& value);
  Datasheet datasheet(const Value& value);
  std::vector<AttentionCurve> attention(const Value& value);
  AttentionCurve curve(const Value& value);
  void tile(MapReader& map, AttentionCurve& curve);
  AttentionSample sample(const Value& value, const AttentionCurve& curve);
  PackedSample packed(const Value& value, const AttentionCurve& curve);
  PackedDocument document(const Value& value);
  /// `peak` is the data sheet's rate for products of this type.
  GemmTable gemm(const Value& value, FlopRate peak);
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
  Slowdown slowdown(const Value& value);
  ConnectionCosts connections(const Value& value);
  CommunicatorCost communicator(const Value& value);
  BackwardRing backward_ring(const Value& value);
  void measured_parts(MapReader& map, DeviceProfile& profile);

  Duration sample_time(MapReader& map, Flops work);
  void check_launch(MapReader& map, Duration time, Duration launch);
  std::string source(MapReader& map);
  /// A part that only a measured profile may leave out.
  const Value* part(MapReader& map, std::string_view key);

  ProfileLabel label_ = ProfileLabel::measured;
  FlopRate peak_;
};

}  // namespace hdpsim
