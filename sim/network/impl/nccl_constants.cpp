#include "sim/network/impl/nccl_constants.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "sim/base/check.h"
#include "sim/document/reader.h"
#include "sim/network/shipped_nccl.h"

namespace hdpsim::nccl {
namespace {

const Value& document() {
  static const Value root = [] {
    Diagnostics problems;
    Value read = parse_document("configs/nccl/2.25.yaml", std::string(shipped::nccl_constants), problems);
    problems.throw_if_any();
    return read;
  }();
  return root;
}

const Value& value_at(std::string_view path) {
  const Value* value = &document();
  for (std::string_view rest = path; !rest.empty();) {
    const std::string_view key = rest.substr(0, rest.find('.'));
    value = value->find(key);
    HDPSIM_CHECK(value != nullptr, "NCCL's constants have no {}", path);
    rest.remove_prefix(std::min(rest.size(), key.size() + 1));
  }
  return *value;
}

template <class Quantity>
Quantity read_at(const Value& value, std::string_view path) {
  Diagnostics problems;
  const auto quantity = read<Quantity>(value, problems);
  HDPSIM_CHECK(quantity.has_value(), "NCCL's {} is {}", path, value.text);
  return *quantity;
}

double rate_of(const Value& value, std::string_view path) {
  return static_cast<double>(read_at<Bandwidth>(value, path).bytes_per_second());
}

double microseconds_of(const Value& value, std::string_view path) {
  return read_at<Duration>(value, path).seconds() * 1e6;
}

template <class FigureOf>
std::vector<double> list_at(std::string_view path, const FigureOf& figure_of) {
  std::vector<double> figures;
  for (const Value& item : value_at(path).items) figures.push_back(figure_of(item, path));
  HDPSIM_CHECK(!figures.empty(), "NCCL's {} is no list", path);
  return figures;
}

}  // namespace

double number(std::string_view path) {
  return read_at<double>(value_at(path), path);
}

double microseconds(std::string_view path) {
  return microseconds_of(value_at(path), path);
}

ByProtocol microseconds_by_protocol(std::string_view path) {
  const std::vector<double> figures = list_at(path, microseconds_of);
  ByProtocol by_protocol{};
  HDPSIM_CHECK(figures.size() == by_protocol.size(), "NCCL's {} has {} figures", path, figures.size());
  std::copy(figures.begin(), figures.end(), by_protocol.begin());
  return by_protocol;
}

std::vector<double> numbers(std::string_view path) {
  return list_at(path, read_at<double>);
}

std::vector<double> rates(std::string_view path) {
  return list_at(path, rate_of);
}

namespace {

template <class Entry, class FigureOf>
std::vector<Entry> entries_at(std::string_view path, std::string_view key, const FigureOf& figure_of) {
  std::vector<Entry> entries;
  for (const Value& item : value_at(path).items) {
    const Value* from = item.find("from");
    const Value* figure = item.find(key);
    HDPSIM_CHECK(from != nullptr && figure != nullptr, "an entry of NCCL's {} has no from or no {}", path, key);
    entries.push_back({static_cast<int>(std::lround(10 * read_at<double>(*from, path))), figure_of(*figure, path)});
  }
  return entries;
}

}  // namespace

ByCapability ByCapability::numbers(std::string_view path, std::string_view key) {
  ByCapability figures;
  figures.entries_ = entries_at<Entry>(path, key, read_at<double>);
  return figures;
}

ByCapability ByCapability::rates(std::string_view path, std::string_view key) {
  ByCapability figures;
  figures.entries_ = entries_at<Entry>(path, key, rate_of);
  return figures;
}

double ByCapability::at(int capability) const {
  const auto above =
      std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.from > capability; });
  HDPSIM_CHECK(above != entries_.begin(), "NCCL has no figure for compute capability {}", capability);
  return (above - 1)->figure;
}

}  // namespace hdpsim::nccl
