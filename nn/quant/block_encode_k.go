package quant

import "math"

// fitAffine is a scale and an offset, both at least 0, with a small sum of squares of w - (scale code - offset) for codes 0 .. bins.
func fitAffine(w []float32, bins int) (scale, offset float64) {
	low, high := 0.0, 0.0
	for _, v := range w {
		low, high = min(low, float64(v)), max(high, float64(v))
	}
	if low == high {
		return 0, 0
	}
	best := math.Inf(1)
	try := func(s, o float64) {
		if !(s > 0) || o < 0 {
			return
		}
		var sum float64
		for _, v := range w {
			e := float64(v) + o - s*float64(nearestCode(v+float32(o), s, 0, bins))
			sum += e * e
		}
		if sum < best {
			best, scale, offset = sum, s, o
		}
	}
	for j := -searchSteps; j <= searchSteps; j++ {
		step := (high - low) / (float64(bins) + float64(j)/searchSteps)
		try(step, -low)
		// The line that fits the codes of this step with the least squares.
		var n, c, cc, x, cx float64
		for _, v := range w {
			q := min(max(math.RoundToEven((float64(v)-low)/step), 0), float64(bins))
			n, c, cc, x, cx = n+1, c+q, cc+q*q, x+float64(v), cx+q*float64(v)
		}
		if det := n*cc - c*c; det > 0 {
			s := (n*cx - c*x) / det
			try(s, (s*c-x)/n)
		}
		if cc > 0 {
			try(cx/cc, 0)
		}
	}
	return scale, offset
}

// putKScale stores scale and offset j, of 6 bits each, into 12 bytes that are zero at first: the inverse of kScale.
func putKScale(s []byte, j, scale, offset int) {
	if j < 4 {
		s[j] |= byte(scale)
		s[j+4] |= byte(offset)
		return
	}
	s[j+4] |= byte(scale&15) | byte(offset&15)<<4
	s[j-4] |= byte(scale>>4) << 6
	s[j] |= byte(offset>>4) << 6
}

// encodeK is the inverse of decodeK.
func encodeK(b, high, codes []byte, w []float32, bins int) bool {
	clear(b)
	var scales, offsets [8]float64
	var most, mostOffset float64
	for j := range scales {
		scales[j], offsets[j] = fitAffine(w[j*32:j*32+32], bins)
		most, mostOffset = max(most, scales[j]), max(mostOffset, offsets[j])
	}
	d, ok := putHalf(b, most/63)
	dmin, okMin := putHalf(b[2:], mostOffset/63)
	for j := range scales {
		scale, offset := nearestCode(float32(scales[j]), d, 0, 63), nearestCode(float32(offsets[j]), dmin, 0, 63)
		putKScale(b[4:16], j, scale, offset)
		ds, m := d*float64(scale), dmin*float64(offset)
		for i, v := range w[j*32 : j*32+32] {
			q := nearestCode(float32(float64(v)+m), ds, 0, bins)
			codes[j/2*32+i] |= byte(q&15) << (j % 2 * 4)
			if high != nil {
				high[i] |= byte(q>>4) << j
			}
		}
	}
	return ok && okMin
}

func encodeQ4K(b []byte, w []float32) bool { return encodeK(b, nil, b[16:144], w, 15) }
func encodeQ5K(b []byte, w []float32) bool { return encodeK(b, b[16:48], b[48:176], w, 31) }

// encodeQ6K is the inverse of decodeQ6K.
func encodeQ6K(b []byte, w []float32) bool {
	clear(b)
	value := func(x float64) float64 { return min(max(math.RoundToEven(x), -32), 31) }
	var scales [16]float64
	var most float64
	for j := range scales {
		scales[j] = fitScale(w[j*16:j*16+16], -32, 2, value)
		if math.Abs(scales[j]) > math.Abs(most) {
			most = scales[j]
		}
	}
	d, ok := putHalf(b[208:], most/-128)
	for i, v := range w {
		scale := nearestCode(float32(scales[i/16]), d, -128, 127)
		b[192+i/16] = byte(int8(scale))
		q := byte(nearestCode(v, d*float64(scale), -32, 31) + 32)
		h, run, l := i/128, i/32%4, i%32
		b[h*64+run%2*32+l] |= q & 15 << (run / 2 * 4)
		b[128+h*32+l] |= q >> 4 << (run * 2)
	}
	return ok
}
