#include <algorithm>

#include "calib/fit/impl/families.h"
#include "calib/fit/impl/link_profile.h"
#include "sim/cost/fitted_transfer.h"
#include "tests/unit/calib/fit/fit_support.h"

namespace hdpsim::calib {
namespace {

using testing::mean_of_normal;
using testing::Measured;

constexpr std::int64_t kibi = 1024;
constexpr std::int64_t mebi = 1024 * kibi;

/// Sizes that double from `least` to `most`, timed by `seconds`.
template <class Seconds>
std::vector<MessageSample> messages(std::int64_t least, std::int64_t most, double noise, Seconds seconds) {
  std::vector<MessageSample> samples;
  Measured measured(noise);
  for (std::int64_t bytes = least; bytes <= most; bytes *= 2) {
    const double time = measured(seconds(static_cast<double>(bytes))).median_s;
    samples.push_back({LinkKind::nvlink, MessageKind::all_reduce, 8, Bytes(bytes), Duration::seconds(time), {}});
  }
  return samples;
}

// Three protocols of a collective library: little latency and a low rate, ..., much latency and the full rate.
double three_protocols(double bytes) {
  return std::min({8e-6 + bytes / 20e9, 20e-6 + bytes / 90e9, 45e-6 + bytes / 240e9});
}

TEST_CASE("the lines of three protocols are recovered from their envelope", "[fit]") {
  const MessageFit found = fit_messages(messages(kibi, 1024 * mebi, 0, three_protocols), 1);
  REQUIRE(found.lines.size() == 3);
  auto lines = found.lines;
  std::sort(lines.begin(), lines.end(), [](const auto& a, const auto& b) { return a.latency < b.latency; });
  const std::array<double, 3> latencies_us = {8, 20, 45};
  const std::array<double, 3> gigabytes = {20, 90, 240};
  for (std::size_t i = 0; i < lines.size(); ++i) {
    CAPTURE(i);
    CHECK(lines[i].latency.seconds() * 1e6 == Approx(latencies_us.at(i)).epsilon(0.01));
    CHECK(lines[i].bandwidth.gigabytes_per_second() == Approx(gigabytes.at(i)).epsilon(0.01));
  }
  CHECK(found.quality.held_out.max <= 0.01);
}

TEST_CASE("two hundred sizes are fitted as well as twenty", "[fit]") {
  std::vector<MessageSample> samples;
  for (int i = 0; i < 200; ++i) {
    const double bytes = std::exp2(10 + 20.0 * i / 199);
    samples.push_back({LinkKind::nvlink,
                       MessageKind::all_reduce,
                       8,
                       Bytes(static_cast<std::int64_t>(bytes)),
                       Duration::seconds(three_protocols(std::floor(bytes))),
                       {}});
  }
  const MessageFit found = fit_messages(samples, 1);
  CHECK(found.lines.size() >= 3);
  CHECK(found.quality.held_out.max <= 0.02);
}

TEST_CASE("with noise a message that was left out is predicted about as well as it was measured", "[fit]") {
  constexpr double noise = 0.02;
  const MessageFit found = fit_messages(messages(kibi, 1024 * mebi, noise, three_protocols), 1);
  CHECK(found.quality.held_out.mean <= 0.05);
  CHECK(found.quality.held_out.max <= 0.15);
  CHECK(found.kind == MessageKind::all_reduce);
  CHECK(found.ranks == 8);
  CHECK(found.least == Bytes(kibi));
}

TEST_CASE("messages that memory slows down beyond a cache are no envelope of protocols", "[fit]") {
  const auto seconds = [](double bytes) {
    const double beyond = std::max(0.0, bytes - 4.0 * mebi);
    return 5e-6 + bytes / 20e9 + beyond / 8e9;
  };
  const MessageFit found = fit_messages(messages(kibi, 256 * mebi, 0.005, seconds), 1);
  CHECK(found.curve.has_value());
  CHECK(found.quality.held_out.mean <= 0.05);
}

TEST_CASE("so are messages whose bytes cost less at first, and more beyond a cache", "[fit]") {
  const auto seconds = [](double bytes) {
    const double beyond = std::max(0.0, bytes - 4.0 * mebi);
    return std::min(2e-6 + bytes / 12e9, 8e-6 + bytes / 40e9) + beyond / 20e9;
  };
  const MessageFit found = fit_messages(messages(kibi, 256 * mebi, 0.005, seconds), 1);
  REQUIRE(found.curve.has_value());
  CHECK(fitted_seconds(found, 2 * mebi) < 2 * mebi / 20e9);
  CHECK(fitted_seconds(found, 128 * mebi) > 128 * mebi / 15e9);
  CHECK(found.quality.held_out.mean <= 0.05);
}

std::vector<MemoryBoundSample> kernels(double noise) {
  struct Kernel {
    const char* name;
    double factor;
  };
  std::vector<MemoryBoundSample> samples;
  Measured measured(noise);
  for (const Kernel& kernel : {Kernel{"adam", 1.3}, Kernel{"add", 0.9}, Kernel{"rope", 1.0}}) {
    for (std::int64_t bytes = 128 * kibi; bytes <= 512 * mebi; bytes *= 2) {
      const double rate = bytes <= 16 * mebi ? 8e12 : 3.5e12;  // a cache of 16 MiB holds them, or not
      const double time = measured(kernel.factor * (3e-6 + static_cast<double>(bytes) / rate)).median_s;
      samples.push_back({kernel.name, Bytes(bytes), Duration::seconds(time), {}});
    }
  }
  return samples;
}

TEST_CASE("memory-bound kernels are faster while a cache holds their tensors", "[fit]") {
  const auto fits = fit_memory_bound(kernels(0.01), 1);
  REQUIRE(fits.size() == 4);
  CHECK(fits[0].kernel == every_kernel);
  CHECK(fits[1].kernel == "adam");
  for (std::size_t i = 1; i < fits.size(); ++i) {
    INFO(fits[i].kernel << ": " << fits[i].form);
    CHECK(fits[i].quality.held_out.mean <= 0.05);
    const double cached = fitted_seconds(fits[i].curve, 8.0 * mebi) - fitted_seconds(fits[i].curve, 4.0 * mebi);
    const double beyond = fitted_seconds(fits[i].curve, 512.0 * mebi) - fitted_seconds(fits[i].curve, 508.0 * mebi);
    CHECK(beyond > 1.4 * cached);
  }
  // The mean kernel lies between the fastest and the slowest.
  const double mean = fitted_seconds(fits[0].curve, 512.0 * mebi);
  CHECK(mean > fitted_seconds(fits[2].curve, 512.0 * mebi));
  CHECK(mean < fitted_seconds(fits[1].curve, 512.0 * mebi));
}

TEST_CASE("a kernel with a single sample is predicted by the shape of the others", "[fit]") {
  std::vector<MemoryBoundSample> samples = kernels(0);
  samples.push_back({"lonely", Bytes(64 * mebi), Duration::seconds(3e-6 + 64.0 * mebi / 3.5e12), {}});
  const auto fits = fit_memory_bound(samples, 1);
  REQUIRE(fits.size() == 5);
  const MemoryBoundFit& lonely = fits[3];  // by name: adam, add, lonely, rope
  REQUIRE(lonely.kernel == "lonely");
  CHECK(lonely.quality.samples == 1);
  CHECK(lonely.quality.held_out.mean <= 0.2);
}

TEST_CASE("a byte of a larger transfer never costs less", "[fit]") {
  for (const MemoryBoundFit& fit : fit_memory_bound(kernels(0.2), 3)) {
    double before = 0;
    for (const ByteCost& cost : fit.curve.costs) {
      const double seconds = cost.bandwidth ? 1 / static_cast<double>(cost.bandwidth->bytes_per_second()) : 0;
      INFO(fit.kernel << " at " << cost.at.count());
      REQUIRE(seconds >= before);
      before = seconds;
    }
  }
}

TEST_CASE("a copy is a latency and a bandwidth", "[fit]") {
  std::vector<CopySample> samples;
  for (std::int64_t bytes = 64 * kibi; bytes <= 256 * mebi; bytes *= 4) {
    const double seconds = 9e-6 + static_cast<double>(bytes) / 55e9;
    samples.push_back({CopyKind::h2d, Bytes(bytes), Duration::seconds(seconds), {}});
  }
  const CopyFit found = fit_copies(samples, 1);
  CHECK(found.kind == CopyKind::h2d);
  CHECK(found.latency.seconds() == Approx(9e-6).epsilon(1e-4));
  CHECK(found.bandwidth.gigabytes_per_second() == Approx(55).epsilon(1e-4));
}

TEST_CASE("a collective over several numbers of ranks has a latency a step of its ring and a bus bandwidth", "[fit]") {
  std::vector<MessageSample> samples;
  for (const std::int64_t ranks : {2, 4, 8}) {
    const auto n = static_cast<double>(ranks);
    for (std::int64_t bytes = 64 * kibi; bytes <= 256 * mebi; bytes *= 4) {
      const double seconds = 8e-6 + 3e-6 * (n - 1) + static_cast<double>(bytes) * (n - 1) / n / 360e9;
      samples.push_back(
          {LinkKind::nvlink, MessageKind::all_gather, ranks, Bytes(bytes), Duration::seconds(seconds), {}});
    }
  }
  const auto link = link_profile(samples, LinkKind::nvlink);
  REQUIRE(link.has_value());
  REQUIRE(link->all_gather.has_value());
  CHECK(link->all_gather->latency.seconds() == Approx(8e-6).epsilon(1e-3));
  CHECK(link->all_gather->step_latency.seconds() == Approx(3e-6).epsilon(1e-3));
  CHECK(link->all_gather->bandwidth.gigabytes_per_second() == Approx(360).epsilon(1e-3));
  CHECK_FALSE(link->send_recv.has_value());
  CHECK_FALSE(link->all_reduce.has_value());
  CHECK_FALSE(link_profile(samples, LinkKind::network).has_value());
}

TEST_CASE("a link of unknown rate is taken for as fast as its fastest message", "[fit]") {
  std::vector<MessageSample> samples;
  for (std::int64_t bytes = 64 * kibi; bytes <= 64 * mebi; bytes *= 4) {
    const double seconds = 5e-6 + static_cast<double>(bytes) / 14e9;
    samples.push_back({LinkKind::nvlink, MessageKind::send_recv, 2, Bytes(bytes), Duration::seconds(seconds), {}});
  }
  const auto link = link_profile(samples, LinkKind::nvlink);
  REQUIRE(link.has_value());
  CHECK(link->send_recv->bandwidth.gigabytes_per_second() == Approx(14).epsilon(1e-3));
  CHECK(link->send_recv->efficiency() == 1);
}

TEST_CASE("where start-up hides what a byte costs, a rate is what the largest message got", "[fit]") {
  std::vector<MessageSample> samples;
  for (std::int64_t bytes = kibi; bytes <= 64 * kibi; bytes *= 4) {
    samples.push_back({LinkKind::nvlink, MessageKind::send_recv, 2, Bytes(bytes), 4_us, {}});
    samples.push_back({LinkKind::nvlink, MessageKind::all_reduce, 2, Bytes(bytes), 8_us, {}});
  }
  const auto link = link_profile(samples, LinkKind::nvlink);
  REQUIRE(link.has_value());
  CHECK(link->send_recv->bandwidth.gigabytes_per_second() == Approx(64 * 1.024 / 4).epsilon(1e-3));
  CHECK(link->all_reduce->bandwidth.gigabytes_per_second() == Approx(64 * 1.024 / 8).epsilon(1e-3));
  CHECK(link->all_reduce->line_rate == link->send_recv->bandwidth);
}

}  // namespace
}  // namespace hdpsim::calib
