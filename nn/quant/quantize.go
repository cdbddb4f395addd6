package quant

import (
	"fmt"
	"math"
)

// affineLeastScale keeps constant groups from dividing by zero; MLX's number.
const affineLeastScale = 1e-7

// QuantizeAffine quantises a row-major matrix by MLX's affine rule (mlx/backend/cpu/quantized.cpp, quantize), in float32, with
// n = 2^Bits - 1:
//
//	scale = max((max - min) / n, 1e-7), negative unless |min| > |max|
//	edge  = min if |min| > |max|, else max
//	q0    = round(edge / scale)
//	scale = edge / q0 and bias = edge, or bias = 0 if q0 is 0
//	scale, bias = scale, bias in the format's type
//	code  = round((w - bias) / scale), limited to 0 .. n
//
// where round goes to the nearest integer, ties to even. So the end of the range with the greater magnitude becomes the
// bias, and zero is one of the values, up to rounding.
//
// The code is the best one for the scale and bias that are stored. MLX's own kernels compute it before they round these,
// which makes about one code of 4 bits in 400 another, by one; its Metal kernel moreover rounds ties away from zero and starts its
// maximum at 0.
//
// Weights that are not finite, and groups whose scale or bias exceeds the type, are refused. A weight is off by half a
// step, |scale| / 2, at most, except at the ends of the range: there rounding the bias costs up to |bias| / 512 in bfloat16, and the
// far end can be half a step or so out of reach, since edge / q0 may be a smaller step than (max - min) / n.
func QuantizeAffine(w []float32, rows, cols int, f AffineFormat) (Affine, error) {
	return quantizeAffine("QuantizeAffine", w, rows, cols, f)
}

// QuantizeQ4MLX is [QuantizeAffine] with 4 bits and bfloat16.
func QuantizeQ4MLX(w []float32, rows, cols, groupSize int) (Q4MLX, error) {
	a, err := quantizeAffine("QuantizeQ4MLX", w, rows, cols, AffineFormat{4, groupSize, ScaleBF16})
	if err != nil {
		return Q4MLX{}, err
	}
	return a.Q4MLX()
}

func quantizeAffine(fn string, w []float32, rows, cols int, f AffineFormat) (Affine, error) {
	if err := f.check(fn, rows, cols); err != nil {
		return Affine{}, err
	}
	if len(w) != rows*cols {
		return Affine{}, shape(fn, "w", fmt.Sprintf("%d numbers", len(w)), fmt.Sprintf("%d * %d", rows, cols))
	}
	a, err := newAffine(fn, f, rows, cols)
	if err != nil {
		return Affine{}, err
	}
	bins := float32(int(1)<<f.Bits - 1)
	codes, packed := make([]byte, f.GroupSize), f.GroupSize/8*f.Bits
	for g := range len(w) / f.GroupSize {
		group := w[g*f.GroupSize : (g+1)*f.GroupSize]
		scale, bias, err := affineGroup(fn, group, g*f.GroupSize, bins, f.Scale)
		if err != nil {
			return Affine{}, err
		}
		scale, bias = f.Scale.put(a.Scales, g, scale), f.Scale.put(a.Biases, g, bias)
		if scale-scale != 0 || bias-bias != 0 {
			return Affine{}, tooWide(fn, g*f.GroupSize, f.Scale)
		}
		for i, v := range group {
			codes[i] = 0
			if scale != 0 {
				codes[i] = byte(min(max(roundEven((v-bias)/scale), 0), bins))
			}
		}
		packBits(a.Weight[g*packed:(g+1)*packed], codes, f.Bits)
	}
	return a, nil
}

// affineGroup is the scale and the bias of a group that starts at index at.
func affineGroup(fn string, group []float32, at int, bins float32, t ScaleType) (scale, bias float32, err error) {
	low, high := float32(math.Inf(1)), float32(math.Inf(-1))
	for i, v := range group {
		if v-v != 0 { // NaN or infinite
			return 0, 0, &Error{Func: fn, Arg: "w", Have: fmt.Sprintf("%v at index %d", v, at+i), Need: "finite numbers", Err: ErrValue}
		}
		low, high = min(low, v), max(high, v)
	}
	edge := high
	scale = max((high-low)/bins, affineLeastScale)
	if scale-scale != 0 {
		return 0, 0, tooWide(fn, at, t)
	}
	if abs32(low) > abs32(high) {
		edge = low
	} else {
		scale = -scale
	}
	if q0 := roundEven(edge / scale); q0 != 0 {
		return edge / q0, edge, nil
	}
	return scale, 0, nil
}

func tooWide(fn string, at int, t ScaleType) error {
	return &Error{Func: fn, Arg: "w", Have: fmt.Sprintf("a group at index %d whose scale or bias is infinite in %v", at, t),
		Need: fmt.Sprintf("magnitudes up to %g", t.max()), Err: ErrValue}
}

func roundEven(x float32) float32 { return float32(math.RoundToEven(float64(x))) }

func abs32(x float32) float32 { return math.Float32frombits(math.Float32bits(x) &^ (1 << 31)) }
