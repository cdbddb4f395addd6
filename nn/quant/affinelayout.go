package quant

import (
	"encoding/binary"
	"fmt"
	"strconv"
)

const (
	// PlaneRows and PlaneGroup are the rows of a tile and the group size of [AffinePlane].
	PlaneRows  = 64
	PlaneGroup = 64
	// planeHalf is how many columns a run of words of the plane has.
	planeHalf = 32
)

// AffineCodes is a matrix of weights in the affine format with a byte for each code; see the package documentation. The group
// size is a power of two, 2 to 1,024, and divides the columns.
type AffineCodes struct {
	Rows, Cols, GroupSize int
	Codes                 []uint8   // [Rows, Cols]
	Scales, Biases        []float32 // [Rows, Cols/GroupSize]
}

// CheckAffineCodes says why a matrix of that shape has no form with a byte for each code and that group size, or nil.
func CheckAffineCodes(rows, cols, groupSize int) error {
	return checkAffineCodes("CheckAffineCodes", rows, cols, groupSize)
}

func checkAffineCodes(fn string, rows, cols, groupSize int) error {
	if groupSize < 2 || groupSize > 1024 || groupSize&(groupSize-1) != 0 {
		return shape(fn, "group size", strconv.Itoa(groupSize), "a power of two, 2 to 1024")
	}
	return checkAffineShape(fn, rows, cols, groupSize)
}

// Validate says why c is not a matrix in this format, or nil: shape, lengths, and scales and biases that are finite.
func (c AffineCodes) Validate() error { return c.validate("AffineCodes.Validate") }

func (c AffineCodes) validate(fn string) error {
	if err := checkAffineCodes(fn, c.Rows, c.Cols, c.GroupSize); err != nil {
		return err
	}
	groups := c.Rows * (c.Cols / c.GroupSize)
	for _, part := range []struct {
		name       string
		have, need int
	}{{"codes", len(c.Codes), c.Rows * c.Cols}, {"scales", len(c.Scales), groups}, {"biases", len(c.Biases), groups}} {
		if part.have != part.need {
			return shape(fn, part.name, fmt.Sprintf("%d elements", part.have), fmt.Sprintf("%d for %d * %d weights in groups of %d", part.need, c.Rows, c.Cols, c.GroupSize))
		}
	}
	if err := checkFinite32(fn, "scales", c.Scales); err != nil {
		return err
	}
	return checkFinite32(fn, "biases", c.Biases)
}

// Unpack is the matrix with a byte for each code, and scales and biases widened to float32, in new memory.
func (a Affine) Unpack() (AffineCodes, error) {
	if err := a.validate("Affine.Unpack"); err != nil {
		return AffineCodes{}, err
	}
	groups := a.Rows * (a.Cols / a.Format.GroupSize)
	c := AffineCodes{a.Rows, a.Cols, a.Format.GroupSize, make([]uint8, a.Rows*a.Cols), make([]float32, groups), make([]float32, groups)}
	unpackBits(c.Codes, a.Weight, a.Format.Bits)
	for g := range groups {
		c.Scales[g], c.Biases[g] = a.Format.Scale.at(a.Scales, g), a.Format.Scale.at(a.Biases, g)
	}
	return c, nil
}

// Pack is the matrix with codes of 4, 6 or 8 bits and scales and biases in float32, in new memory. A code that does not fit and a
// group size that [AffineFormat] does not have are refused.
func (c AffineCodes) Pack(bits int) (Affine, error) {
	const fn = "AffineCodes.Pack"
	if err := c.validate(fn); err != nil {
		return Affine{}, err
	}
	a, err := newAffine(fn, AffineFormat{bits, c.GroupSize, ScaleF32}, c.Rows, c.Cols)
	if err != nil {
		return Affine{}, err
	}
	if err := PackBits(a.Weight, c.Codes, bits); err != nil {
		if e, ok := err.(*Error); ok {
			e.Func = fn
		}
		return Affine{}, err
	}
	for g := range c.Scales {
		ScaleF32.put(a.Scales, g, c.Scales[g])
		ScaleF32.put(a.Biases, g, c.Biases[g])
	}
	return a, nil
}

// AffinePlane is a matrix of weights in the affine format with 4-bit codes, groups of 64, and scales and biases in bfloat16, in
// tiles of 64 rows; see the package documentation for the layout. Rows and Cols are multiples of 64.
type AffinePlane struct {
	Rows, Cols int
	Plane      []uint32 // codes: [Rows/64, Cols/32, 64, 4]
	Metadata   []uint32 // scales, low, and biases, high: [Rows/64, Cols/64, 64]
}

// AffinePlaneSizes are the lengths of Plane and Metadata for a matrix of that shape.
func AffinePlaneSizes(rows, cols int) (plane, metadata int, err error) {
	return affinePlaneSizes("AffinePlaneSizes", rows, cols)
}

