package quant

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// planeOf puts every code and number where the layout's definition has it, one after the other.
func planeOf(codes []byte, scales, biases []uint16, n, k int) (plane, metadata []uint32) {
	plane, metadata = make([]uint32, n*k/8), make([]uint32, n*k/64)
	for row := range n {
		for g := range k / 64 {
			metadata[(row/64*(k/64)+g)*64+row%64] = uint32(scales[row*(k/64)+g]) | uint32(biases[row*(k/64)+g])<<16
		}
		for run := range k / 32 {
			for chunk := range 4 {
				for pair := range 4 {
					first := run*32 + pair/2*16 + 4*chunk + pair%2*2
					word := &plane[((row/64*(k/32)+run)*64+row%64)*4+chunk]
					*word |= uint32(codes[row*k+first])<<(4*pair) | uint32(codes[row*k+first+1])<<(4*pair+16)
				}
			}
		}
	}
	return plane, metadata
}

func TestAffinePlane(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 32))
	for _, s := range [][2]int{{64, 64}, {64, 128}, {128, 64}, {192, 320}} {
		a := randomAffine(r, AffineFormat{4, 64, ScaleBF16}, s[0], s[1])
		codes := make([]byte, s[0]*s[1])
		if err := UnpackBits(codes, a.Weight, 4); err != nil {
			t.Fatal(err)
		}
		var scales, biases []uint16
		for i := 0; i < len(a.Scales); i += 2 {
			scales, biases = append(scales, binary.LittleEndian.Uint16(a.Scales[i:])), append(biases, binary.LittleEndian.Uint16(a.Biases[i:]))
		}
		plane, metadata := planeOf(codes, scales, biases, s[0], s[1])
		p, err := a.Plane()
		if err != nil || !slices.Equal(p.Plane, plane) || !slices.Equal(p.Metadata, metadata) {
			t.Fatal(s, "not the layout", err)
		}
		if err := p.Validate(); err != nil {
			t.Fatal(err)
		}
		if back, err := p.Affine(); err != nil || !equalAffine(back, a) {
			t.Fatal(s, "came back changed", err)
		}
		words, numbers, err := AffinePlaneSizes(s[0], s[1])
		if err != nil || words != len(plane) || numbers != len(metadata) {
			t.Error(s, words, numbers, err)
		}
	}
	for _, c := range []struct {
		rows, cols int
		part       string
	}{{63, 64, "multiple of 64"}, {96, 64, "multiple of 64"}, {64, 32, "multiple of the group size 64"}, {0, 64, "rows"}, {64, 0, "columns"}, {-64, 64, "rows"}, {1 << 31, 64, "rows"}} {
		_, _, err := AffinePlaneSizes(c.rows, c.cols)
		refused(t, err, "AffinePlaneSizes", ErrShape, c.part)
		refused(t, AffinePlane{Rows: c.rows, Cols: c.cols}.Validate(), "AffinePlane.Validate", ErrShape, c.part)
		_, err = AffinePlane{Rows: c.rows, Cols: c.cols}.Affine()
		refused(t, err, "AffinePlane.Affine", ErrShape, c.part)
	}
	for _, f := range []AffineFormat{{8, 64, ScaleBF16}, {4, 32, ScaleBF16}, {4, 64, ScaleF16}, {4, 64, ScaleF32}} {
		_, err := randomAffine(r, f, 64, 64).Plane()
		refused(t, err, "Affine.Plane", ErrShape, "format", f.String())
	}
	_, err := randomAffine(r, AffineFormat{4, 64, ScaleBF16}, 65, 64).Plane()
	refused(t, err, "Affine.Plane", ErrShape, "rows", "65")
	short := randomAffine(r, AffineFormat{4, 64, ScaleBF16}, 64, 64)
	short.Weight = short.Weight[1:]
	_, err = short.Plane()
	refused(t, err, "Affine.Plane", ErrShape, "weight")
	good, err := randomAffine(r, AffineFormat{4, 64, ScaleBF16}, 64, 64).Plane()
	if err != nil {
		t.Fatal(err)
	}
	for part, change := range map[string]func(p *AffinePlane){
		"511 words":             func(p *AffinePlane) { p.Plane = p.Plane[1:] },
		"63 words":              func(p *AffinePlane) { p.Metadata = p.Metadata[1:] },
		"0x7f80 at index 5":     func(p *AffinePlane) { p.Metadata = slices.Clone(p.Metadata); p.Metadata[5] = 0x7f80 },
		"0xffc00000 at index 6": func(p *AffinePlane) { p.Metadata = slices.Clone(p.Metadata); p.Metadata[6] = 0xffc00000 },
	} {
		bad := good
		change(&bad)
		sentinel := ErrShape
		if part[0] == '0' {
			sentinel = ErrValue
		}
		refused(t, bad.Validate(), "AffinePlane.Validate", sentinel, part)
	}
}

