package runtime

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestStreamAllocations: a call costs its Pass, which is never reused, and nothing per dispatch.
func TestStreamAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	d := &fake{static: true}
	rt := d.open(t)
	x := mustSlice(t, rt, 64)
	s := openStream(t, rt)
	encode := func(p *Pass) error {
		for i := range 100 {
			if err := bump(p, x.Slice(i%60, i%60+4), uint32(i)); err != nil {
				return err
			}
		}
		return nil
	}
	call := func() {
		if err := s.Encode(encode); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 * flights {
		call()
	}
	require.LessOrEqual(t, testing.AllocsPerRun(100, call), 1.0)
	require.NoError(t, s.Close())
}

// BenchmarkStream encodes dispatches in calls of four, against passes of four that are submitted one by one.
func BenchmarkStream(b *testing.B) {
	d := &fake{static: true}
	rt := d.open(b)
	x := mustSlice(b, rt, 64)
	encode := func(p *Pass) error {
		for i := range 4 {
			if err := bump(p, x.Slice(16*i, 16*i+16), 1); err != nil {
				return err
			}
		}
		return nil
	}
	b.Run("stream", func(b *testing.B) {
		s := openStream(b, rt)
		b.ReportAllocs()
		for b.Loop() {
			if err := s.Encode(encode); err != nil {
				b.Fatal(err)
			}
		}
		require.NoError(b, s.Wait(b.Context()))
		require.NoError(b, s.Close())
	})
	b.Run("submit", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := rt.Submit(encode); err != nil {
				b.Fatal(err)
			}
		}
		require.NoError(b, rt.Wait(b.Context()))
	})
}
