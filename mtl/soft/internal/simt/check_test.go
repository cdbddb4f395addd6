package simt

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// checkedCopy is copyKernel with checks, over n words in threadgroups of 64 threads.
func checkedCopy(t testing.TB, n int) (*Program, *Dispatch) {
	b := copyKernel(0)
	p, err := compileKernel(b.m, b.k, Options{Checks: true})
	require.NoError(t, err)
	d := &Dispatch{Groups: [3]uint32{uint32(n / 64), 1, 1}, Threads: [3]uint32{64, 1, 1}}
	d.Buffers[0].Mem, d.Buffers[3].Mem = make([]byte, 4*n), make([]byte, 4*n)
	for i := range d.Buffers[3].Mem {
		d.Buffers[3].Mem[i] = byte(i*7 + 1)
	}
	return p, d
}

// TestCheckBounded writes more than the history holds: the oldest is forgotten, nothing else goes wrong, and the memory
// is used again.
func TestCheckBounded(t *testing.T) {
	p, d := checkedCopy(t, (maxPages+3)*pageCells)
	require.NoError(t, p.Run(d, 1))
	require.Equal(t, d.Buffers[3].Mem, d.Buffers[0].Mem)
	g := p.acquire(d, [3]uint32{d.Groups[0] * 64, 1, 1})
	c := g.chk
	for i := range maxPages + 3 {
		c.cell(0, uint64(i)*pageCells<<coarsest).w = stamp(c.tick) << 32
	}
	require.Len(t, c.live, maxPages)
	require.Zero(t, c.cell(0, 0).w, "the oldest page was forgotten")
	require.NotZero(t, c.cell(0, 6*pageCells<<coarsest).w)
	p.release(g)
	require.Empty(t, c.live)
	require.Len(t, c.free, maxPages)
}

// TestCheckTicks lets time run out: the checks go on.
func TestCheckTicks(t *testing.T) {
	p, d := checkedCopy(t, 256)
	c := &checker{tick: tickLimit - 3}
	g := p.acquire(d, [3]uint32{256, 1, 1})
	defer p.release(g)
	g.chk.release()
	g.chk = c
	c.g, c.first, c.order = g, c.tick, newOrder(InOrder, 0, 4)
	c.watched, c.sharedShift = 1, coarsest
	for i := range c.canon {
		c.canon[i] = uint8(i)
	}
	c.buffers[0] = shadow{coarsest, make([]*cellPage, 4)}
	for i := range uint64(4) {
		require.NoError(t, g.runOne(i))
	}
	require.Less(t, c.tick, uint32(100))
	require.Equal(t, d.Buffers[3].Mem, d.Buffers[0].Mem)
	// The last threadgroup once more, as if it were another: what it did was after time began anew.
	d.Buffers[3].Mem[768] ^= 1
	f := faultOf(t, g.runOne(3))
	require.Equal(t, FaultGroupRace, f.Kind)
	require.EqualValues(t, 768, f.Offset)
}

// TestCheckGranules refines the history of a buffer without losing any of it.
func TestCheckGranules(t *testing.T) {
	p, d := checkedCopy(t, 4*pageCells)
	g := p.acquire(d, [3]uint32{4 * pageCells, 1, 1})
	defer p.release(g)
	c := g.chk
	mark := stamp(c.tick)<<32 | 5
	for _, at := range []uint64{0, 8, 4 * pageCells, 12 * pageCells} {
		c.refine(0, at, 4)
		c.cell(0, at).w = mark + stamp(at)
	}
	require.EqualValues(t, coarsest, c.buffers[0].shift)
	c.refine(0, 101, 1)
	require.Zero(t, c.buffers[0].shift)
	for _, at := range []uint64{0, 8, 4 * pageCells, 12 * pageCells} {
		for i := range uint64(4) {
			require.Equal(t, mark+stamp(at), c.cell(0, at+i).w)
		}
		require.Zero(t, c.cell(0, at+4).w)
	}
}

// BenchmarkChecked is what the checks cost a kernel that reads much and writes little.
func BenchmarkChecked(b *testing.B) {
	for _, c := range []struct {
		name   string
		checks bool
	}{{"off", false}, {"on", true}} {
		b.Run(c.name, func(b *testing.B) {
			q := newQ4(2048, 2048, 64)
			p := defaultProgram(b, "gemv_q4_mlx_simd", Options{Checks: c.checks})
			d := q.dispatch()
			for b.Loop() {
				if err := p.Run(d, 1); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
