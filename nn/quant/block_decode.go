package quant

import (
	"encoding/binary"

	"github.com/ingot-metal/ingot/runtime/half"
)

// iq4NL are the values of IQ4_NL's codes.
var iq4NL = [16]int8{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}

func getHalf(b []byte) float32 { return half.Float16(binary.LittleEndian.Uint16(b)).Float32() }

func decodeQ4_0(dst []float32, b []byte) {
	d := getHalf(b)
	for i, c := range b[2:18] {
		dst[i] = d * float32(int(c&15)-8)
		dst[i+16] = d * float32(int(c>>4)-8)
	}
}

func decodeQ5_0(dst []float32, b []byte) {
	d, high := getHalf(b), binary.LittleEndian.Uint32(b[2:])
	for i, c := range b[6:22] {
		dst[i] = d * float32(int(c&15)+int(high>>i&1)<<4-16)
		dst[i+16] = d * float32(int(c>>4)+int(high>>(i+16)&1)<<4-16)
	}
}

func decodeQ8_0(dst []float32, b []byte) {
	d := getHalf(b)
	for i, c := range b[2:34] {
		dst[i] = d * float32(int8(c))
	}
}

func decodeIQ4NL(dst []float32, b []byte) {
	d := getHalf(b)
	for i, c := range b[2:18] {
		dst[i] = d * float32(iq4NL[c&15])
		dst[i+16] = d * float32(iq4NL[c>>4])
	}
}

// kScale is scale and offset j of the 12 bytes that hold eight of each, in 6 bits. The lower four of each are the low
// bits of bytes j and j+4; the upper four have their low four bits in byte j+4, and the other two on top of bytes j-4
// and j.
func kScale(s []byte, j int) (scale, offset int) {
	if j < 4 {
		return int(s[j] & 63), int(s[j+4] & 63)
	}
	return int(s[j+4]&15 | s[j-4]>>6<<4), int(s[j+4]>>4 | s[j]>>6<<4)
}

// decodeK decodes Q4_K and Q5_K, which has a fifth bit of each code in high.
//
// Scale times code and offset are exact products, so that only their difference is rounded.
func decodeK(dst []float32, b, high, codes []byte) {
	d, dmin := getHalf(b), getHalf(b[2:])
	for j := range 8 {
		scale, offset := kScale(b[4:16], j)
		ds, m := d*float32(scale), dmin*float32(offset)
		run := codes[j/2*32 : j/2*32+32]
		for i, c := range run {
			q := c >> (j % 2 * 4) & 15
			if high != nil {
				q |= high[i] >> j & 1 << 4
			}
			dst[j*32+i] = ds*float32(q) - m
		}
	}
}

func decodeQ4K(dst []float32, b []byte) { decodeK(dst, b, nil, b[16:144]) }
func decodeQ5K(dst []float32, b []byte) { decodeK(dst, b, b[16:48], b[48:176]) }

// decodeQ6K: each half of a block has four runs of 32 weights; their low four bits are in 64 bytes, their high two in 32.
func decodeQ6K(dst []float32, b []byte) {
	low, high, scales, d := b[:128], b[128:192], b[192:208], getHalf(b[208:])
	for i := range dst {
		h, run, l := i/128, i/32%4, i%32
		q := low[h*64+run%2*32+l]>>(run/2*4)&15 | high[h*32+l]>>(run*2)&3<<4
		dst[i] = d * float32(int8(scales[i/16])) * float32(int(q)-32)
	}
}
