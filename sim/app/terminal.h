#pragma once

#include <string>
#include <string_view>

#include "sim/report/format.h"

namespace hdpsim::app {

// All that this program tells. Standard output has the results: what refuses it ends the run with a MachineError.
// Standard error is for the person who looks on, and may be closed, full or a pipe that nobody reads: nothing that is
// told there can end a run. No control character of what the user has named or written reaches a terminal; formats for
// programs keep every byte of it and escape as they do.

/// First thing in the program: descriptors 0 to 2 that are closed get /dev/null, so that no file that is opened later
/// takes their place and has what is told in it. Standard output is then one that takes nothing, as a closed one is.
void open_closed_streams();

/// Writes to standard output, for people unless the format is one for programs. MachineError if it does not take it.
void print(const std::string& text, Format format = Format::table);
/// The same, byte by byte.
void print_bytes(std::string_view text);

/// One line to standard error.
void note(const std::string& text);
/// Problems to standard error, as InputError tells them, in colour where it takes that.
void complain(std::string_view text);

/// The last line of a terminal that is standard error, drawn again and again.
void draw_line(std::string_view text);
void clear_line();

}  // namespace hdpsim::app
