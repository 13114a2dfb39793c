// A number is no id until someone says of what.
// expect: conversion from .int. to non-scalar type .*NodeTag
#include "sim/base/id.h"

using namespace hdpsim;

#ifdef MISTAKE
constexpr NodeId node = 3;
#else
constexpr NodeId node{3};
#endif
