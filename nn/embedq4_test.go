package nn

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/ingot-metal/ingot/nn/internal/oracle"
	"github.com/ingot-metal/ingot/nn/quant"
	"github.com/ingot-metal/ingot/runtime"
)

// signed is a bank in the signed 4-bit format with its formula.
type signed struct {
	bank Q4Bank
	host quant.Q4
	o    oracle.Q4Signed
}

// randomSigned is a bank of normally distributed weights between sentinels.
func randomSigned(t testing.TB, rt *runtime.Runtime, r *rand.Rand, rows, cols, group int) signed {
	t.Helper()
	q, err := quant.QuantizeQ4(normals(r, rows*cols, 1), rows, cols, group)
	if err != nil {
		t.Fatal(err)
	}
	return uploadSigned(t, rt, q)
}

// uploadSigned puts a bank between sentinels on the device.
func uploadSigned(t testing.TB, rt *runtime.Runtime, q quant.Q4) signed {
	t.Helper()
	packed, scales, zeros := newBuffer(t, rt, q.Packed), newBuffer(t, rt, q.Scales), newBuffer(t, rt, q.Zeros)
	bank, err := NewQ4Bank(packed.s, scales.s, zeros.s, q.Rows, q.Cols, q.GroupSize)
	if err != nil {
		t.Fatal(err)
	}
	o := oracle.Q4Signed{Scales: q.Scales, Zeros: q.Zeros, Rows: q.Rows, Cols: q.Cols, Group: q.GroupSize}
	for _, w := range q.Packed {
		o.Packed = binary.LittleEndian.AppendUint32(o.Packed, w)
	}
	return signed{bank, q, o}
}

func TestEmbedLookupQ4(t *testing.T) {
	rt, r := open(t), source(400)
	var w worst
	for _, s := range []struct{ vocab, hidden, group, tokens int }{
		{1, 8, 8, 1}, {7, 64, 32, 3}, {5, 96, 24, 5}, {100, 128, 64, 17}, {33, 128, 128, 2}, {9, 320, 40, 4}, {12, 256, 256, 3},
		{3, 512, 512, 9}, {1024, 128, 8, 1}, {2, 1024, 1024, 2}, {50, 160, 16, 65}, {4, 2560, 64, 1}, {17, 24, 8, 130},
		{8, 64, 64, 0}, // nothing to do
	} {
		for _, scale := range []float32{1, float32(math.Sqrt(float64(s.hidden))), -1e-3} {
			m := randomSigned(t, rt, r, s.vocab, s.hidden, s.group)
			ids := make([]uint32, s.tokens)
			for i := range ids {
				switch r.IntN(8) {
				case 0:
					ids[i] = uint32(s.vocab) // just past the table
				case 1:
					ids[i] = math.MaxUint32
				default:
					ids[i] = uint32(r.IntN(s.vocab))
				}
			}
			in, out := newBuffer(t, rt, ids), output[float32](t, rt, s.tokens*s.hidden)
			encode(t, rt, min(s.tokens, 1), func(p *runtime.Pass) error { return EmbedLookupQ4(p, out.s, m.bank, in.s, s.tokens, scale) })
			want := oracle.Embed(m.o, ids, float64(scale))
			// Three roundings of 2^-24: the difference, the weight, the scaled weight.
			w.compare(t, fmt.Sprintf("%+v scale %g", s, scale), widen(out.written()), want, func(i int) float64 { return 3.01 * math.Abs(want[i]) / (1 << 24) })
		}
	}
	w.log(t, "3 * 2^-24 of the value", "EmbedLookupQ4")
}

// Every code in every place of a word, each with its sign.
func TestEmbedLookupQ4Codes(t *testing.T) {
	rt := open(t)
	codes := make([]int8, 16*8)
	for i := range codes {
		codes[i] = int8((i/8+i%8)%16 - 8)
	}
	q := quant.Q4{Rows: 16, Cols: 8, GroupSize: 8, Packed: make([]uint32, 16), Scales: make([]float32, 16), Zeros: make([]float32, 16)}
	if err := quant.PackSignedCodes(q.Packed, codes); err != nil {
		t.Fatal(err)
	}
	ids := make([]uint32, 16)
	for i := range ids {
		q.Scales[i], q.Zeros[i], ids[i] = float32(i+1), float32(i)-0.5, uint32(15-i)
	}
	m := uploadSigned(t, rt, q)
	in, out := newBuffer(t, rt, ids), output[float32](t, rt, 16*8)
	encode(t, rt, 1, func(p *runtime.Pass) error { return EmbedLookupQ4(p, out.s, m.bank, in.s, 16, 1) })
	for i, v := range out.written() {
		row := 15 - i/8
		if want := float32(row+1) * (float32(codes[row*8+i%8]) - (float32(row) - 0.5)); v != want {
			t.Fatalf("row %d, column %d: %v, want %v", row, i%8, v, want)
		}
	}
}

