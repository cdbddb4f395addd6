package quant

import (
	"fmt"
	"math"
	"sort"
)

//go:generate go run ./internal/gencodebook

// tqhbLeastNorm is the norm up to which a vector counts as zero.
const tqhbLeastNorm = 1e-10

// TQHB is a codec for the vectors of a KV cache, one byte a number: TurboQuant (Zandieh et al., 2025, "TurboQuant: Online Vector
// Quantization with Near-optimal Distortion Rate") in its higher-bit form. A vector x of Dim numbers is rotated,
//
//	e = H (s * x) / sqrt(Dim)
//
// with fixed signs s and the Walsh-Hadamard matrix H, which makes its numbers close to normally distributed whatever x is. They are
// divided by the vector's size and each becomes the code of the nearest level of a codebook, the quantiser of least mean squared error for
// the standard normal distribution; codes are numbered from the lowest level up:
//
//	Dim up to 256   norm = |e|                          v = e sqrt(Dim) / norm     e' = level norm / sqrt(Dim)
//	Dim 512         norm = |e_b| / 16 for each half b   v = e Factor / norm        e' = level norm / Factor
//
// For normally distributed numbers the mean squared error, over the mean square, is 2.50e-3, 6.44e-4 and 4.12e-5 for 5, 6 and 8 bits.
//
// The signs and codebooks are this package's own: caches of other programs have others. Attention works on rotated vectors as they are,
// since a rotation keeps dot products: rotate the query, and undo the rotation of the result.
type TQHB struct {
	Dim    int     // 64, 128, 256 or 512
	Bits   int     // 5, 6 or 8
	Factor float32 // of Dim 512, above 0; 0 stands for 1
}

// Validate says why there is no such codec, or nil.
func (c TQHB) Validate() error { return c.validate("TQHB.Validate") }

func (c TQHB) validate(fn string) error {
	switch {
	case c.Dim != 64 && c.Dim != 128 && c.Dim != 256 && c.Dim != 512:
		return shape(fn, "dim", fmt.Sprint(c.Dim), "64, 128, 256 or 512")
	case c.Levels() == nil:
		return &Error{Func: fn, Arg: "bits", Have: fmt.Sprint(c.Bits), Need: "5, 6 or 8", Err: ErrValue}
	case !(c.Factor >= 0) || math.IsInf(float64(c.Factor), 1):
		return &Error{Func: fn, Arg: "factor", Have: fmt.Sprint(c.Factor), Need: "a finite number above 0, or 0 for 1", Err: ErrValue}
	}
	return nil
}

// Levels is the codebook, the value of each code, in increasing order; nil if Bits is not 5, 6 or 8. It must not be changed.
func (c TQHB) Levels() []float32 {
	switch c.Bits {
	case 5:
		return tqhbLevels5[:]
	case 6:
		return tqhbLevels6[:]
	case 8:
		return tqhbLevels8[:]
	}
	return nil
}

// Norms is how many norms a vector has: 2 if Dim is 512, else 1.
func (c TQHB) Norms() int {
	if c.Dim == 512 {
		return 2
	}
	return 1
}

// block is how many numbers share a norm.
func (c TQHB) block() int { return c.Dim / c.Norms() }

// Divisor is what norms are divided by when vectors are decoded: sqrt(Dim), or Factor if Dim is 512.
func (c TQHB) Divisor() float32 {
	switch {
	case c.Dim < 512:
		return float32(math.Sqrt(float64(c.Dim)))
	case c.Factor == 0:
		return 1
	}
	return c.Factor
}

// vectors is how many vectors x has.
func (c TQHB) vectors(fn, arg string, x []float32) (int, error) {
	if err := c.validate(fn); err != nil {
		return 0, err
	}
	if len(x)%c.Dim != 0 {
		return 0, shape(fn, arg, fmt.Sprintf("%d numbers", len(x)), fmt.Sprintf("vectors of %d", c.Dim))
	}
	return len(x) / c.Dim, nil
}

func (c TQHB) lengths(fn string, n int, codes []byte, norms []float32) error {
	if len(codes) != n*c.Dim {
		return shape(fn, "codes", fmt.Sprintf("%d codes", len(codes)), fmt.Sprintf("%d for %d vectors of %d", n*c.Dim, n, c.Dim))
	}
	if len(norms) != n*c.Norms() {
		return shape(fn, "norms", fmt.Sprintf("%d norms", len(norms)), fmt.Sprintf("%d for %d vectors of %d", n*c.Norms(), n, c.Dim))
	}
	return nil
}

