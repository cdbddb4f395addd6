package quant

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"

	"github.com/ingot-metal/ingot/runtime/half"
)

// ScaleType is how an affine matrix stores its scales and biases.
type ScaleType uint8

// The types of scales and biases.
const (
	ScaleF32 ScaleType = iota + 1
	ScaleF16
	ScaleBF16
)

// String is the name that safetensors files use.
func (t ScaleType) String() string {
	if t.Bytes() == 0 {
		return "ScaleType(" + strconv.Itoa(int(t)) + ")"
	}
	return [...]string{ScaleF32: "F32", ScaleF16: "F16", ScaleBF16: "BF16"}[t]
}

// Bytes is the length of a number, 0 for what is no type.
func (t ScaleType) Bytes() int {
	switch t {
	case ScaleF32:
		return 4
	case ScaleF16, ScaleBF16:
		return 2
	}
	return 0
}

// at is number i of a tensor.
func (t ScaleType) at(data []byte, i int) float32 {
	switch t {
	case ScaleF16:
		return half.Float16(binary.LittleEndian.Uint16(data[2*i:])).Float32()
	case ScaleBF16:
		return half.BFloat16(binary.LittleEndian.Uint16(data[2*i:])).Float32()
	}
	return math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
}

// put rounds a number, stores it as number i of a tensor, and gives what is stored.
func (t ScaleType) put(data []byte, i int, v float32) float32 {
	switch t {
	case ScaleF16:
		binary.LittleEndian.PutUint16(data[2*i:], uint16(half.Float16FromFloat32(v)))
	case ScaleBF16:
		binary.LittleEndian.PutUint16(data[2*i:], uint16(half.BFloat16FromFloat32(v)))
	default:
		binary.LittleEndian.PutUint32(data[4*i:], math.Float32bits(v))
	}
	return t.at(data, i)
}

// max is the greatest number.
func (t ScaleType) max() float64 {
	return [...]float64{ScaleF32: math.MaxFloat32, ScaleF16: half.MaxFloat16, ScaleBF16: half.MaxBFloat16}[t]
}

// AffineFormat is one of the forms of MLX's affine format.
type AffineFormat struct {
	Bits      int       // of a code: 4, 6 or 8
	GroupSize int       // columns that share a scale and a bias: 32, 64, 128, 256 or 512
	Scale     ScaleType // of scales and biases
}

// String names the format, as in "4-bit codes in groups of 64, BF16".
func (f AffineFormat) String() string {
	return fmt.Sprintf("%d-bit codes in groups of %d, %v", f.Bits, f.GroupSize, f.Scale)
}

// Check says why a matrix of that shape has no such form, or nil.
func (f AffineFormat) Check(rows, cols int) error { return f.check("AffineFormat.Check", rows, cols) }

func (f AffineFormat) check(fn string, rows, cols int) error {
	switch {
	case f.Bits != 4 && f.Bits != 6 && f.Bits != 8:
		return shape(fn, "bits", strconv.Itoa(f.Bits), "4, 6 or 8")
	case f.Scale.Bytes() == 0:
		return shape(fn, "scale type", f.Scale.String(), "F32, F16 or BF16")
	}
	return checkQ4MLX(fn, rows, cols, f.GroupSize)
}

// Sizes are the lengths in bytes of the codes, and of the scales and likewise the biases, of a matrix of that shape.
func (f AffineFormat) Sizes(rows, cols int) (weight, scales int, err error) {
	return f.sizes("AffineFormat.Sizes", rows, cols)
}

func (f AffineFormat) sizes(fn string, rows, cols int) (weight, scales int, err error) {
	if err := f.check(fn, rows, cols); err != nil {
		return 0, 0, err
	}
	return rows * (cols / 8 * f.Bits), rows * (cols / f.GroupSize * f.Scale.Bytes()), nil
}

// Affine is a matrix of weights in MLX's affine format, as the three tensors in which MLX stores it: the little-endian bytes of
// a safetensors file. See the package documentation for the layout.
type Affine struct {
	Format     AffineFormat
	Rows, Cols int
	Weight     []byte // NAME.weight, U32 [Rows, Cols*Bits/32]
	Scales     []byte // NAME.scales, [Rows, Cols/GroupSize]
	Biases     []byte // NAME.biases, as the scales
}

// Validate says why a is not a matrix in its format, or nil: shape, lengths, and scales and biases that are finite.
func (a Affine) Validate() error { return a.validate("Affine.Validate") }