func TestAffineCodes(t *testing.T) {
	r := rand.New(rand.NewPCG(33, 34))
	for _, f := range affineFormats() {
		a := randomAffine(r, f, 3, 512)
		c, err := a.Unpack()
		if err != nil {
			t.Fatal(err)
		}
		want := make([]float32, 3*512)
		if err := a.Dequantize(want); err != nil {
			t.Fatal(err)
		}
		for i := range want {
			g := i / f.GroupSize
			if got := affineWeight(c.Scales[g], c.Codes[i], c.Biases[g]); got != want[i] {
				t.Fatalf("%v: weight %d: %v, want %v", f, i, got, want[i])
			}
		}
		back, err := c.Pack(f.Bits)
		if err != nil {
			t.Fatal(err)
		}
		if f.Scale == ScaleF32 && !equalAffine(back, a) {
			t.Fatal(f, "came back changed")
		}
		got := make([]float32, 3*512)
		if err := back.Dequantize(got); err != nil || !slices.Equal(got, want) {
			t.Fatal(f, "other weights", err)
		}
		if f.Bits > 4 {
			_, err := c.Pack(4)
			refused(t, err, "AffineCodes.Pack", ErrValue, "codes", "0 to 15")
		}
		short := c
		short.Codes = short.Codes[1:]
		_, err = short.Pack(8)
		refused(t, err, "AffineCodes.Pack", ErrShape, "codes", "1535 elements")
		_, err = c.Pack(5)
		refused(t, err, "AffineCodes.Pack", ErrShape, "bits")
	}
	for _, group := range []int{2, 4, 8, 16, 32, 512, 1024} {
		if err := CheckAffineCodes(1, 2048, group); err != nil {
			t.Error(group, err)
		}
	}
	for _, c := range []struct {
		rows, cols, group int
		part              string
	}{
		{1, 32, 5, "group size"}, {1, 32, 1, "group size"}, {1, 32, 0, "group size"}, {1, 2048, 2048, "group size"}, {1, 32, -2, "group size"}, {1, 96, 48, "group size"}, {1, 32, math.MinInt, "group size"},
		{0, 32, 32, "rows"}, {1, 0, 32, "columns"}, {1, 33, 32, "multiple of the group size 32"},
	} {
		refused(t, CheckAffineCodes(c.rows, c.cols, c.group), "CheckAffineCodes", ErrShape, c.part)
		_, err := AffineCodes{Rows: c.rows, Cols: c.cols, GroupSize: c.group}.Pack(4)
		refused(t, err, "AffineCodes.Pack", ErrShape, c.part)
	}
	good := AffineCodes{1, 4, 2, make([]byte, 4), make([]float32, 2), make([]float32, 2)}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	_, err := good.Pack(4)
	refused(t, err, "AffineCodes.Pack", ErrShape, "group size", "2")
	for part, change := range map[string]func(c *AffineCodes){
		"codes":  func(c *AffineCodes) { c.Codes = c.Codes[1:] },
		"scales": func(c *AffineCodes) { c.Scales = nil },
		"biases": func(c *AffineCodes) { c.Biases = make([]float32, 3) },
		"NaN":    func(c *AffineCodes) { c.Biases = []float32{0, float32(math.NaN())} },
		"+Inf":   func(c *AffineCodes) { c.Scales = []float32{0, float32(math.Inf(1))} },
	} {
		bad := good
		change(&bad)
		sentinel := ErrShape
		if part == "NaN" || part == "+Inf" {
			sentinel = ErrValue
		}
		refused(t, bad.Validate(), "AffineCodes.Validate", sentinel, part)
	}
}

// FuzzAffinePlane: whatever words come, there is an error or a valid matrix that converts to row-major order and back.
func FuzzAffinePlane(f *testing.F) {
	f.Add(64, 64, make([]byte, 2048), make([]byte, 256))
	f.Add(64, 128, bytes.Repeat([]byte{0x5a, 0x12}, 2048), bytes.Repeat([]byte{0x80, 0x3f}, 256))
	f.Add(64, 64, make([]byte, 2048), bytes.Repeat([]byte{0x80, 0x7f}, 128))
	f.Add(-64, 1<<40, []byte{1}, []byte(nil))
	f.Fuzz(func(t *testing.T, rows, cols int, plane, metadata []byte) {
		words := func(b []byte) (w []uint32) {
			for i := 0; i+4 <= len(b); i += 4 {
				w = append(w, binary.LittleEndian.Uint32(b[i:]))
			}
			return w
		}
		p := AffinePlane{rows, cols, words(plane), words(metadata)}
		a, err := p.Affine()
		if (err == nil) != (p.Validate() == nil) {
			t.Fatal(err, p.Validate())
		}
		if err != nil {
			return
		}
		back, err := a.Plane()
		if err != nil || !slices.Equal(back.Plane, p.Plane) || !slices.Equal(back.Metadata, p.Metadata) {
			t.Fatal("came back changed", err)
		}
	})
}
