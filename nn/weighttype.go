package nn

import (
	"strconv"

	"github.com/ingot-metal/ingot/nn/quant"
)

// WeightType is how weights are stored in a row-major matrix: as numbers or in one of the block formats of package quant.
type WeightType uint8

// The types of weights.
const (
	WeightF32 WeightType = iota + 1
	WeightF16
	WeightBF16
	WeightQ4_0
	WeightQ5_0
	WeightQ8_0
	WeightIQ4_NL
	WeightQ4_K
	WeightQ5_K
	WeightQ6_K
)

// weightInfo is what there is to know of a type. A row is of whole units.
type weightInfo struct {
	name          string
	values, bytes int // of a unit
	align         int // in bytes, of a matrix
	format        quant.BlockFormat
}

var weightInfos = [...]weightInfo{
	WeightF32:    {"F32", 1, 4, 4, 0},
	WeightF16:    {"F16", 1, 2, 2, 0},
	WeightBF16:   {"BF16", 1, 2, 2, 0},
	WeightQ4_0:   {"Q4_0", 32, 18, 2, quant.BlockQ4_0},
	WeightQ5_0:   {"Q5_0", 32, 22, 2, quant.BlockQ5_0},
	WeightQ8_0:   {"Q8_0", 32, 34, 2, quant.BlockQ8_0},
	WeightIQ4_NL: {"IQ4_NL", 32, 18, 2, quant.BlockIQ4_NL},
	WeightQ4_K:   {"Q4_K", 256, 144, 16, quant.BlockQ4_K},
	WeightQ5_K:   {"Q5_K", 256, 176, 16, quant.BlockQ5_K},
	WeightQ6_K:   {"Q6_K", 256, 210, 2, quant.BlockQ6_K},
}

// WeightTypes are all types.
func WeightTypes() []WeightType {
	list := make([]WeightType, 0, len(weightInfos))
	for t := WeightF32; int(t) < len(weightInfos); t++ {
		list = append(list, t)
	}
	return list
}

// info is nil for a number that is no type.
func (t WeightType) info() *weightInfo {
	if t == 0 || int(t) >= len(weightInfos) {
		return nil
	}
	return &weightInfos[t]
}

// String is the name that GGUF files use, as in "Q4_K".
func (t WeightType) String() string {
	if i := t.info(); i != nil {
		return i.name
	}
	return "WeightType(" + strconv.Itoa(int(t)) + ")"
}

// Block is the block format of the type, 0 for numbers and for what is no type.
func (t WeightType) Block() quant.BlockFormat {
	if i := t.info(); i != nil {
		return i.format
	}
	return 0
}

// WeightTypeOf is the type of weights in a block format, 0 for what is no format.
func WeightTypeOf(f quant.BlockFormat) WeightType {
	for t := WeightQ4_0; int(t) < len(weightInfos); t++ {
		if weightInfos[t].format == f {
			return t
		}
	}
	return 0
}

// RowBytes is the length of a row of so many columns, 0 if that is no whole number of blocks or t is no type.
func (t WeightType) RowBytes(cols int) int {
	i := t.info()
	if i == nil || cols < 0 || cols > maxDim || cols%i.values != 0 {
		return 0
	}
	return cols / i.values * i.bytes
}

// denseType is the type of weights that are numbers of type T.
func denseType[T Float]() WeightType { return denseTypes[elementKind[T]()] }

var denseTypes = [...]WeightType{kindFloat32: WeightF32, kindFloat16: WeightF16, kindBFloat16: WeightBF16}
