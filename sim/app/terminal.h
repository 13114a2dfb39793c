#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sim/results/format.h"

namespace hdpsim::app {

// All output of this program. Standard output has the results: if it refuses them, the run ends with a MachineError.
// Standard error is for the person who watches, and may be closed, full or an unread pipe: a failure there never ends a
// run. No control character from the user's names and texts reaches a terminal; formats for programs keep every byte of
// it, with their own escapes.

/// First call of the program: opens /dev/null for descriptors 0 to 2 that are closed, so that no file opened later
/// takes their place and receives output. Standard output then refuses writing, as a closed one does.
void open_closed_streams();

/// Writes to standard output, for people unless the format is one for programs. MachineError if it is refused.
void print(const std::string& text, Format format = Format::table);
/// The same, byte by byte.
void print_bytes(std::string_view text);

/// Writes one line to standard error.
void note(const std::string& text);
/// Writes problems to standard error, as InputError formats them, in colour if it supports that.
void complain(std::string_view text);
/// Writes a text of the program's own to standard error as it is, without taking memory.
void complain_without_memory(std::string_view text);

/// Whether a person is there to be asked: standard input and standard error are terminals.
[[nodiscard]] bool can_ask();
/// Asks on standard error and returns the line that is typed, without blanks around it. Empty at the end of the input.
[[nodiscard]] std::optional<std::string> ask(std::string_view question);

/// Redraws the last line of a terminal that is standard error.
void draw_line(std::string_view text);
void clear_line();

}  // namespace hdpsim::app