func affinePlaneSizes(fn string, rows, cols int) (plane, metadata int, err error) {
	if err := checkAffineShape(fn, rows, cols, PlaneGroup); err != nil {
		return 0, 0, err
	}
	if rows%PlaneRows != 0 {
		return 0, 0, shape(fn, "rows", strconv.Itoa(rows), fmt.Sprintf("a multiple of %d", PlaneRows))
	}
	return rows * (cols / CodesPerWord), rows * (cols / PlaneGroup), nil
}

// Validate says why p is not a matrix in this format, or nil: shape, lengths, and scales and biases that are finite.
func (p AffinePlane) Validate() error { return p.validate("AffinePlane.Validate") }

func (p AffinePlane) validate(fn string) error {
	plane, metadata, err := affinePlaneSizes(fn, p.Rows, p.Cols)
	if err != nil {
		return err
	}
	if len(p.Plane) != plane {
		return shape(fn, "plane", fmt.Sprintf("%d words", len(p.Plane)), fmt.Sprintf("%d for %d * %d codes", plane, p.Rows, p.Cols))
	}
	if len(p.Metadata) != metadata {
		return shape(fn, "metadata", fmt.Sprintf("%d words", len(p.Metadata)), fmt.Sprintf("%d for %d * %d weights", metadata, p.Rows, p.Cols))
	}
	for i, m := range p.Metadata {
		if m&0x7f80 == 0x7f80 || m>>16&0x7f80 == 0x7f80 {
			return &Error{Func: fn, Arg: "metadata", Have: fmt.Sprintf("%#x at index %d", m, i), Need: "finite numbers", Err: ErrValue}
		}
	}
	return nil
}

// Plane is the matrix in tiles of 64 rows, in new memory. Other formats than 4-bit codes in groups of 64 with scales and biases in
// bfloat16, and rows that are no multiple of 64, are refused.
func (a Affine) Plane() (AffinePlane, error) {
	const fn = "Affine.Plane"
	if err := a.validate(fn); err != nil {
		return AffinePlane{}, err
	}
	if want := (AffineFormat{4, PlaneGroup, ScaleBF16}); a.Format != want {
		return AffinePlane{}, shape(fn, "format", a.Format.String(), want.String())
	}
	plane, metadata, err := affinePlaneSizes(fn, a.Rows, a.Cols)
	if err != nil {
		return AffinePlane{}, err
	}
	p := AffinePlane{a.Rows, a.Cols, make([]uint32, plane), make([]uint32, metadata)}
	var codes [planeHalf]byte
	p.runs(func(row, run, at int) {
		unpackBits(codes[:], a.Weight[(row*p.Cols+run*planeHalf)/2:][:planeHalf/2], 4)
		for i, c := range codes {
			word, shift := planePlace(i)
			p.Plane[at+word] |= uint32(c) << shift
		}
	})
	p.groups(func(plain, at int) {
		p.Metadata[at] = uint32(binary.LittleEndian.Uint16(a.Scales[2*plain:])) | uint32(binary.LittleEndian.Uint16(a.Biases[2*plain:]))<<16
	})
	return p, nil
}

// Affine is the matrix in row-major order, in new memory.
func (p AffinePlane) Affine() (Affine, error) {
	const fn = "AffinePlane.Affine"
	if err := p.validate(fn); err != nil {
		return Affine{}, err
	}
	a, err := newAffine(fn, AffineFormat{4, PlaneGroup, ScaleBF16}, p.Rows, p.Cols)
	if err != nil {
		return Affine{}, err
	}
	var codes [planeHalf]byte
	p.runs(func(row, run, at int) {
		for i := range codes {
			word, shift := planePlace(i)
			codes[i] = byte(p.Plane[at+word] >> shift & 15)
		}
		packBits(a.Weight[(row*p.Cols+run*planeHalf)/2:][:planeHalf/2], codes[:], 4)
	})
	p.groups(func(plain, at int) {
		binary.LittleEndian.PutUint16(a.Scales[2*plain:], uint16(p.Metadata[at]))
		binary.LittleEndian.PutUint16(a.Biases[2*plain:], uint16(p.Metadata[at]>>16))
	})
	return a, nil
}

// planePlace is where column i of a run of 32 is within its four words: columns 4 c to 4 c + 3 and 16 + 4 c to 16 + 4 c + 3 are in
// word c, the even ones in its low half.
func planePlace(i int) (word, shift int) {
	pair := i/16*2 + i%4/2
	return i % 16 / 4, i%2*16 + 4*pair
}

// runs visits the runs of 32 columns of the rows: at is where the four words of one are.
func (p AffinePlane) runs(visit func(row, run, at int)) {
	n := p.Cols / planeHalf
	for row := range p.Rows {
		for run := range n {
			visit(row, run, ((row/PlaneRows*n+run)*PlaneRows+row%PlaneRows)*4)
		}
	}
}

// groups visits the groups of the rows: plain is the place of one in row-major order, at its place in tiles.
func (p AffinePlane) groups(visit func(plain, at int)) {
	n := p.Cols / PlaneGroup
	for row := range p.Rows {
		for g := range n {
			visit(row*n+g, (row/PlaneRows*n+g)*PlaneRows+row%PlaneRows)
		}
	}
}
