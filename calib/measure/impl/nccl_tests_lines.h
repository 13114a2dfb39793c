#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace hdpsim::calib {

/// A word of a line, and the column where it begins, counted from 1.
struct Word {
  std::string_view text;
  int column = 1;
};

/// The words of a line from its character `begin` on.
[[nodiscard]] std::vector<Word> words_of(std::string_view line, std::size_t begin = 0);

/// Where the comment of a line begins, with its '#'. Launchers and logs put something before every line: `srun -l`
/// "3: ", mpirun's --tag-output "[1,3]<stdout>:", Kubernetes a time stamp.
[[nodiscard]] std::optional<std::size_t> comment_begin(std::string_view line);

/// The length of the prefix of a line, if it has the form of `prefix`: numbers match numbers, letters match letters and
/// blanks match any number of blanks, so that time stamps may differ; all other characters match themselves.
[[nodiscard]] std::optional<std::size_t> prefix_like(std::string_view prefix, std::string_view line);

}  // namespace hdpsim::calib
