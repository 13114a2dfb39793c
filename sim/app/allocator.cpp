#include <mimalloc.h>

namespace {

// Plans and steps of large pools go through gigabytes once: in pages of 4 KB, faults and address translation take half
// of a planner's time. The kernel may still refuse, and MIMALLOC_LARGE_OS_PAGES=0 in the environment comes first.
void ask_for_large_pages() {
  mi_option_set_enabled_default(mi_option_large_os_pages, true);
}

// Runs before any library is initialised: memory that the allocator already has stays in small pages.
[[gnu::section(".preinit_array"), gnu::used]] void (*const before_all)() = ask_for_large_pages;

}  // namespace
