#include <algorithm>
#include <array>

#include "sim/import/impl/config_format.h"

namespace hdpsim {

const ConfigFormat* config_format_named(std::string_view name) {
  static const std::array formats = {&accelerate_format(),         &axolotl_format(),  &deepspeed_format(),
                                     &llama_factory_format(),      &ms_swift_format(), &openrlhf_format(),
                                     &training_arguments_format(), &verl_format()};
  const auto found =
      std::find_if(formats.begin(), formats.end(), [name](const ConfigFormat* each) { return each->name == name; });
  return found == formats.end() ? nullptr : *found;
}

}  // namespace hdpsim
