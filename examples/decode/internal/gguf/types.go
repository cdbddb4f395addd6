package gguf

import (
	"fmt"
	"math"
)

// Type is how a tensor's numbers are stored, as numbered in ggml.h.
type Type uint32

// The types of tensors that can be read.
const (
	F32    Type = 0
	F16    Type = 1
	Q4_0   Type = 2
	Q5_0   Type = 6
	Q8_0   Type = 8
	Q4_K   Type = 12
	Q5_K   Type = 13
	Q6_K   Type = 14
	IQ4_NL Type = 20
	BF16   Type = 30
)

// blocks are the numbers and bytes of a block of each type.
var blocks = map[Type]struct{ values, bytes int64 }{
	F32: {1, 4}, F16: {1, 2}, BF16: {1, 2},
	Q4_0: {32, 18}, Q5_0: {32, 22}, Q8_0: {32, 34}, IQ4_NL: {32, 18},
	Q4_K: {256, 144}, Q5_K: {256, 176}, Q6_K: {256, 210},
}

// typeNames are the names of all types that ggml.h has or had.
var typeNames = map[Type]string{
	F32: "F32", F16: "F16", Q4_0: "Q4_0", 3: "Q4_1", 4: "Q4_2", 5: "Q4_3", Q5_0: "Q5_0", 7: "Q5_1", Q8_0: "Q8_0", 9: "Q8_1", 10: "Q2_K",
	11: "Q3_K", Q4_K: "Q4_K", Q5_K: "Q5_K", Q6_K: "Q6_K", 15: "Q8_K", 16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S", IQ4_NL: "IQ4_NL",
	21: "IQ3_S", 22: "IQ2_S", 23: "IQ4_XS", 24: "I8", 25: "I16", 26: "I32", 27: "I64", 28: "F64", 29: "IQ1_M", BF16: "BF16",
	34: "TQ1_0", 35: "TQ2_0", 39: "MXFP4",
}

// String is the type's name, as in "Q4_K".
func (t Type) String() string {
	if name, ok := typeNames[t]; ok {
		return name
	}
	return fmt.Sprintf("Type(%d)", uint32(t))
}

// maxSize is large enough for anything and small enough that sums do not overflow.
const maxSize = math.MaxInt64 / 4

// size is the number of bytes of a tensor. Rows are of whole blocks.
func (t Type) size(shape []int64) (int64, error) {
	b, ok := blocks[t]
	if !ok {
		return 0, fmt.Errorf("is of type %v: known are F32, F16, BF16, Q4_0, Q5_0, Q8_0, IQ4_NL, Q4_K, Q5_K and Q6_K", t)
	}
	row := shape[len(shape)-1]
	if row%b.values != 0 {
		return 0, fmt.Errorf("has rows of %d numbers, which are no whole blocks of %v", row, t)
	}
	size := b.bytes
	for i, n := range shape {
		if i == len(shape)-1 {
			n /= b.values
		}
		if n > maxSize/size {
			return 0, fmt.Errorf("has shape %v, which is too large", shape)
		}
		size *= n
	}
	return size, nil
}