func (a Affine) validate(fn string) error {
	if err := a.lengths(fn); err != nil {
		return err
	}
	for _, part := range []struct {
		name string
		data []byte
	}{{"scales", a.Scales}, {"biases", a.Biases}} {
		for i := range len(part.data) / a.Format.Scale.Bytes() {
			if v := a.Format.Scale.at(part.data, i); v-v != 0 {
				return &Error{Func: fn, Arg: part.name, Have: fmt.Sprintf("%v at index %d", v, i), Need: "finite numbers", Err: ErrValue}
			}
		}
	}
	return nil
}

func (a Affine) lengths(fn string) error {
	weight, scales, err := a.Format.sizes(fn, a.Rows, a.Cols)
	if err != nil {
		return err
	}
	for _, part := range []struct {
		name       string
		have, need int
	}{{"weight", len(a.Weight), weight}, {"scales", len(a.Scales), scales}, {"biases", len(a.Biases), scales}} {
		if part.have != part.need {
			return shape(fn, part.name, fmt.Sprintf("%d bytes", part.have), fmt.Sprintf("%d for %d * %d weights, %v", part.need, a.Rows, a.Cols, a.Format))
		}
	}
	return nil
}

// newAffine has the shape and zeros.
func newAffine(fn string, f AffineFormat, rows, cols int) (Affine, error) {
	weight, scales, err := f.sizes(fn, rows, cols)
	if err != nil {
		return Affine{}, err
	}
	return Affine{f, rows, cols, make([]byte, weight), make([]byte, scales), make([]byte, scales)}, nil
}

// RowRange is rows i up to j, in the same memory.
func (a Affine) RowRange(i, j int) (Affine, error) {
	const fn = "Affine.RowRange"
	if err := a.lengths(fn); err != nil {
		return Affine{}, err
	}
	if i < 0 || j <= i || j > a.Rows {
		return Affine{}, shape(fn, fmt.Sprintf("rows [%d:%d]", i, j), fmt.Sprintf("%d rows", a.Rows), "0 <= i < j <= rows")
	}
	w, s := len(a.Weight)/a.Rows, len(a.Scales)/a.Rows
	return Affine{a.Format, j - i, a.Cols, a.Weight[i*w : j*w : j*w], a.Scales[i*s : j*s : j*s], a.Biases[i*s : j*s : j*s]}, nil
}

// Dequantize writes the weights, scale * code + bias, to dst, row-major. Each is rounded once, to float32.
func (a Affine) Dequantize(dst []float32) error {
	const fn = "Affine.Dequantize"
	if err := a.lengths(fn); err != nil {
		return err
	}
	if len(dst)%a.Cols != 0 || len(dst)/a.Cols != a.Rows {
		return shape(fn, "dst", fmt.Sprintf("%d numbers", len(dst)), fmt.Sprintf("%d * %d", a.Rows, a.Cols))
	}
	codes := make([]byte, a.Format.GroupSize)
	for g := range len(dst) / a.Format.GroupSize {
		scale, bias := a.Format.Scale.at(a.Scales, g), a.Format.Scale.at(a.Biases, g)
		a.group(codes, g)
		for i, c := range codes {
			dst[g*a.Format.GroupSize+i] = affineWeight(scale, c, bias)
		}
	}
	return nil
}

// group unpacks the codes of a group.
func (a Affine) group(dst []byte, g int) {
	n := a.Format.GroupSize / 8 * a.Format.Bits
	unpackBits(dst, a.Weight[g*n:(g+1)*n], a.Format.Bits)
}

// affineWeight is scale * code + bias, rounded once to float32: what fma gives.
func affineWeight(scale float32, code byte, bias float32) float32 {
	p, b := float64(scale)*float64(code), float64(bias) // the product of 24 by 8 significant bits is exact
	s := p + b
	// What the sum lost makes its last bit one, so that rounding it again goes to the right side.
	v := s - p
	if lost := (p - (s - v)) + (b - v); lost != 0 && lost-lost == 0 {
		if bits := math.Float64bits(s); bits&1 == 0 {
			if (lost > 0) == (s > 0) {
				bits++
			} else {
				bits--
			}
			s = math.Float64frombits(bits)
		}
	}
	return float32(s)
}

