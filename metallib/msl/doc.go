// Package msl compiles the Metal Shading Language to Metal libraries without Apple's tools: what Metal's compiler does
// on a Mac, this does anywhere clang-22 and opt-22 are installed.
//
// [Compile] goes this way:
//
//   - clang preprocesses the source against a small set of headers of our own;
//   - a rewriter turns the tokens of MSL into C++ for OpenCL, the nearest language clang has: attributes, address spaces,
//     vector constructors and casts, threadgroup variables, function constants;
//   - clang compiles that without optimising; what the attributes said and what the parameters' types are is read off its
//     output, and the generic address space is folded into the thread's;
//   - opt inlines and simplifies, without anything that would reorder floating-point arithmetic;
//   - the module is split into one per kernel, its pointers are given types again, what is newer than LLVM 14 is taken
//     out, and Metal's metadata is put in.
//
// Errors carry the file, line and column of the MSL source.
//
// The programs are clang-22 and opt-22, found in the PATH or named by the environment variables INGOT_CLANG and INGOT_OPT.
//
// What is translated: kernels (templates with host_name too) with buffers, threadgroup memory and built-ins, function
// constants, the arithmetic types with their vectors and matrices, bfloat, packed vectors, relaxed atomics, SIMD-group and
// quad functions, SIMD-group matrices, and most of the standard library. What is not is refused with a message: textures,
// samplers, other stages than compute, ray tracing, function tables, recursion, pointers to functions.
//
// Floating-point arithmetic is exactly as written: no fast-math flags, no contraction. The plain names of the standard
// library are the precise functions; fast:: has the fast ones.
package msl
