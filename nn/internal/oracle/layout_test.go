package oracle

import "testing"

// bf16 is a pair of small whole numbers, which are the upper halves of their float32.
func bf16(scale, bias float32) uint32 {
	h := map[float32]uint32{1: 0x3f80, 2: 0x4000, 3: 0x4040, 4: 0x4080, 100: 0x42c8}
	return h[scale] | h[bias]<<16
}

func TestQ4BankRowMajor(t *testing.T) {
	m := Q4Bank{Rows: 1, Cols: 4, Group: 2, Packed: []byte{0x21, 0xf3}, ScalesBiases: []uint32{bf16(1, 100), bf16(2, 3)}}
	equal(t, []float64{101, 102, 9, 33}, Expand(m))
	equal(t, 33.0, m.Magnitude(0, 3))
	negative := m
	negative.ScalesBiases = []uint32{0xc040_c000} // −2·q − 3
	equal(t, -7.0, negative.At(0, 1))
	equal(t, 7.0, negative.Magnitude(0, 1))
	packed, groups := m.Sizes()
	equal(t, []int{2, 2}, []int{packed, groups})
	rows, cols := m.Shape()
	equal(t, []int{1, 4}, []int{rows, cols})
	equal(t, []float64{101 + 102 + 9 + 33}, GEMV(m, []float32{1, 1, 1, 1}))

	// The words of the other form of the format are the same bytes, low first.
	other := bank()
	m = Q4Bank{Rows: 2, Cols: 16, Group: 8, ScalesBiases: []uint32{0x3f80, 0x3f80_3f00, 0x4120_4000, 0x4040_bf80}}
	for _, w := range other.Words {
		m.Packed = append(m.Packed, byte(w), byte(w>>8), byte(w>>16), byte(w>>24))
	}
	equal(t, other.Dense(), Expand(m))
}

// Seventeen rows of two groups of two: two blocks, the second with one row of its own. Units are a byte.
func TestQ4BankBlocked16(t *testing.T) {
	m := Q4Bank{Layout: Blocked16, Rows: 17, Cols: 4, Group: 2}
	packed, groups := m.Sizes()
	equal(t, []int{64, 64}, []int{packed, groups})
	m.Packed, m.ScalesBiases = make([]byte, packed), make([]uint32, groups)
	for i := range groups {
		m.ScalesBiases[i] = bf16(1, 2)
	}
	// Row 5: its groups are the sixth of the first and of the second sixteen. Row 16 is the first of the second block.
	m.Packed[5], m.Packed[16+5], m.Packed[32], m.Packed[48] = 0x21, 0x43, 0x65, 0x87
	m.ScalesBiases[16+5], m.ScalesBiases[48] = bf16(2, 100), bf16(3, 4)
	dense := Expand(m)
	equal(t, []float64{3, 4, 106, 108}, dense[20:24])
	equal(t, []float64{7, 8, 25, 28}, dense[64:68])
	equal(t, []float64{2, 2, 2, 2}, dense[24:28])
	equal(t, 17*4, len(dense))
}

// Five rows of two packs and one group: two tiles.
func TestQ4BankInterleaved4(t *testing.T) {
	m := Q4Bank{Layout: Interleaved4, Rows: 5, Cols: 32, Group: 32}
	packed, groups := m.Sizes()
	equal(t, []int{8 * 16, 8}, []int{packed, groups})
	m.Packed, m.ScalesBiases = make([]byte, packed), make([]uint32, groups)
	for i := range groups {
		m.ScalesBiases[i] = bf16(1, 100)
	}
	// Row 2: packs 2 and 4+2 of eight bytes. Row 4: the first and the fifth pack of the second tile.
	m.Packed[2*8+1], m.Packed[6*8+7] = 0x21, 0x43
	m.Packed[64], m.Packed[64+4*8] = 0x05, 0x70
	m.ScalesBiases[2], m.ScalesBiases[4] = bf16(2, 3), bf16(3, 4)
	equal(t, []uint32{1, 2, 3, 4}, []uint32{m.Code(2, 2), m.Code(2, 3), m.Code(2, 30), m.Code(2, 31)})
	equal(t, []uint32{5, 7}, []uint32{m.Code(4, 0), m.Code(4, 17)})
	equal(t, []float64{3 + 2*4, 4 + 3*7, 100}, []float64{m.At(2, 31), m.At(4, 17), m.At(3, 31)})
	nonzero := 0
	for r := range 5 {
		for c := range 32 {
			if m.Code(r, c) != 0 {
				nonzero++
			}
		}
	}
	equal(t, 6, nonzero)

	// Two groups of sixteen: the second group's pair of row 1 follows those of the tile's four rows.
	m = Q4Bank{Layout: Interleaved4, Rows: 4, Cols: 32, Group: 16, Packed: make([]byte, 64),
		ScalesBiases: []uint32{0, 0, 0, 0, 0, bf16(1, 100), 0, 0}}
	equal(t, []float64{0, 100}, []float64{m.At(1, 15), m.At(1, 16)})
}
