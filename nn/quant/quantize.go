package quant

import (
	"fmt"
	"math"

	"github.com/ingot-metal/ingot/runtime/half"
)

const (
	q4Bins = 15
	// q4LeastScale keeps constant groups from dividing by zero; MLX's number.
	q4LeastScale = 1e-7
)

// QuantizeQ4MLX quantises a row-major matrix by MLX's affine rule (mlx/backend/cpu/quantized.cpp, quantize), in float32:
//
//	scale = max((max - min) / 15, 1e-7), negative unless |min| > |max|
//	edge  = min if |min| > |max|, else max
//	q0    = round(edge / scale)
//	scale = edge / q0 and bias = edge, or bias = 0 if q0 is 0
//	scale, bias = bfloat16(scale), bfloat16(bias)
//	code  = round((w - bias) / scale), limited to 0 .. 15
//
// where round goes to the nearest integer, ties to even. So the end of the range with the greater magnitude becomes the
// bias, and zero is one of the values, up to rounding.
//
// The code is the best one for the scale and bias that are stored. MLX's own kernels compute it before they round these,
// which makes about one code in 400 another, by one; its Metal kernel moreover rounds ties away from zero and starts its
// maximum at 0.
//
// Weights that are not finite, and groups whose scale or bias exceeds bfloat16, are refused. A weight is off by half a
// step, |scale| / 2, at most, except at the ends of the range: there rounding the bias costs up to |bias| / 512, and the
// far end can be half a step or so out of reach, since edge / q0 may be a smaller step than (max - min) / 15.
func QuantizeQ4MLX(w []float32, rows, cols, groupSize int) (Q4MLX, error) {
	const fn = "QuantizeQ4MLX"
	if err := checkQ4MLX(fn, rows, cols, groupSize); err != nil {
		return Q4MLX{}, err
	}
	if rows > math.MaxInt/cols || len(w) != rows*cols {
		return Q4MLX{}, shape(fn, "w", fmt.Sprintf("%d numbers", len(w)), fmt.Sprintf("%d * %d", rows, cols))
	}
	q := newQ4MLX(rows, cols, groupSize)
	for g := range len(w) / groupSize {
		group := w[g*groupSize : (g+1)*groupSize]
		scale, bias, err := q4Affine(fn, group, g*groupSize)
		if err != nil {
			return Q4MLX{}, err
		}
		sb := q.ScalesBiases[2*g : 2*g+2]
		sb[0], sb[1] = half.BFloat16FromFloat32(scale), half.BFloat16FromFloat32(bias)
		if sb[0].IsInf(0) || sb[1].IsInf(0) {
			return Q4MLX{}, tooWide(fn, g*groupSize)
		}
		scale, bias = sb[0].Float32(), sb[1].Float32()
		words := q.Packed[g*groupSize/CodesPerWord:]
		for i, v := range group {
			code := roundEven((v - bias) / scale)
			code = min(max(code, 0), q4Bins)
			words[i/CodesPerWord] |= uint32(code) << (4 * (i % CodesPerWord))
		}
	}
	return q, nil
}

// q4Affine is the scale and the bias of a group that starts at index at.
func q4Affine(fn string, group []float32, at int) (scale, bias float32, err error) {
	low, high := float32(math.Inf(1)), float32(math.Inf(-1))
	for i, v := range group {
		if v-v != 0 { // NaN or infinite
			return 0, 0, &Error{Func: fn, Arg: "w", Have: fmt.Sprintf("%v at index %d", v, at+i), Need: "finite numbers", Err: ErrValue}
		}
		low, high = min(low, v), max(high, v)
	}
	edge := high
	scale = max((high-low)/q4Bins, q4LeastScale)
	if scale-scale != 0 {
		return 0, 0, tooWide(fn, at)
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

func tooWide(fn string, at int) error {
	return &Error{Func: fn, Arg: "w", Have: fmt.Sprintf("a group at index %d whose scale or bias is infinite in bfloat16", at),
		Need: fmt.Sprintf("magnitudes up to %g", float64(half.MaxBFloat16)), Err: ErrValue}
}

func roundEven(x float32) float32 { return float32(math.RoundToEven(float64(x))) }

func abs32(x float32) float32 { return math.Float32frombits(math.Float32bits(x) &^ (1 << 31)) }
