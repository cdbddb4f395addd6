// Package oracle computes nn's operations in float64, straight from their formulas.
//
// It exists to be compared with: nn's tests run a kernel on a device and this package on the same numbers. So it is
// written without a look at any kernel. It has no tiles, no lanes, no reduction trees and no fast paths, and it rounds
// nowhere, except in [RoundBF16], [RoundF16] and [RoundF32], which a caller applies where an operation is defined to store
// such numbers.
//
// A result that is a sum comes with its magnitude, the sum of its terms' absolute values. That is what the rounding error
// of an implementation is proportional to: the sum itself may cancel to nothing.
//
// Inputs are plain slices in the layouts of the operations: float32 or float64 for real numbers (bfloat16 and half
// values are passed as the float32 numbers they are), uint32 for packed words, ids and counters. Results are float64 and freshly
// allocated: nothing here writes to its inputs. A slice shorter than its shape panics, as any index out of range does;
// the shapes that the device must refuse are the business of nn's own tests.
package oracle

// Real is a slice element that holds a real number.
type Real interface{ ~float32 | ~float64 }
