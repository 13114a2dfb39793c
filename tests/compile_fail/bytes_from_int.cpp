// A raw number is no amount of data until someone says so.
// expect: conversion from .int. to non-scalar type .*Bytes
#include "sim/base/units.h"

using namespace hdpsim;

#ifdef MISTAKE
constexpr Bytes size = 4096;
#else
constexpr Bytes size{4096};
#endif
