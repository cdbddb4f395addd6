package main

import (
	"github.com/ingot-metal/ingot/nn"
	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// activation is what matrices are multiplied with. It is bfloat16 in models whose matrices are all in MLX's 4-bit format, for which
// there are fused kernels that read that, and float32 in others; the other slice is zero.
type activation struct {
	f32  runtime.Slice[float32]
	bf16 runtime.Slice[half.BFloat16]
}

// newActivation is memory for n numbers.
func newActivation(a *memory, what string, narrow bool, n int) activation {
	if narrow {
		return activation{bf16: zeros[half.BFloat16](a, what, n)}
	}
	return activation{f32: zeros[float32](a, what, n)}
}

func (x activation) narrow() bool { return x.bf16 != runtime.Slice[half.BFloat16]{} }

// slice is elements i up to j.
func (x activation) slice(i, j int) activation {
	if x.narrow() {
		return activation{bf16: x.bf16.Slice(i, j)}
	}
	return activation{f32: x.f32.Slice(i, j)}
}

// matrix is a weight matrix on the device, in one of the formats that there are.
type matrix interface {
	// lookup makes out[t] = scale * row ids[t], for each of the tokens.
	lookup(p *runtime.Pass, out runtime.Slice[float32], ids runtime.Slice[uint32], tokens int, scale float32) error
	// few multiplies with up to maxSequences vectors, y[i] = matrix * x[i]. Each result has the bits that it has alone.
	few(p *runtime.Pass, y runtime.Slice[float32], x activation, n int) error
	// many multiplies with any number of vectors, of a tile of a prompt.
	many(p *runtime.Pass, y runtime.Slice[float32], x activation, n int) error
}

// maxSequences is how many vectors the row-exact products take, and so how many sequences are decoded at once.
const maxSequences = nn.MaxRowExactRows
