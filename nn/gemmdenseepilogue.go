package nn

import (
	"strconv"

	"github.com/ingot-metal/ingot/runtime"
)

// Activation is the function that a product of dense matrices ends with.
type Activation uint8

// The activations.
const (
	ActNone Activation = iota // x itself
	ActReLU                   // max(0, x); NaN stays NaN
	ActGELU                   // the tanh form of GELU, as in MLPGELUTanh
	ActSiLU                   // x / (1 + exp(-x)), as in MLPSiLU
)

// String is the activation's name.
func (a Activation) String() string {
	if a > ActSiLU {
		return "Activation(" + strconv.Itoa(int(a)) + ")"
	}
	return [...]string{"none", "ReLU", "GELU", "SiLU"}[a]
}

// Epilogue is what follows the sums of [GEMMEpilogue] and [GEMVEpilogue] in the same launch:
//
//	Act(Alpha * sum + Beta * C[m, n] + Bias[n])
//
// in float32, before the result is rounded to O: the product with Alpha, Beta * C added with one rounding, the bias with
// another. The epilogue without effect is {Alpha: 1}.
type Epilogue[O Float] struct {
	// Alpha multiplies the sums. It means what it says: a zero that was left there makes them zeros.
	Alpha float32
	// Beta multiplies C. If it is 0, C is not looked at and may be the zero Slice.
	Beta float32
	// C has the shape of the result. It may be exactly the result, which is then replaced.
	C runtime.Slice[O]
	// StrideC is the number of elements from C of one product of the batch to the next; 0 for one C for all.
	StrideC int
	// Bias has an element for each column of the result, the same for all rows and products; the zero Slice for none.
	Bias runtime.Slice[float32]
	// Act is applied last.
	Act Activation
}
