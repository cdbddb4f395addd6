// What all shaders share.

#ifndef INGOT_COMMON_H
#define INGOT_COMMON_H

#include <metal_stdlib>
using namespace metal;

// A helper that never stays a call: arrays passed to it live in registers.
#define INGOT_FUNC static inline __attribute__((always_inline))

#endif
