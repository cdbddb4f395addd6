package quant

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ingot-metal/ingot/nn/internal/oracle"
	"github.com/ingot-metal/ingot/runtime/half"
)

// layoutShapes: rows at, below and beyond multiples of 4 and 16, all group sizes.
var layoutShapes = [][3]int{
	{1, 32, 32}, {3, 64, 32}, {4, 96, 32}, {5, 64, 64}, {15, 128, 64}, {16, 256, 128}, {17, 256, 64}, {31, 160, 32}, {32, 512, 256},
	{33, 512, 512}, {2, 1024, 512}, {48, 192, 64},
}

// viewed is a bank as the oracle's layouts define it.
func viewed(layout oracle.Q4Layout, rows, cols, group int, packed []uint32, sb []half.BFloat16) oracle.Q4Bank {
	b := oracle.Q4Bank{Layout: layout, Rows: rows, Cols: cols, Group: group}
	for _, w := range packed {
		b.Packed = binary.LittleEndian.AppendUint32(b.Packed, w)
	}
	for i := 0; i < len(sb); i += 2 {
		b.ScalesBiases = append(b.ScalesBiases, uint32(sb[i])|uint32(sb[i+1])<<16)
	}
	return b
}

// A repacked matrix has every weight where the layout's definition says, zeros in the padding, and comes back as it was.
func TestLayouts(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 16))
	for _, s := range layoutShapes {
		rows, cols, group := s[0], s[1], s[2]
		q, err := QuantizeQ4MLX(random(r, rows*cols, 1), rows, cols, group)
		if err != nil {
			t.Fatal(err)
		}
		blocked, err := q.Blocked()
		if err != nil {
			t.Fatal(err)
		}
		tiles, err := q.Interleaved()
		if err != nil {
			t.Fatal(err)
		}
		if blocked.Validate() != nil || tiles.Validate() != nil {
			t.Fatal(blocked.Validate(), tiles.Validate())
		}
		plain := viewed(oracle.RowMajor, rows, cols, group, q.Packed, q.ScalesBiases)
		for _, b := range []oracle.Q4Bank{
			viewed(oracle.Blocked16, rows, cols, group, blocked.Packed, blocked.ScalesBiases),
			viewed(oracle.Interleaved4, rows, cols, group, tiles.Packed, tiles.ScalesBiases),
		} {
			if p, g := b.Sizes(); p != len(b.Packed) || g != len(b.ScalesBiases) {
				t.Fatalf("%v: layout %d has %d bytes and %d groups, want %d and %d", s, b.Layout, len(b.Packed), len(b.ScalesBiases), p, g)
			}
			for i := range rows {
				for j := range cols {
					if b.At(i, j) != plain.At(i, j) {
						t.Fatalf("%v: layout %d: weight %d, %d is %v, want %v", s, b.Layout, i, j, b.At(i, j), plain.At(i, j))
					}
				}
			}
			padded := b
			padded.Rows = paddedRows(rows, b.Layout.Tile())
			for i := rows; i < padded.Rows; i++ {
				for j := range cols {
					if padded.At(i, j) != 0 {
						t.Fatalf("%v: layout %d: the padding has %v", s, b.Layout, padded.At(i, j))
					}
				}
			}
		}
		back, err := blocked.RowMajor()
		if err != nil {
			t.Fatal(err)
		}
		same(t, q, back)
		if back, err = tiles.RowMajor(); err != nil {
			t.Fatal(err)
		}
		same(t, q, back)
	}
}

func TestLayoutsRefuse(t *testing.T) {
	q, err := QuantizeQ4MLX(make([]float32, 5*64), 5, 64, 32)
	if err != nil {
		t.Fatal(err)
	}
	blocked, err := q.Blocked()
	if err != nil {
		t.Fatal(err)
	}
	tiles, err := q.Interleaved()
	if err != nil {
		t.Fatal(err)
	}
	short := q
	short.Packed = short.Packed[1:]
	_, err = short.Blocked()
	refused(t, err, "Q4MLX.Blocked", ErrShape, "packed")
	_, err = short.Interleaved()
	refused(t, err, "Q4MLX.Interleaved", ErrShape, "packed")
	_, _, err = Q4MLXBlockedSizes(0, 64, 32)
	refused(t, err, "Q4MLXBlockedSizes", ErrShape, "rows")
	_, _, err = Q4MLXBlockedSizes(MaxQ4MLXRows, 64, 32) // the padding is too much
	refused(t, err, "Q4MLXBlockedSizes", ErrShape, "rows")
	_, _, err = Q4MLXInterleavedSizes(4, 64, 48)
	refused(t, err, "Q4MLXInterleavedSizes", ErrShape, "group size")
	if words, pairs, err := Q4MLXBlockedSizes(17, 64, 32); err != nil || words != 32*8 || pairs != 2*32*2 {
		t.Error(words, pairs, err)
	}
	if words, pairs, err := Q4MLXInterleavedSizes(17, 64, 32); err != nil || words != 20*8 || pairs != 2*20*2 {
		t.Error(words, pairs, err)
	}
	nan := half.BFloat16(0x7fc0)
	for _, c := range []struct {
		change   func(packed *[]uint32, sb *[]half.BFloat16, rows *int)
		sentinel error
		part     string
	}{
		{func(p *[]uint32, sb *[]half.BFloat16, rows *int) { *p = q.Packed }, ErrShape, "packed"}, // without the padding
		{func(p *[]uint32, sb *[]half.BFloat16, rows *int) { *sb = q.ScalesBiases }, ErrShape, "scales and biases"},
		{func(p *[]uint32, sb *[]half.BFloat16, rows *int) { *rows = 0 }, ErrShape, "rows"},
		{func(p *[]uint32, sb *[]half.BFloat16, rows *int) { *sb = slices.Clone(*sb); (*sb)[3] = nan }, ErrValue, "index 3"},
	} {
		b, i := blocked, tiles
		c.change(&b.Packed, &b.ScalesBiases, &b.Rows)
		c.change(&i.Packed, &i.ScalesBiases, &i.Rows)
		refused(t, b.Validate(), "Q4MLXBlocked.Validate", c.sentinel, c.part)
		refused(t, i.Validate(), "Q4MLXInterleaved.Validate", c.sentinel, c.part)
		if c.sentinel == ErrShape {
			_, err := b.RowMajor()
			refused(t, err, "Q4MLXBlocked.RowMajor", ErrShape, c.part)
			_, err = i.RowMajor()
			refused(t, err, "Q4MLXInterleaved.RowMajor", ErrShape, c.part)
		}
	}
}
