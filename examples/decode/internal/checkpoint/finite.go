package checkpoint

import (
	"encoding/binary"

	"github.com/ingot-metal/ingot/nn"
)

// Masks of exponents: a number all of whose exponent's bits are set is infinite or none.
const (
	exponentF32  = 0x7f800000
	exponentF16  = 0x7c00
	exponentBF16 = 0x7f80
)

// floatsOf says where the float16 numbers of a block are: all others are integers.
var floatsOf = map[nn.WeightType][]int{
	nn.WeightQ4_0:   {0},
	nn.WeightQ5_0:   {0},
	nn.WeightQ8_0:   {0},
	nn.WeightIQ4_NL: {0},
	nn.WeightQ4_K:   {0, 2},
	nn.WeightQ5_K:   {0, 2},
	nn.WeightQ6_K:   {208},
}

// checkFinite refuses a matrix with a number, or a block with a scale, that is infinite or none.
func checkFinite(t tensor, kind nn.WeightType, data []byte) error {
	at := -1
	switch kind {
	case nn.WeightF32:
		for i := 0; i < len(data); i += 4 {
			if binary.LittleEndian.Uint32(data[i:])&exponentF32 == exponentF32 {
				at = i / 4
				break
			}
		}
	case nn.WeightF16:
		at = firstWith16(data, exponentF16)
	case nn.WeightBF16:
		at = firstWith16(data, exponentBF16)
	default:
		return checkBlocks(t, kind, data)
	}
	if at >= 0 {
		return t.error("has a number that is not finite at index %d", at)
	}
	return nil
}

// firstWith16 is the index of the first 16-bit number in which all bits of mask are set, or -1. Eight bytes are looked at at once:
// adding the mask's lowest bit to the masked exponent carries into the sign's place only if all are set.
func firstWith16(data []byte, mask uint64) int {
	const signs = 0x8000_8000_8000_8000
	wide := mask | mask<<16 | mask<<32 | mask<<48
	low := mask & -mask
	lows := low | low<<16 | low<<32 | low<<48
	i := 0
	for ; i+8 <= len(data); i += 8 {
		if (binary.LittleEndian.Uint64(data[i:])&wide+lows)&signs != 0 {
			break
		}
	}
	for ; i+2 <= len(data); i += 2 {
		if uint64(binary.LittleEndian.Uint16(data[i:]))&mask == mask {
			return i / 2
		}
	}
	return -1
}

func checkBlocks(t tensor, kind nn.WeightType, data []byte) error {
	size := kind.Block().Bytes()
	for _, at := range floatsOf[kind] {
		for b := 0; b < len(data); b += size {
			if binary.LittleEndian.Uint16(data[b+at:])&exponentF16 == exponentF16 {
				return t.error("has a scale that is not finite in block %d", b/size)
			}
		}
	}
	return nil
}