// PackBits packs one code of 4, 6 or 8 bits per byte into a stream of bits, the lowest first: code i is in bits
// i*bits to i*bits + bits - 1, bit b of the stream in bit b%8 of byte b/8. The codes are a whole number of four.
func PackBits(dst, codes []byte, bits int) error {
	const fn = "PackBits"
	if err := checkBits(fn, len(dst), len(codes), bits); err != nil {
		return err
	}
	for i, c := range codes {
		if int(c)>>bits != 0 {
			return &Error{Func: fn, Arg: "codes", Have: fmt.Sprintf("%d at index %d", c, i), Need: fmt.Sprintf("0 to %d", 1<<bits-1), Err: ErrValue}
		}
	}
	packBits(dst, codes, bits)
	return nil
}

// UnpackBits is the inverse of PackBits.
func UnpackBits(dst, packed []byte, bits int) error {
	if err := checkBits("UnpackBits", len(packed), len(dst), bits); err != nil {
		return err
	}
	unpackBits(dst, packed, bits)
	return nil
}

func checkBits(fn string, packed, codes, bits int) error {
	switch {
	case bits != 4 && bits != 6 && bits != 8:
		return shape(fn, "bits", strconv.Itoa(bits), "4, 6 or 8")
	case codes%4 != 0 || packed != codes/4*bits/2:
		return shape(fn, "packed", fmt.Sprintf("%d bytes for %d codes of %d bits", packed, codes, bits), "a whole number of four codes, without a bit too many")
	}
	return nil
}

func packBits(dst, codes []byte, bits int) {
	switch bits {
	case 4:
		for i := range dst {
			dst[i] = codes[2*i] | codes[2*i+1]<<4
		}
	case 6:
		for i := 0; 4*i < len(codes); i++ {
			c, d := codes[4*i:4*i+4], dst[3*i:3*i+3]
			d[0], d[1], d[2] = c[0]|c[1]<<6, c[1]>>2|c[2]<<4, c[2]>>4|c[3]<<2
		}
	default:
		copy(dst, codes)
	}
}

func unpackBits(dst, packed []byte, bits int) {
	switch bits {
	case 4:
		for i, b := range packed {
			dst[2*i], dst[2*i+1] = b&15, b>>4
		}
	case 6:
		for i := 0; 4*i < len(dst); i++ {
			p, d := packed[3*i:3*i+3], dst[4*i:4*i+4]
			d[0], d[1], d[2], d[3] = p[0]&63, p[0]>>6|p[1]&15<<2, p[1]>>4|p[2]&3<<4, p[2]>>2
		}
	default:
		copy(dst, packed)
	}
}

// Q4MLX converts a matrix of 4-bit codes with scales and biases in bfloat16 to the form that interleaves them, in new memory.
func (a Affine) Q4MLX() (Q4MLX, error) {
	const fn = "Affine.Q4MLX"
	if err := a.validate(fn); err != nil {
		return Q4MLX{}, err
	}
	if a.Format.Bits != 4 || a.Format.Scale != ScaleBF16 {
		return Q4MLX{}, shape(fn, "format", a.Format.String(), "4-bit codes with scales in BF16")
	}
	q := newQ4MLX(a.Rows, a.Cols, a.Format.GroupSize)
	for i := range q.Packed {
		q.Packed[i] = binary.LittleEndian.Uint32(a.Weight[4*i:])
	}
	for i := range len(q.ScalesBiases) / 2 {
		q.ScalesBiases[2*i] = half.BFloat16(binary.LittleEndian.Uint16(a.Scales[2*i:]))
		q.ScalesBiases[2*i+1] = half.BFloat16(binary.LittleEndian.Uint16(a.Biases[2*i:]))
	}
	return q, nil
}

// Affine converts back to the tensors that MLX stores, in new memory.
func (q Q4MLX) Affine() (Affine, error) {
	const fn = "Q4MLX.Affine"
	if err := q.lengths(fn); err != nil {
		return Affine{}, err
	}
	a, err := newAffine(fn, AffineFormat{4, q.GroupSize, ScaleBF16}, q.Rows, q.Cols)
	if err != nil {
		return Affine{}, err
	}
	for i, w := range q.Packed {
		binary.LittleEndian.PutUint32(a.Weight[4*i:], w)
	}
	for i := range len(q.ScalesBiases) / 2 {
		binary.LittleEndian.PutUint16(a.Scales[2*i:], uint16(q.ScalesBiases[2*i]))
		binary.LittleEndian.PutUint16(a.Biases[2*i:], uint16(q.ScalesBiases[2*i+1]))
	}
	return a, nil
}