func TestEmbedLookupQ4Recorded(t *testing.T) {
	rt, r := open(t), source(401)
	m := randomSigned(t, rt, r, 40, 120, 24)
	ids, out := newBuffer(t, rt, make([]uint32, 3)), output[float32](t, rt, 3*120)
	call := func(p *runtime.Pass) error { return EmbedLookupQ4(p, out.s, m.bank, ids.s, 3, 11.3) }
	replays(t, rt, []target{out}, func(i int) { ids.set([]uint32{uint32(i), 39 - uint32(i), 38 + uint32(i)}) }, call)
	twin(t, rt, []target{out},
		[]scalar{{slot: 5, u: 120}, {slot: 6, u: 24}, {slot: 7, u: 40}, {slot: 8, u: 3}, {slot: 9, f: 11.3, float: true}}, call,
		func(p *runtime.Pass, bind func(*runtime.ScalarBinder) error) error {
			return UnsafeEmbedLookupQ4(p, out.s, m.bank, ids.s, 3, 11.3, bind)
		})
}

func TestEmbedLookupQ4Refuses(t *testing.T) {
	rt, foreign, r := open(t), open(t), source(402)
	m, theirs := randomSigned(t, rt, r, 4, 64, 64), randomSigned(t, foreign, r, 4, 64, 64)
	f, fi := output[float32](t, foreign, 128), output[uint32](t, foreign, 2)
	ids, out := output[uint32](t, rt, 2), output[float32](t, rt, 128)
	call := func(o runtime.Slice[float32], b Q4Bank, in runtime.Slice[uint32], tokens int, scale float32) func(*runtime.Pass) error {
		return func(p *runtime.Pass) error { return EmbedLookupQ4(p, o, b, in, tokens, scale) }
	}
	scales := newBuffer(t, rt, make([]float32, 4))
	shared, err := NewQ4Bank(m.bank.Packed(), scales.s, m.bank.Zeros(), 4, 64, 64)
	if err != nil {
		t.Fatal(err)
	}
	refuses(t, rt, "nn.EmbedLookupQ4", []target{out, ids, scales}, []refusal{
		{"no pass", func(*runtime.Pass) error { return EmbedLookupQ4(nil, out.s, m.bank, ids.s, 2, 1) }, runtime.ErrMisuse, nil},
		{"scale NaN", call(out.s, m.bank, ids.s, 2, float32(math.NaN())), runtime.ErrScalar, []string{"scale", "NaN"}},
		{"scale infinite", call(out.s, m.bank, ids.s, 2, float32(math.Inf(1))), runtime.ErrScalar, []string{"scale", "+Inf"}},
		{"zero bank", call(out.s, Q4Bank{}, ids.s, 2, 1), runtime.ErrShape, []string{"table", "zero bank"}},
		{"tokens -1", call(out.s, m.bank, ids.s, -1, 1), runtime.ErrShape, []string{"tokens", "-1"}},
		{"tokens huge", call(out.s, m.bank, ids.s, math.MaxInt, 1), runtime.ErrShape, []string{"tokens"}},
		{"grid beyond 32 bits", call(out.s, m.bank, ids.s, math.MaxInt32, 1), runtime.ErrLimit, []string{"tokens * threads of a row"}},
		{"out short", call(out.s.Slice(0, 127), m.bank, ids.s, 2, 1), runtime.ErrShape, []string{"out", "127", "128"}},
		{"ids short", call(out.s, m.bank, ids.s.Slice(0, 1), 2, 1), runtime.ErrShape, []string{"ids", "1 elements"}},
		{"out zero", call(runtime.Slice[float32]{}, m.bank, ids.s, 2, 1), runtime.ErrShape, []string{"out"}},
		{"out foreign", call(f.s, m.bank, ids.s, 2, 1), runtime.ErrForeign, []string{"out"}},
		{"ids foreign", call(out.s, m.bank, fi.s, 2, 1), runtime.ErrForeign, []string{"ids"}},
		{"bank foreign", call(out.s, theirs.bank, ids.s, 2, 1), runtime.ErrForeign, []string{"table"}},
		{"out in the scales", func(p *runtime.Pass) error {
			return EmbedLookupQ4(p, out.s.Slice(0, 64), Q4Bank{shared.packed, out.s.Slice(60, 64), shared.zeros, 4, 64, 64}, ids.s, 1, 1)
		}, runtime.ErrOverlap, []string{"out", "the table"}},
	})
}
