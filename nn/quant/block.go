package quant

import (
	"fmt"
	"math"
	"strconv"
)

// BlockFormat is a block format of GGUF files, by the name that ggml gives it. A row of a matrix is a run of blocks, each of
// a fixed number of weights in a fixed number of bytes, little-endian; see the package documentation for what is in them.
type BlockFormat uint8

// The block formats.
const (
	BlockQ4_0   BlockFormat = iota + 1 // 4 bits, a scale for 32 weights
	BlockQ5_0                          // 5 bits, a scale for 32 weights
	BlockQ8_0                          // 8 bits, a scale for 32 weights
	BlockIQ4_NL                        // 4 bits, codes of a table that is denser near zero, a scale for 32 weights
	BlockQ4_K                          // 4 bits, scales and offsets of 6 bits for 32 weights, in blocks of 256
	BlockQ5_K                          // 5 bits, scales and offsets of 6 bits for 32 weights, in blocks of 256
	BlockQ6_K                          // 6 bits, scales of 8 bits for 16 weights, in blocks of 256
)

// A blockCodec is what there is to know of a format.
type blockCodec struct {
	name          string
	values, bytes int
	decode        func(dst []float32, b []byte)         // one block
	encode        func(b []byte, w []float32) (ok bool) // one block of finite weights; false if a scale exceeds float16
}

var blockCodecs = [...]blockCodec{
	BlockQ4_0:   {"Q4_0", 32, 18, decodeQ4_0, encodeQ4_0},
	BlockQ5_0:   {"Q5_0", 32, 22, decodeQ5_0, encodeQ5_0},
	BlockQ8_0:   {"Q8_0", 32, 34, decodeQ8_0, encodeQ8_0},
	BlockIQ4_NL: {"IQ4_NL", 32, 18, decodeIQ4NL, encodeIQ4NL},
	BlockQ4_K:   {"Q4_K", 256, 144, decodeQ4K, encodeQ4K},
	BlockQ5_K:   {"Q5_K", 256, 176, decodeQ5K, encodeQ5K},
	BlockQ6_K:   {"Q6_K", 256, 210, decodeQ6K, encodeQ6K},
}

// BlockFormats are all formats.
func BlockFormats() []BlockFormat {
	return []BlockFormat{BlockQ4_0, BlockQ5_0, BlockQ8_0, BlockIQ4_NL, BlockQ4_K, BlockQ5_K, BlockQ6_K}
}

// codec is nil for a number that is no format.
func (f BlockFormat) codec() *blockCodec {
	if f == 0 || int(f) >= len(blockCodecs) {
		return nil
	}
	return &blockCodecs[f]
}

// String is ggml's name, as in "Q4_K".
func (f BlockFormat) String() string {
	if c := f.codec(); c != nil {
		return c.name
	}
	return "BlockFormat(" + strconv.Itoa(int(f)) + ")"
}

// Values is how many weights a block holds: 32 or 256, or 0 for a number that is no format.
func (f BlockFormat) Values() int {
	if c := f.codec(); c != nil {
		return c.values
	}
	return 0
}

// Bytes is how many bytes a block takes, or 0 for a number that is no format.
func (f BlockFormat) Bytes() int {
	if c := f.codec(); c != nil {
		return c.bytes
	}
	return 0
}

// Size is how many bytes n weights take: n / Values blocks. It refuses an n that is no whole number of blocks.
func (f BlockFormat) Size(n int) (int, error) { return f.size("BlockFormat.Size", "n", n) }

func (f BlockFormat) size(fn, arg string, n int) (int, error) {
	c := f.codec()
	switch {
	case c == nil:
		return 0, &Error{Func: fn, Arg: "format", Have: f.String(), Need: "one of BlockFormats", Err: ErrValue}
	case n < 0 || n%c.values != 0:
		return 0, shape(fn, arg, fmt.Sprintf("%d weights", n), fmt.Sprintf("whole blocks of %d in %s", c.values, c.name))
	case n/c.values > math.MaxInt/c.bytes:
		return 0, shape(fn, arg, fmt.Sprintf("%d weights", n), "what fits the address space")
	}
	return n / c.values * c.bytes, nil
}

// Decode writes the weights of the blocks in src to dst. The result is the formula's value, rounded once to float32. It
// allocates nothing.
func (f BlockFormat) Decode(dst []float32, src []byte) error {
	const fn = "BlockFormat.Decode"
	size, err := f.size(fn, "dst", len(dst))
	if err != nil {
		return err
	}
	if len(src) != size {
		return shape(fn, "src", fmt.Sprintf("%d bytes", len(src)), fmt.Sprintf("%d for %d weights in %v", size, len(dst), f))
	}
	c := f.codec()
	for len(dst) > 0 {
		c.decode(dst[:c.values:c.values], src[:c.bytes:c.bytes])
		dst, src = dst[c.values:], src[c.bytes:]
	}
	return nil
}

// Encode quantises src into blocks in dst.
//
// Q8_0 takes max |w| / 127 as the scale. Q4_0 and Q5_0 give the weight of the greatest magnitude the code at the end of
// their range that reaches further. IQ4_NL and the K formats try scales around that, each followed by the scale (and offset) that fit
// the codes with the least squares, and keep those with the least squared error; the K formats then quantise
// scales and offsets. In every format the codes are the nearest ones for the scales that are stored.
//
// Weights that are not finite are refused, and so are blocks whose scale exceeds float16. Scales below its least number become
// zero, and with them the weights. If Encode fails, dst holds nothing of use.
func (f BlockFormat) Encode(dst []byte, src []float32) error {
	const fn = "BlockFormat.Encode"
	size, err := f.size(fn, "src", len(src))
	if err != nil {
		return err
	}
	if len(dst) != size {
		return shape(fn, "dst", fmt.Sprintf("%d bytes", len(dst)), fmt.Sprintf("%d for %d weights in %v", size, len(src), f))
	}
	if err := checkFinite32(fn, "src", src); err != nil {
		return err
	}
	c := f.codec()
	for i := 0; i < len(src); i += c.values {
		if !c.encode(dst[:c.bytes:c.bytes], src[i:i+c.values]) {
			return &Error{Func: fn, Arg: "src", Have: fmt.Sprintf("a block at index %d whose scale is infinite in float16", i),
				Need: "smaller weights", Err: ErrValue}
		}
		dst = dst[c.bytes:]
	}
	return nil
}
