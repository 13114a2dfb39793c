#pragma once

#include "sim/base/check.h"
#include "sim/model/sharing_form.h"

namespace hdpsim {

// Each is defined in the file of its name in this folder.
const SharingForm& ring_sharing();
const SharingForm& gathered_sharing();
const SharingForm& traded_sharing();
const SharingForm& cast_sharing();
const SharingForm& query_ring_sharing();
const SharingForm& served_sharing();

[[nodiscard]] inline const SharingForm& find_sharing_form(KeyExchange exchange) {
  switch (exchange) {
    case KeyExchange::ring:
      return ring_sharing();
    case KeyExchange::all_gather:
      return gathered_sharing();
    case KeyExchange::all_to_all:
      return traded_sharing();
    case KeyExchange::group_cast:
      return cast_sharing();
    case KeyExchange::query_ring:
      return query_ring_sharing();
    case KeyExchange::servers:
      return served_sharing();
  }
  HDPSIM_CHECK(false, "exchange {} has no form", static_cast<int>(exchange));
}

/// The buffers of a ring: two each of what passes and of its gradients, or of the keys and values of a halo. None
/// without a ring.
[[nodiscard]] Bytes ring_buffers(const SharingLoad& load);

/// What is added to keys and values where their gradients travel, too.
[[nodiscard]] inline Bytes with_gradients(Bytes kv, const SharingLoad& load) {
  return kv + kv * load.recipe.dkv_bytes_per_element / load.model.element_bytes;
}

}  // namespace hdpsim
