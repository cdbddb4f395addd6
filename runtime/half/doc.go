// Package half has the two 16-bit floating-point types that GPU kernels use: Float16, the IEEE 754 binary16 format, and
// BFloat16, the upper half of an IEEE 754 binary32 number.
//
// Values convert from float32 with round-to-nearest, ties to even. Numbers beyond the largest finite value become
// infinite, subnormal results are kept, the sign of zero is kept, and a NaN stays a NaN: it is made quiet and keeps its
// sign and the upper bits of its payload. Conversion to float32 is exact, except that it quiets signalling NaNs only
// where the processor does.
//
// The types are their bit patterns, so a slice of them has exactly the bytes that a kernel reads: little-endian on
// every system that Go and Metal share.
package half
