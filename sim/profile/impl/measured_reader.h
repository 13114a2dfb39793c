#pragma once

#include "sim/profile/impl/field_reader.h"

namespace hdpsim {

/// Reads the sections that only a measured profile has.
class MeasuredReader : FieldReader {
 public:
  using FieldReader::FieldReader;

  [[nodiscard]] MeasuredSamples samples(const Value& value);
  [[nodiscard]] ProfileFits fits(const Value& value);

 private:
  MemoryBoundSample memory_bound_sample(const Value& value);
  CopySample copy_sample(const Value& value);
  MessageSample message_sample(const Value& value);
  Interference interference(const Value& value);
  NoiseFloor noise(const Value& value);

  AttentionFit attention_fit(const Value& value);
  PairCost pair_cost(const Value& value);
  GemmFit gemm_fit(const Value& value);
  MemoryBoundFit memory_bound_fit(const Value& value);
  TransferCurve curve(const Value& value);
  ByteCost byte_cost(const Value& value);
  CopyFit copy_fit(const Value& value);
  MessageFit message_fit(const Value& value);
  MessageLine line(const Value& value);
  FitQuality quality(MapReader& map, std::string_view key);
  FitQuality quality(const Value& value);
  FitError error(MapReader& map, std::string_view key);

  template <class Sample>
  void timing(MapReader& map, Sample& sample);
  template <class Fit>
  void byte_range(MapReader& map, Fit& fit);
  template <class T, class Read>
  void read_list(MapReader& map, std::string_view key, std::string_view of, std::vector<T>& items, Read read);
};

}  // namespace hdpsim
