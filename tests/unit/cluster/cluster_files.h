#pragma once

#include <filesystem>
#include <string>

#include "sim/cluster/cluster_config.h"
#include "tests/support/brief.h"

namespace hdpsim {

inline std::filesystem::path shipped_clusters() {
  return std::filesystem::path(HDPSIM_SOURCE_DIR) / "configs" / "clusters";
}

/// Throws InputError with the full text if the cluster is not accepted.
inline ClusterSpec cluster_from(const std::string& text) {
  Diagnostics diagnostics;
  const Value value = parse_document("cluster.yaml", text, diagnostics);
  const auto spec = read_cluster(value, shipped_clusters(), diagnostics);
  diagnostics.throw_if_any();
  return spec.value();
}

/// What is wrong with a cluster, a line a problem; empty if nothing is.
inline std::string problems_of(const std::string& text) {
  Diagnostics diagnostics;
  const Value value = parse_document("cluster.yaml", text, diagnostics);
  const auto spec = read_cluster(value, shipped_clusters(), diagnostics);
  return spec.has_value() == diagnostics.empty() ? test::brief(diagnostics.text())
                                                 : "a result and problems, or neither";
}

}  // namespace hdpsim
