package quant

import (
	"encoding/binary"
	"math"

	"github.com/ingot-metal/ingot/runtime/half"
)

// putHalf stores x as float16 and gives the number that is stored.
func putHalf(b []byte, x float64) (stored float64, ok bool) {
	h := half.Float16FromFloat32(float32(x))
	binary.LittleEndian.PutUint16(b, uint16(h))
	return float64(h.Float32()), !h.IsInf(0)
}

// nearestCode is round(w / d), limited to low .. high; the code nearest to zero if d is zero.
func nearestCode(w float32, d float64, low, high int) int {
	if d == 0 {
		return min(max(0, low), high)
	}
	return int(min(max(math.RoundToEven(float64(w)/d), float64(low)), float64(high)))
}

// extreme is the weight of the greatest magnitude, with its sign.
func extreme(w []float32) float64 {
	var m float32
	for _, v := range w {
		if abs32(v) > abs32(m) {
			m = v
		}
	}
	return float64(m)
}

func encodeQ4_0(b []byte, w []float32) bool {
	d, ok := putHalf(b, extreme(w)/-8)
	for i := range 16 {
		b[2+i] = byte(nearestCode(w[i], d, -8, 7)+8) | byte(nearestCode(w[i+16], d, -8, 7)+8)<<4
	}
	return ok
}

func encodeQ5_0(b []byte, w []float32) bool {
	d, ok := putHalf(b, extreme(w)/-16)
	var high uint32
	for i := range 16 {
		x, y := nearestCode(w[i], d, -16, 15)+16, nearestCode(w[i+16], d, -16, 15)+16
		b[6+i] = byte(x&15) | byte(y&15)<<4
		high |= uint32(x>>4)<<i | uint32(y>>4)<<(i+16)
	}
	binary.LittleEndian.PutUint32(b[2:], high)
	return ok
}

func encodeQ8_0(b []byte, w []float32) bool {
	d, ok := putHalf(b, math.Abs(extreme(w))/127)
	for i, v := range w {
		b[2+i] = byte(int8(nearestCode(v, d, -127, 127)))
	}
	return ok
}

// nearestIQ4 is the code whose value is nearest to x.
func nearestIQ4(x float64) int {
	best := 0
	for c, v := range iq4NL {
		if math.Abs(x-float64(v)) < math.Abs(x-float64(iq4NL[best])) {
			best = c
		}
	}
	return best
}

func encodeIQ4NL(b []byte, w []float32) bool {
	value := func(x float64) float64 { return float64(iq4NL[nearestIQ4(x)]) }
	d, ok := putHalf(b, fitScale(w, float64(iq4NL[0]), 4, value))
	code := func(v float32) byte {
		if d == 0 {
			return byte(nearestIQ4(0))
		}
		return byte(nearestIQ4(float64(v) / d))
	}
	for i := range 16 {
		b[2+i] = code(w[i]) | code(w[i+16])<<4
	}
	return ok
}

// searchSteps is how many scales are tried on each side of the first.
const searchSteps = 8

// fitScale is a scale d with a small sum of squares of w - d value(w/d): the best of those that fit, in the sense of least squares, the codes
// one gets when the weight of the greatest magnitude is worth end, end plus or minus step/8, and so on.
func fitScale(w []float32, end, step float64, value func(x float64) float64) float64 {
	m := extreme(w)
	if m == 0 {
		return 0
	}
	best, bestGain := m/end, math.Inf(-1)
	for j := -searchSteps; j <= searchSteps; j++ {
		inverse := (end + step*float64(j)/searchSteps) / m
		var xy, yy float64
		for _, x := range w {
			y := value(float64(x) * inverse)
			xy += float64(x) * y
			yy += y * y
		}
		// The squared error is the sum of w^2 less xy^2/yy.
		if yy > 0 && xy*xy/yy > bestGain {
			best, bestGain = xy/yy, xy*xy/yy
		}
	}
	return best
}
