package oracle

// Q8 is a matrix in an 8-bit affine format: w[r][c] = s·(q − z).
//
// q is a signed byte. s and z belong to a group of Group neighbouring columns of one row ([Rows][Cols/Group]); z need not
// be whole.
type Q8 struct {
	Codes         []int8 // [Rows][Cols]
	Scales, Zeros []float32
	Rows, Cols    int
	Group         int
}

// Shape implements [Matrix].
func (m Q8) Shape() (rows, cols int) { return m.Rows, m.Cols }

// At implements [Matrix]: s·(q − z).
func (m Q8) At(row, col int) float64 {
	s, z := m.group(row, col)
	return s * (float64(m.Codes[row*m.Cols+col]) - z)
}

// Magnitude implements [Matrix]: |s·q| + |s·z|.
func (m Q8) Magnitude(row, col int) float64 {
	s, z := m.group(row, col)
	return abs(s) * (abs(float64(m.Codes[row*m.Cols+col])) + abs(z))
}

func (m Q8) group(row, col int) (scale, zero float64) {
	g := row*(m.Cols/m.Group) + col/m.Group
	return float64(m.Scales[g]), float64(m.Zeros[g])
}

// Q4Signed is a matrix in a 4-bit affine format with signed codes: w[r][c] = s·(q − z).
//
// q is from −8 to 7, in two's complement. Packed holds two codes a byte, the first in the low half, row after row
// ([Rows][Cols/2]). s and z are as in [Q8]. It is not [Q4], whose codes have no sign and whose second number is added.
type Q4Signed struct {
	Packed        []byte
	Scales, Zeros []float32
	Rows, Cols    int
	Group         int
}

// Shape implements [Matrix].
func (m Q4Signed) Shape() (rows, cols int) { return m.Rows, m.Cols }

// Code is the signed code of one element.
func (m Q4Signed) Code(row, col int) int {
	code := int(nibble(m.Packed, row*m.Cols+col))
	if code > 7 {
		code -= 16
	}
	return code
}

// At implements [Matrix]: s·(q − z).
func (m Q4Signed) At(row, col int) float64 {
	s, z := m.group(row, col)
	return s * (float64(m.Code(row, col)) - z)
}

// Magnitude implements [Matrix]: |s·q| + |s·z|.
func (m Q4Signed) Magnitude(row, col int) float64 {
	s, z := m.group(row, col)
	return abs(s) * (abs(float64(m.Code(row, col))) + abs(z))
}

func (m Q4Signed) group(row, col int) (scale, zero float64) {
	g := row*(m.Cols/m.Group) + col/m.Group
	return float64(m.Scales[g]), float64(m.Zeros[g])
}

// nibble is half a byte, numbered through the slice, the low half of each byte first.
func nibble(packed []byte, i int) byte {
	return packed[i/2] >> (4 * (i % 2)) & 15
}

// Affine is a matrix in MLX's affine format with codes of any number of bits: w[r][c] = s·q + b.
//
// q is an unsigned code. The codes of all rows are one stream of bits, the lowest of a code first: code i is bits i·Bits to
// i·Bits + Bits − 1, and bit j of the stream is bit j mod 8 of byte j/8. s and b belong to a group of Group neighbouring columns of one
// row ([Rows][Cols/Group]).
type Affine struct {
	Packed         []byte
	Scales, Biases []float32
	Rows, Cols     int
	Group, Bits    int
}

// Shape implements [Matrix].
func (m Affine) Shape() (rows, cols int) { return m.Rows, m.Cols }

// Code is the code of one element.
func (m Affine) Code(row, col int) int {
	first, code := (row*m.Cols+col)*m.Bits, 0
	for i := range m.Bits {
		at := first + i
		code |= int(m.Packed[at/8]>>(at%8)&1) << i
	}
	return code
}

// At implements [Matrix]: s·q + b.
func (m Affine) At(row, col int) float64 {
	s, b := m.group(row, col)
	return s*float64(m.Code(row, col)) + b
}

// Magnitude implements [Matrix]: |s·q| + |b|.
func (m Affine) Magnitude(row, col int) float64 {
	s, b := m.group(row, col)
	return abs(s)*float64(m.Code(row, col)) + abs(b)
}

func (m Affine) group(row, col int) (scale, bias float64) {
	g := row*(m.Cols/m.Group) + col/m.Group
	return float64(m.Scales[g]), float64(m.Biases[g])
}
