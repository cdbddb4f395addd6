// Package air holds Apple's intermediate representation (AIR) in memory: the LLVM modules that a Metal library carries,
// one per kernel.
//
// A [Module] is read from LLVM bitcode with [Read] (typed pointers as Apple writes them, opaque pointers as current
// clang does) and written with [Write], which emits the one form every Metal loader is known to accept: LLVM 14 records
// with typed pointers. [Module.Kernels] reflects what `!air.kernel` says about each kernel.
//
// The model follows LLVM's own: a module has globals, functions and named metadata; a function has basic blocks; a block
// has instructions, and an instruction is itself a value. Instructions are one struct with an opcode rather than one Go
// type per opcode: passes and the executor switch on [Instr.Op].
package air
