package runtime

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/mtl/soft"
)

// BenchmarkAllocate takes memory from the pool and gives it back, by itself and from an arena of temporaries. Clearing is
// part of it.
func BenchmarkAllocate(b *testing.B) {
	rt, _ := softRuntime(b, soft.Options{})
	for _, n := range []int{64, 64 << 10} {
		b.Run(fmt.Sprintf("slice/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				x, err := NewSlice[uint8](rt, n)
				if err != nil {
					b.Fatal(err)
				}
				if err := x.Release(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	arena, err := NewTempArena(rt, 64<<10)
	require.NoError(b, err)
	b.Run("temp/64", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := Temp[uint8](arena, 64); err != nil {
				if err := arena.Reset(); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}

// BenchmarkHostAccess reads and writes 4 KiB: by copy, by mapping, and of private memory, which the device copies.
func BenchmarkHostAccess(b *testing.B) {
	rt, _ := softRuntime(b, soft.Options{})
	buf := make([]uint32, 1024)
	for _, storage := range []Storage{Shared, Private} {
		x, err := NewSlice[uint32](rt, 1024, storage)
		require.NoError(b, err)
		require.NoError(b, rt.Run(func(p *Pass) error { return fill(p, x, 1) }))
		loop := func(name string, f func() error) {
			b.Run(storage.String()+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(4096)
				for b.Loop() {
					if err := f(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		loop("read", func() error { return x.Read(buf) })
		loop("write", func() error { return x.Write(buf) })
		if storage == Shared {
			loop("map", func() error {
				m, err := x.Map()
				if err != nil {
					return err
				}
				copy(m.Data(), buf)
				return m.Unmap()
			})
		}
	}
}

// BenchmarkReadBesideWork reads bytes that nothing writes while work on the same allocation is in flight, which has to look
// through what is.
func BenchmarkReadBesideWork(b *testing.B) {
	d := new(fake)
	rt := d.open(b)
	x, err := NewSlice[uint32](rt, 4096)
	require.NoError(b, err)
	d.block.Lock()
	for i := range DefaultMaxInFlight {
		_, err := rt.Submit(func(p *Pass) error {
			for j := range 32 {
				if err := fill(p, x.Slice(64*j, 64*j+8), uint32(i)); err != nil {
					return err
				}
			}
			return nil
		})
		require.NoError(b, err)
	}
	buf := make([]uint32, 8)
	b.ReportAllocs()
	for b.Loop() {
		if err := x.Slice(16, 24).Read(buf); err != nil {
			b.Fatal(err)
		}
	}
	d.block.Unlock()
	require.NoError(b, rt.Wait(b.Context()))
}
