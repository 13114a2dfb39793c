// A length of time is no point of time until someone says since when.
// expect: conversion from .hdpsim::Duration. to non-scalar type .*Instant
#include "sim/base/units.h"

using namespace hdpsim;

#ifdef MISTAKE
constexpr Instant end = 5_us;
#else
constexpr Instant end = Instant::at(5_us);
#endif