// Rotate replaces each vector x of the slice by H (s * x) / sqrt(Dim), in float32: the signs, then sums and differences of numbers
// 1, 2, 4, … apart, then the factor.
func (c TQHB) Rotate(x []float32) error { return c.each("TQHB.Rotate", x, flipSigns, hadamard) }

// Unrotate is the inverse of Rotate, up to rounding: s * (H x) / sqrt(Dim).
func (c TQHB) Unrotate(x []float32) error { return c.each("TQHB.Unrotate", x, hadamard, flipSigns) }

// each applies two steps to each vector of x.
func (c TQHB) each(fn string, x []float32, one, two func(v []float32)) error {
	n, err := c.vectors(fn, "x", x)
	if err != nil {
		return err
	}
	for i := range n {
		v := x[i*c.Dim : (i+1)*c.Dim]
		one(v)
		two(v)
	}
	return nil
}

func flipSigns(v []float32) {
	for i := range v {
		v[i] = math.Float32frombits(math.Float32bits(v[i]) ^ tqhbSigns[i/32]>>(i%32)<<31)
	}
}

// hadamard is the fast Walsh-Hadamard transform, over the square root of the length.
func hadamard(v []float32) {
	for h := 1; h < len(v); h *= 2 {
		for i := 0; i < len(v); i += 2 * h {
			for j := i; j < i+h; j++ {
				v[j], v[j+h] = v[j]+v[j+h], v[j]-v[j+h]
			}
		}
	}
	f := float32(1 / math.Sqrt(float64(len(v))))
	for i := range v {
		v[i] *= f
	}
}

// Encode rotates the vectors of x in place and writes their codes and norms. Norms are summed in float64. A norm of at most 1e-10 is
// stored as it is and its numbers get the code below the middle.
//
// Vectors whose rotation or norm is not finite are refused; codes and norms then hold nothing of use, and x may be rotated in part.
func (c TQHB) Encode(codes []byte, norms, x []float32) error {
	const fn = "TQHB.Encode"
	n, err := c.vectors(fn, "x", x)
	if err != nil {
		return err
	}
	if err := c.lengths(fn, n, codes, norms); err != nil {
		return err
	}
	levels, block := c.Levels(), c.block()
	if err := c.Rotate(x); err != nil {
		return err
	}
	for b := range norms {
		e := x[b*block : (b+1)*block]
		var sum float64
		for i, v := range e {
			if v-v != 0 {
				return &Error{Func: fn, Arg: "x", Have: fmt.Sprintf("a vector at index %d that is not finite when rotated", (b*block+i)/c.Dim*c.Dim),
					Need: "finite numbers", Err: ErrValue}
			}
			sum += float64(v) * float64(v)
		}
		if c.Dim == 512 {
			sum /= float64(block)
		}
		norms[b] = float32(math.Sqrt(sum))
		if math.IsInf(float64(norms[b]), 1) {
			return &Error{Func: fn, Arg: "x", Have: fmt.Sprintf("a vector at index %d whose norm is infinite", b*block/c.Dim*c.Dim), Need: "smaller numbers", Err: ErrValue}
		}
		var scale float32
		if norms[b] > tqhbLeastNorm {
			scale = c.Divisor() / norms[b]
		}
		for i, v := range e {
			codes[b*block+i] = nearestLevel(levels, v*scale)
		}
	}
	return nil
}

// nearestLevel is how many of the middles between levels are below v.
func nearestLevel(levels []float32, v float32) byte {
	return byte(sort.Search(len(levels)-1, func(i int) bool { return !((levels[i]+levels[i+1])/2 < v) }))
}

// Decode writes the vectors to x, still rotated: each number is its code's level times the norm over sqrt(Dim) or Factor, rounded to
// float32 at each of these two steps. Codes beyond the codebook are refused.
func (c TQHB) Decode(x []float32, codes []byte, norms []float32) error {
	const fn = "TQHB.Decode"
	n, err := c.vectors(fn, "x", x)
	if err != nil {
		return err
	}
	if err := c.lengths(fn, n, codes, norms); err != nil {
		return err
	}
	levels, block := c.Levels(), c.block()
	for i, code := range codes {
		if int(code) >= len(levels) {
			return &Error{Func: fn, Arg: "codes", Have: fmt.Sprintf("%d at index %d", code, i), Need: fmt.Sprintf("0 to %d", len(levels)-1), Err: ErrValue}
		}
	}
	for b, norm := range norms {
		scale := norm / c.Divisor()
		for i := b * block; i < (b+1)*block; i++ {
			x[i] = levels[codes[i]] * scale
		}
	}
	return nil
}
