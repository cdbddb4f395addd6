package runtime

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/mtl/soft"
)

// BenchmarkThousandOnSoftware is 1,000 small dispatches with a barrier before nearly each: replayed, encoded again from the
// program's list, and encoded by the program's author. The device executes them, which is the same work in all three; its
// messages are counted.
func BenchmarkThousandOnSoftware(b *testing.B) {
	const dispatches = 1000
	encode := func(x Slice[uint32]) func(p *Pass) error {
		return func(p *Pass) error {
			for i := range dispatches {
				if err := bump(p, x.Slice(i%60, i%60+4), uint32(i)); err != nil {
					return err
				}
			}
			return nil
		}
	}
	for _, way := range []string{"replay", "encodedAgain", "direct"} {
		b.Run(way, func(b *testing.B) {
			var opts []Option
			if way == "encodedAgain" {
				opts = []Option{WithoutIndirect()}
			}
			rt, dev := softRuntime(b, soft.Options{NoHazards: true, Workers: 1}, opts...)
			x, err := NewSlice[uint32](rt, 64)
			require.NoError(b, err)
			run := func() error { return rt.Run(encode(x)) }
			if way != "direct" {
				prog, err := rt.Record(encode(x))
				require.NoError(b, err)
				run = prog.Run
			}
			before := soft.Stats(dev)
			b.ReportAllocs()
			for b.Loop() {
				if err := run(); err != nil {
					b.Fatal(err)
				}
			}
			after := soft.Stats(dev)
			passes := float64(after.Commits - before.Commits)
			b.ReportMetric(float64(after.TotalMessages()-before.TotalMessages())/passes, "messages/op")
			b.ReportMetric(float64(after.Dispatches-before.Dispatches)/passes, "dispatches/op")
		})
	}
}

// BenchmarkBind exchanges two slices of a program of 1,000 dispatches: between two sets of memory that it is encoded for, and
// each time for another one, where its commands have to be changed.
func BenchmarkBind(b *testing.B) {
	rt := (&fake{static: true}).open(b)
	const slices = 2*maxEditions + 1
	var x [slices]Slice[uint32]
	for i := range x {
		var err error
		x[i], err = NewSlice[uint32](rt, 64)
		require.NoError(b, err)
	}
	record := func() *Program {
		prog, err := rt.Record(func(p *Pass) error {
			for i := range 1000 {
				if err := bump(p, x[0].Slice(i%60, i%60+4), uint32(i)); err != nil {
					return err
				}
			}
			return nil
		})
		require.NoError(b, err)
		return prog
	}
	for _, c := range []struct {
		name string
		sets int
	}{{"changed", slices}, {"kept", 2}} {
		b.Run(c.name, func(b *testing.B) {
			prog, at := record(), 0
			if c.sets == 2 { // the second set is encoded for while the first is in flight
				prog.now.open++
				require.NoError(b, prog.Bind(Rebind(x[0], x[1])))
				require.NoError(b, prog.Bind(Rebind(x[1], x[0])))
				prog.now.open--
			}
			b.ReportAllocs()
			for b.Loop() {
				next := (at + 1) % c.sets
				if err := prog.Bind(Rebind(x[at], x[next])); err != nil {
					b.Fatal(err)
				}
				at = next
			}
			require.NoError(b, prog.Release())
		})
	}
}
