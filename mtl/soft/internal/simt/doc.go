// Package simt executes AIR kernels as a GPU does: simdgroups of 32 lanes in lock step, threadgroups in parallel.
//
// [Compile] turns a kernel and its function-constant values into a [Program] for this machine, once per pipeline:
//
//   - Lowering (lower*.go) inlines every call, splits vectors and aggregates into scalars, folds constants and what
//     depends on function constants, and yields a control-flow graph of scalar operations (ir.go).
//   - The graph is cleaned (opt.go), its loops get one latch each, and its blocks an order in which a loop is
//     contiguous and every join comes after what it joins (loops.go).
//   - Divergence analysis (diverge.go) finds what is the same in all lanes: it is computed once per simdgroup.
//   - Selection (select.go), register allocation (regalloc.go) and emission (emit.go) make the instructions, each a Go
//     function that loops over the 32 lanes of its operands in a flat register file.
//
// Execution (exec*.go, run.go): lanes of a simdgroup that part at a branch wait as groups; the group at the lowest block
// in the order runs first, so that they meet again where their paths join. Operations across lanes see the lanes of the
// running group. The simdgroups of a threadgroup take turns between barriers on one goroutine; threadgroups are spread
// over workers. Results do not depend on the number of workers unless threadgroups race.
//
// A pointer is a 64-bit number: the number of a memory region (a bound buffer, a threadgroup variable, a private variable)
// and a byte offset. Every access is checked against its region's exact bounds and its alignment; what is wrong ends the
// dispatch with a [Fault]. Threadgroup and private memory start with every byte 0xFF: to a kernel they are undefined.
//
// A program made with Options.Checks finds reads of memory never written and races (check.go: what counts as one, and how
// it is found; check_exec.go: the instructions). One made with Options.Counts counts what it does (count.go). Both are
// decided when the program is made, instruction by instruction, so that other programs do not pay for them.
//
// Floating point is IEEE 754 with denormals kept; half and bfloat arithmetic is rounded to nearest even after every
// operation; nothing is fused but explicit fma. Fast-math flags are ignored. Integer conversions saturate, division by
// zero gives 0, shift amounts are taken modulo the width: results are the same on every machine, but for the bits
// of a NaN.
package simt

//go:generate go run ./internal/genops
