package oracle

// Q4Layout is an order of the weights of a [Q4Bank].
type Q4Layout int

// The layouts. Below, gpr is the number of groups of a row, and "at" counts units of the size given: whatever the unit, it
// holds neighbouring columns of one row in their order.
const (
	// RowMajor has row after row: a group at row·gpr + g.
	RowMajor Q4Layout = iota

	// Blocked16 has blocks of 16 rows, in a block group after group, and of a group all 16 rows: group g of row 16·b + r is
	// at b·gpr·16 + g·16 + r. This goes for the codes of a group as for its scale and bias.
	Blocked16

	// Interleaved4 has tiles of 4 rows. Of their codes each 8 bytes, a pack of 16 columns, come from the next row: with
	// p = Cols/16 packs in a row, pack k of row 4·t + r is at (t·p + k)·4 + r. The scale and bias of its group g are at
	// (t·gpr + g)·4 + r.
	Interleaved4
)

// Tile is how many rows stand together: banks have whole tiles, the last one padded with rows that nobody reads.
func (l Q4Layout) Tile() int {
	switch l {
	case Blocked16:
		return 16
	case Interleaved4:
		return 4
	}
	return 1
}

// Q4Bank is a matrix in MLX's 4-bit affine format, w[r][c] = s·q + b, in one of several layouts.
//
// Codes are from 0 to 15, two a byte, the first in the low half. ScalesBiases has a pair of bfloat16 numbers for each
// group, the scale in the low half of its word. Here any Group that divides Cols will do, and for [Interleaved4] any Cols
// that 16 divides; the device wants a multiple of 32 that divides 512.
type Q4Bank struct {
	Layout       Q4Layout
	Packed       []byte
	ScalesBiases []uint32
	Rows, Cols   int
	Group        int
}

// Sizes are the lengths that Packed and ScalesBiases must have, padding included.
func (m Q4Bank) Sizes() (packed, groups int) {
	tile := m.Layout.Tile()
	rows := (m.Rows + tile - 1) / tile * tile
	return rows * m.Cols / 2, rows * (m.Cols / m.Group)
}

// Shape implements [Matrix].
func (m Q4Bank) Shape() (rows, cols int) { return m.Rows, m.Cols }

// Code is the 4-bit code of one element.
func (m Q4Bank) Code(row, col int) uint32 {
	unit, at := m.Group, m.groupAt(row, col)
	if m.Layout == Interleaved4 {
		unit, at = 16, tiled(row, col/16, m.Cols/16, 4)
	}
	return uint32(nibble(m.Packed, at*unit+col%unit))
}

// At implements [Matrix]: s·q + b.
func (m Q4Bank) At(row, col int) float64 {
	s, b := m.group(row, col)
	return s*float64(m.Code(row, col)) + b
}

// Magnitude implements [Matrix]: |s·q| + |b|.
func (m Q4Bank) Magnitude(row, col int) float64 {
	s, b := m.group(row, col)
	return abs(s)*float64(m.Code(row, col)) + abs(b)
}

func (m Q4Bank) group(row, col int) (scale, bias float64) {
	pair := m.ScalesBiases[m.groupAt(row, col)]
	return BF16(uint16(pair)), BF16(uint16(pair >> 16))
}

func (m Q4Bank) groupAt(row, col int) int {
	return tiled(row, col/m.Group, m.Cols/m.Group, m.Layout.Tile())
}

// tiled is the place of unit k of a row, of perRow units, where tiles of rows take turns unit by unit.
func tiled(row, k, perRow, tile int) int {
	return (row/tile*perRow+k)*tile + row%tile
}
