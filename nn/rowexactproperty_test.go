package nn

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ingot-metal/ingot/runtime"
)

// Random shapes of every type: each output has the bits of its vector alone in a kernel for one vector and one row of weights. Neither
// the other vectors nor the packing, the place in a batch, the strides, the part of a bank, another run or a recorded program change them.
// And they are right.
func TestRowExactProperty(t *testing.T) {
	numbersOnly(t)
	rt, r := open(t), source(650)
	shapes, limit := 2000, time.Minute
	if testing.Short() {
		shapes, limit = 400, 4*time.Second
	}
	types := WeightTypes()
	var w worst
	begin := time.Now()
	n := 0
	for ; n < shapes && time.Since(begin) < limit; n++ {
		t.Run("", func(t *testing.T) { randomRowExactShape(t, rt, r, types[n%len(types)], &w) })
		if t.Failed() {
			break
		}
	}
	t.Logf("%d shapes", n)
	w.log(t, "roundings of 2^-24 of the terms' magnitude", "RowExactMatvec", "RowExactMatvecScheduled")
}

func randomRowExactShape(t *testing.T, rt *runtime.Runtime, r *rand.Rand, wt WeightType, w *worst) {
	unit := max(wt.info().values, 4)
	between := func(low, high int) int { return low + r.IntN(high-low+1) }
	layout := rowExactLayouts[r.IntN(len(rowExactLayouts))]
	m, batch, n := between(1, MaxRowExactRows), between(1, 3), between(1, 9)
	k := unit * between(1, max(1, 400/unit))
	s := layout.shape(m, batch, n, k)
	packing := func() int {
		for {
			if rows := 1 << r.IntN(3); wt.SupportsRows(rows) {
				return rows
			}
		}
	}
	how := RowExactSchedule{Simdgroups: between(1, 5), Rows: packing()}
	auto := r.IntN(4) == 0
	if auto {
		f, err := RowExactFor(rt, wt, s)
		if err != nil {
			t.Fatal(err)
		}
		how.Simdgroups = f.Simdgroups
	}
	where := fmt.Sprintf("%v %s %+v, %+v", wt, layout.name, s, how)
	m1 := randomRowExact(t, rt, r, wt, n*batch, k)
	nx, ny := s.lengths()
	x := normals(r, nx, 1)
	in := newBuffer(t, rt, x)

	// Each vector alone.
	alone := output[float32](t, rt, m*batch*n)
	one := RowExactSchedule{Simdgroups: how.Simdgroups, Rows: 1}
	// All of them, and some of them.
	all, again := output[float32](t, rt, ny), output[float32](t, rt, ny)
	first, last := r.IntN(m), 0
	last = between(first, m-1)
	some := s
	some.M = last - first + 1
	_, nsome := some.lengths()
	few := output[float32](t, rt, nsome)
	// One batch with a part of the bank.
	b := r.IntN(batch)
	part, err := m1.rows(b*n, (b+1)*n)
	if err != nil {
		t.Fatal(err)
	}
	single := s
	single.Batch = 1
	_, nsingle := single.lengths()
	own := output[float32](t, rt, nsingle)

	call := func(p *runtime.Pass, y *buffer[float32]) error {
		if auto {
			return m1.call(p, y.s, in.s, s)
		}
		return m1.scheduled(p, y.s, in.s, s, how)
	}
	err = rt.Run(func(p *runtime.Pass) error {
		for j := range m {
			v := s
			v.M, v.YRowStride, v.YBatchStride = 1, n, n
			if err := m1.scheduled(p, alone.s.Slice(j*batch*n, (j+1)*batch*n), in.s.Slice(j*s.XRowStride, nx), v, one); err != nil {
				return err
			}
		}
		if err := call(p, all); err != nil {
			return err
		}
		if err := m1.scheduled(p, few.s, in.s.Slice(first*s.XRowStride, nx), some, RowExactSchedule{how.Simdgroups, packing()}); err != nil {
			return err
		}
		return part.scheduled(p, own.s, in.s.Slice(b*s.XBatchStride, nx), single, RowExactSchedule{how.Simdgroups, packing()})
	})
	if err != nil {
		t.Fatal(where, err)
	}
	prog, err := rt.Record(func(p *runtime.Pass) error { return call(p, again) })
	if err != nil {
		t.Fatal(where, err)
	}
	if err := prog.Run(); err != nil {
		t.Fatal(where, err)
	}
	if err := prog.Release(); err != nil {
		t.Fatal(where, err)
	}

	got := s.outputs(t, where, all)
	want := alone.written()
	replayed, fewer, part1 := s.outputs(t, where, again), some.outputs(t, where, few), single.outputs(t, where, own)
	for i := range batch {
		for j := range m {
			for row := range n {
				bits := bitsOf(want[(j*batch+i)*n+row])
				at := fmt.Sprintf("batch %d, vector %d, row %d", i, j, row)
				if v := got[(i*m+j)*n+row]; bitsOf(v) != bits {
					t.Fatalf("%s: %s: %#x among all, %#x alone", where, at, bitsOf(v), bits)
				}
				if v := replayed[(i*m+j)*n+row]; bitsOf(v) != bits {
					t.Fatalf("%s: %s: %#x replayed, %#x alone", where, at, bitsOf(v), bits)
				}
				if j >= first && j <= last {
					if v := fewer[(i*some.M+j-first)*n+row]; bitsOf(v) != bits {
						t.Fatalf("%s: %s: %#x among %d to %d, %#x alone", where, at, bitsOf(v), first, last, bits)
					}
				}
				if i == b {
					if v := part1[j*n+row]; bitsOf(v) != bits {
						t.Fatalf("%s: %s: %#x by a part of the bank, %#x alone", where, at, bitsOf(v), bits)
					}
				}
			}
		}
	}
	m1.compare(t, w, where, s, x, got, how.Simdgroups)
}
