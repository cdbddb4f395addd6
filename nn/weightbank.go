package nn

import "github.com/ingot-metal/ingot/runtime/half"

// WeightBank is a matrix of weights of any [WeightType], row-major: blocks of any format, or plain numbers. It is what [EmbedLookup],
// [GEMMWeights] and [RowExactMatvec] take, which read the same float32 number for the same weight.
type WeightBank interface {
	BlockBank | DenseBank[float32] | DenseBank[half.Float16] | DenseBank[half.BFloat16]
	weights() weights
	// Type is the type of the weights.
	Type() WeightType
}
