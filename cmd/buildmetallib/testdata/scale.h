#pragma once
#include <metal_stdlib>
using namespace metal;

static inline float scaled(float x, float factor) { return x * factor; }
