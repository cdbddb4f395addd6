package runtime

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSpanSet(t *testing.T) {
	var s spanSet
	s.add(10, 20)
	s.add(30, 40)
	require.Equal(t, spanSet{{10, 20}, {30, 40}}, s)
	require.False(t, s.overlaps(20, 30))
	require.False(t, s.overlaps(0, 10))
	require.True(t, s.overlaps(19, 20))
	require.True(t, s.overlaps(0, 100))
	s.add(20, 30) // touches both
	require.Equal(t, spanSet{{10, 40}}, s)
	s.add(0, 5)
	s.add(50, 60)
	s.add(3, 55)
	require.Equal(t, spanSet{{0, 60}}, s)
	s.add(10, 20)
	require.Equal(t, spanSet{{0, 60}}, s)
}

// oracle tracks accesses byte by byte.
type oracle struct{ state map[[2]int]uint8 }

func (o *oracle) conflict(id, lo, hi int, write bool) bool {
	for i := lo; i < hi; i++ {
		s := o.state[[2]int{id, i}]
		if s&accessWrite != 0 || write && s != 0 {
			return true
		}
	}
	return false
}

func (o *oracle) add(id, lo, hi int, read, write bool) {
	for i := lo; i < hi; i++ {
		if read {
			o.state[[2]int{id, i}] |= accessRead
		}
		if write {
			o.state[[2]int{id, i}] |= accessWrite
		}
	}
}

// program drives tracker and oracle with the accesses that data encodes, and compares every answer.
func trackerProgram(t *testing.T, tr *tracker, data []byte) {
	t.Helper()
	tr.reset()
	o := oracle{state: map[[2]int]uint8{}}
	type use struct {
		id, lo, hi  int
		read, write bool
	}
	for len(data) > 0 {
		n := 1 + int(data[0]%4)
		data = data[1:]
		var uses []use
		for ; n > 0 && len(data) >= 3; n-- {
			u := use{id: int(data[0] >> 2), lo: int(data[1] % 64), read: data[0]&1 == 0, write: data[0]&2 == 0}
			u.hi = u.lo + 1 + int(data[2]%24)
			if !u.read && !u.write {
				u.read = true
			}
			uses = append(uses, u)
			data = data[3:]
		}
		want, have := false, false
		for _, u := range uses {
			pos, _ := tr.pos(uint64(u.id))
			want = want || o.conflict(u.id, u.lo, u.hi, u.write)
			have = have || tr.conflict(pos, u.lo, u.hi, u.write)
		}
		if want != have {
			t.Fatalf("dispatch %+v: tracker says conflict %v, bytes say %v", uses, have, want)
		}
		if want {
			tr.barrier()
			clear(o.state)
		}
		for _, u := range uses {
			pos, fresh := tr.pos(uint64(u.id))
			if fresh {
				t.Fatal("place forgotten")
			}
			tr.add(pos, u.lo, u.hi, u.read, u.write)
			o.add(u.id, u.lo, u.hi, u.read, u.write)
		}
		if len(uses) == 0 {
			break
		}
	}
}

func TestTrackerAgainstBytes(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var tr tracker // one tracker throughout: what an earlier pass left must not matter
	for range 3000 {
		data := make([]byte, 4+rng.IntN(200))
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		trackerProgram(t, &tr, data)
	}
}

func FuzzTracker(f *testing.F) {
	f.Add([]byte{0, 0, 0, 8, 0, 1, 4, 8})
	f.Add([]byte{3, 0, 0, 8, 4, 0, 8, 8, 0, 8, 12, 10, 10, 0, 1, 2, 3})
	f.Fuzz(func(t *testing.T, data []byte) { trackerProgram(t, new(tracker), data) })
}

// TestFewestBarriers compares the greedy placement with the best one, found by trying all.
func TestFewestBarriers(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	type use struct {
		id, lo, hi int
		write      bool
	}
	conflicts := func(a, b []use) bool {
		for _, x := range a {
			for _, y := range b {
				if x.id == y.id && x.lo < y.hi && y.lo < x.hi && (x.write || y.write) {
					return true
				}
			}
		}
		return false
	}
	for range 300 {
		dispatches := make([][]use, 1+rng.IntN(10))
		for i := range dispatches {
			for range 1 + rng.IntN(3) {
				lo := rng.IntN(16)
				dispatches[i] = append(dispatches[i], use{rng.IntN(3), lo, lo + 1 + rng.IntN(8), rng.IntN(3) == 0})
			}
		}
		var tr tracker
		tr.reset()
		have := 0
		for _, d := range dispatches {
			hit := false
			for _, u := range d {
				pos, _ := tr.pos(uint64(u.id))
				hit = hit || tr.conflict(pos, u.lo, u.hi, u.write)
			}
			if hit {
				have++
				tr.barrier()
			}
			for _, u := range d {
				pos, _ := tr.pos(uint64(u.id))
				tr.add(pos, u.lo, u.hi, !u.write, u.write)
			}
		}
		best := len(dispatches)
		for places := 0; places < 1<<(len(dispatches)-1); places++ {
			ok, n, start := true, 0, 0
			for i := 1; i < len(dispatches) && ok; i++ {
				if places&(1<<(i-1)) != 0 {
					n++
					start = i
				}
				for j := start; j < i; j++ {
					ok = ok && !conflicts(dispatches[j], dispatches[i])
				}
			}
			if ok {
				best = min(best, n)
			}
		}
		require.Equal(t, best, have)
	}
}

func TestTrackerSteadyStateAllocatesNothing(t *testing.T) {
	var tr tracker
	pass := func() {
		tr.reset()
		for i := range 200 {
			pos, _ := tr.pos(uint64(i % 40))
			if tr.conflict(pos, i, i+64, true) {
				tr.barrier()
			}
			tr.add(pos, i, i+64, false, true)
		}
	}
	pass()
	require.Zero(t, testing.AllocsPerRun(100, pass))
}

func BenchmarkTracker(b *testing.B) {
	var tr tracker
	tr.reset()
	b.ReportAllocs()
	for i := range b.N {
		for j := range 6 {
			pos, _ := tr.pos(uint64((i*7 + j) % 50))
			if tr.conflict(pos, 0, 4096, j == 0) {
				tr.barrier()
			}
		}
		for j := range 6 {
			pos, _ := tr.pos(uint64((i*7 + j) % 50))
			tr.add(pos, 0, 4096, j != 0, j == 0)
		}
	}
}
