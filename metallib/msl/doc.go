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
// Floating-point arithmetic is exactly as written: no fast-math flags, no contraction. The plain names of the standard
// library are the precise functions; fast:: has the fast ones.
package msl
