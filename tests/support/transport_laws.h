#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/transport/transport.h"

namespace hdpsim::kernels {

/// Errors that ranks on other threads found, because Catch's own assertions belong to the main thread. Keeps the first
/// ten.
class LawReport {
 public:
  void fail(const std::string& what) {
    const std::lock_guard lock(mutex_);
    if (++failures_ <= 10) text_ += what + "\n";
  }
  [[nodiscard]] std::string text() const { return text_; }

 private:
  std::mutex mutex_;
  std::string text_;
  int failures_ = 0;
};

inline constexpr std::string_view no_faults;

/// Integers small enough that every sum over ranks is exact in fp32.
inline float law_value(int rank, std::size_t index) {
  return static_cast<float>((index * 7 + static_cast<std::size_t>(rank) * 13) % 1000);
}

/// Every collective over `count` elements (a rank, where that is its convention) against the plain sum or copy.
inline void check_collectives(Transport& transport, std::size_t count, LawReport& report) {
  const int ranks = transport.size();
  const auto width = static_cast<std::size_t>(ranks);
  const auto sum = [&](std::size_t i) {
    float total = 0;
    for (int rank = 0; rank < ranks; ++rank) total += law_value(rank, i);
    return total;
  };
  const auto expect = [&](const char* what, std::size_t i, float found, float expected) {
    if (!(found == expected)) {
      report.fail(
          fmt::format("{}: rank {} element {} of {} is {}, not {}", what, transport.rank(), i, count, found, expected));
    }
  };
  const auto mine = [&](std::size_t i) { return law_value(transport.rank(), i); };

  std::vector<float> data(count);
  for (std::size_t i = 0; i < count; ++i) data[i] = mine(i);
  std::vector<float> gathered(count * width, -1.0F);
  transport.all_gather(data.data(), gathered.data(), count * sizeof(float));
  for (std::size_t i = 0; i < gathered.size(); ++i) {
    expect("all_gather", i, gathered[i], law_value(static_cast<int>(i / count), i % count));
  }
  transport.all_reduce(data.data(), count);
  for (std::size_t i = 0; i < count; ++i) expect("all_reduce", i, data[i], sum(i));

  std::vector<float> all(count * width);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = mine(i);
  std::vector<float> part(count, -1.0F);
  transport.reduce_scatter(all.data(), part.data(), count);
  for (std::size_t i = 0; i < count; ++i) {
    expect("reduce_scatter", i, part[i], sum(static_cast<std::size_t>(transport.rank()) * count + i));
  }
  std::vector<float> turned(count * width, -1.0F);
  transport.all_to_all(all.data(), turned.data(), count * sizeof(float));
  for (std::size_t i = 0; i < turned.size(); ++i) {
    const std::size_t sent_from = static_cast<std::size_t>(transport.rank()) * count + i % count;
    expect("all_to_all", i, turned[i], law_value(static_cast<int>(i / count), sent_from));
  }
  transport.barrier();
}

/// Many exchanges under way at once, of sizes from none to several pieces, waited for in a random order. All ranks draw
/// the same plan from the seed; each message is filled with bytes that name it.
inline void check_storm(Transport& transport, unsigned seed, LawReport& report) {
  struct Planned {
    int from;
    int to;
    std::size_t bytes;
  };
  constexpr int exchanges = 24;
  std::mt19937 plan(seed);
  std::mt19937 own(seed * 1000U + static_cast<unsigned>(transport.rank()));
  const auto rank_of = [&] { return static_cast<int>(plan() % static_cast<unsigned>(transport.size())); };
  const auto fill = [](const Planned& message, int number) {
    return static_cast<unsigned char>(message.from * 31 + message.to * 17 + number * 5 + 1);
  };

  struct UnderWay {
    Ticket ticket;
    std::vector<std::vector<unsigned char>> sent;
    std::vector<std::vector<unsigned char>> received;
    std::vector<unsigned char> expected;
  };
  std::vector<UnderWay> under_way;
  for (int number = 0; number < exchanges; ++number) {
    UnderWay exchange{};
    std::vector<Send> sends;
    std::vector<Receive> receives;
    const auto messages = plan() % 6;
    for (std::size_t i = 0; i < messages; ++i) {
      const std::size_t largest = plan() % 4 == 0 ? 700'000 : 2000;
      const Planned message{rank_of(), rank_of(), plan() % largest};
      if (message.from == transport.rank()) {
        exchange.sent.emplace_back(message.bytes, fill(message, number));
        sends.push_back({message.to, exchange.sent.back().data(), message.bytes});
      }
      if (message.to == transport.rank()) {
        exchange.received.emplace_back(message.bytes, static_cast<unsigned char>(0));
        exchange.expected.push_back(fill(message, number));
        receives.push_back({message.from, exchange.received.back().data(), message.bytes});
      }
    }
    exchange.ticket = transport.start(sends, receives);
    under_way.push_back(std::move(exchange));
    if (own() % 3 == 0) transport.progress();
  }
  while (!under_way.empty()) {
    const auto chosen = under_way.begin() + static_cast<std::ptrdiff_t>(own() % under_way.size());
    transport.wait(chosen->ticket);
    for (std::size_t i = 0; i < chosen->received.size(); ++i) {
      for (const unsigned char byte : chosen->received[i]) {
        if (byte == chosen->expected[i]) continue;
        report.fail(fmt::format("storm of seed {}: rank {} received {} where {} was sent", seed, transport.rank(), byte,
                                chosen->expected[i]));
        break;
      }
    }
    under_way.erase(chosen);
  }
}

}  // namespace hdpsim::kernels
