package runtime

import (
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/mtl/soft"
	"github.com/ingot-metal/ingot/objc"
)

func TestWrapBuffer(t *testing.T) {
	for name, o := range memoryKinds {
		for _, mode := range []mtl.ResourceOptions{mtl.ResourceStorageModeShared, mtl.ResourceStorageModeManaged, mtl.ResourceStorageModePrivate} {
			t.Run(name, func(t *testing.T) {
				rt, dev := softRuntime(t, o)
				buf := dev.NewBufferWithLength(400, mode)
				require.False(t, buf.IsNil())
				x, err := WrapBuffer[uint32](rt, buf)
				require.NoError(t, err)
				require.Equal(t, 100, x.Len())
				require.Equal(t, 400, rt.MemStats().External)
				require.Equal(t, 400, rt.MemStats().Held)
				require.Zero(t, rt.MemStats().Buffers)
				want := make([]uint32, 100)
				for i := range want {
					want[i] = uint32(i)
				}
				require.NoError(t, x.Write(want))
				require.NoError(t, rt.Run(func(p *Pass) error { return bump(p, x.Slice(50, 60), 1) }))
				prog, err := rt.Record(func(p *Pass) error { return bump(p, x.Slice(55, 56), 2) })
				require.NoError(t, err)
				require.NoError(t, prog.Run())
				require.NoError(t, prog.Release())
				for i := 50; i < 60; i++ {
					want[i] = 3*want[i] + 1
				}
				want[55] = 3*want[55] + 2
				got := make([]uint32, 100)
				require.NoError(t, x.Read(got))
				require.Equal(t, want, got)
				require.NoError(t, x.Slice(3, 4).Write([]uint32{77}))
				require.NoError(t, rt.Run(func(p *Pass) error { return bump(p, x.Slice(3, 4), 0) }))
				require.NoError(t, x.Slice(2, 5).Read(got[:3]))
				require.Equal(t, []uint32{2, 3 * 77, 4}, got[:3])

				if mode == mtl.ResourceStorageModePrivate {
					require.Equal(t, Private, x.Storage())
					_, err = x.Map()
					require.ErrorIs(t, err, ErrMisuse)
				} else {
					require.NoError(t, rt.Run(func(p *Pass) error { return fill(p, x.Slice(0, 1), 9) }))
					m, err := x.Slice(0, 2).Map()
					require.NoError(t, err)
					require.Equal(t, []uint32{9, 1}, m.Data(), "as the device left it")
					m.Data()[1] = 5
					if x.Storage() == Managed {
						require.ErrorIs(t, x.Slice(50, 60).Read(got[:10]), ErrBusy, "the host's copy is one")
					}
					require.NoError(t, m.Unmap())
					require.NoError(t, rt.Run(func(p *Pass) error { return bump(p, x.Slice(1, 2), 0) }))
					require.NoError(t, x.Slice(1, 2).Read(got[:1]))
					require.EqualValues(t, 15, got[0])
				}
				// The caller's reference is the caller's.
				require.NoError(t, x.Release())
				require.ErrorIs(t, x.Release(), ErrClosed)
				require.Zero(t, rt.MemStats().Held-rt.MemStats().Pooled-rt.MemStats().Scalars)
				require.EqualValues(t, 400, buf.Length())
				buf.Release()
			})
		}
	}
}

func TestWrapBufferRefusals(t *testing.T) {
	other := softDevice(t, soft.Options{})
	rt, dev := softRuntime(t, soft.Options{}, WithMemoryBudget(4096))
	foreign := other.NewBufferWithLength(64, mtl.ResourceStorageModeShared)
	defer foreign.Release()
	_, err := WrapBuffer[uint32](rt, foreign)
	require.ErrorIs(t, err, ErrForeign)
	_, err = WrapBuffer[uint32](rt, mtl.Buffer{})
	require.ErrorIs(t, err, ErrMisuse)
	_, err = WrapBuffer[uint32](rt, mtl.BufferOf(dev.ID()))
	require.ErrorIs(t, err, ErrMisuse)
	_, err = WrapBuffer[uint32](nil, foreign)
	require.ErrorIs(t, err, ErrMisuse)
	for _, c := range []struct {
		n       uint
		options mtl.ResourceOptions
		want    error
	}{
		{3, mtl.ResourceStorageModeShared, ErrShape},
		{6, mtl.ResourceStorageModePrivate, ErrShape},
		{64, mtl.ResourceHazardTrackingModeUntracked, ErrMisuse},
		{5000, mtl.ResourceStorageModeShared, ErrLimit},
	} {
		b := dev.NewBufferWithLength(c.n, c.options)
		_, err = WrapBuffer[uint32](rt, b)
		require.ErrorIs(t, err, c.want)
		require.Zero(t, rt.MemStats().Held)
		b.Release()
	}
	desc, err := mtl.NewHeapDescriptor(dev)
	require.NoError(t, err)
	desc.SetSize(4096)
	desc.SetHazardTrackingMode(mtl.HazardTrackingModeTracked)
	heap := dev.NewHeapWithDescriptor(desc)
	require.False(t, heap.IsNil())
	b := heap.NewBufferWithLength(64, heap.ResourceOptions())
	require.False(t, b.IsNil())
	_, err = WrapBuffer[uint32](rt, b)
	require.ErrorIs(t, err, ErrMisuse)
	b.Release()
	heap.Release()
	desc.Release()
	b = dev.NewBufferWithLength(64, mtl.ResourceStorageModeShared)
	require.NoError(t, rt.Close())
	_, err = WrapBuffer[uint32](rt, b)
	require.ErrorIs(t, err, ErrClosed)
	b.Release()
}

// pagesOf is page-aligned memory with n bytes that count up.
func pagesOf(n int) []byte {
	mem := pages(n)
	for i := range mem {
		mem[i] = byte(i)
	}
	return mem
}

func TestWrapMemory(t *testing.T) {
	for name, o := range memoryKinds {
		t.Run(name, func(t *testing.T) {
			rt, _ := softRuntime(t, o)
			page := os.Getpagesize()
			mem := elementsOf[uint32](pages(2 * page))
			for i := range mem {
				mem[i] = uint32(i)
			}
			released := make(chan struct{})
			x, err := WrapMemory(rt, mem, MemoryOptions{Release: func() { close(released) }})
			require.NoError(t, err)
			require.Equal(t, len(mem), x.Len())
			require.Equal(t, 2*page, rt.MemStats().External)
			require.NoError(t, rt.Run(func(p *Pass) error { return bump(p, x.Slice(7, 9), 1) }))
			require.Equal(t, []uint32{6, 22, 25, 9}, mem[6:10], "it is the caller's memory")
			require.NoError(t, x.Slice(0, 1).Write([]uint32{42}))
			require.EqualValues(t, 42, mem[0])

			// The device uses it for as long as work does: the release waits for that.
			_, err = WrapMemory(rt, mem[page/4:], MemoryOptions{})
			require.ErrorIs(t, err, ErrOverlap)
			s, err := rt.Submit(func(p *Pass) error { return fill(p, x.Slice(0, 1000), 1) })
			require.NoError(t, err)
			require.NoError(t, x.Release())
			require.NoError(t, s.Wait(t.Context()))
			rt.queue.reap()
			select {
			case <-released:
			case <-time.After(patience):
				t.Fatal("not released")
			}
			require.EqualValues(t, 1, mem[999])
			require.Zero(t, rt.MemStats().External)
			y, err := WrapMemory(rt, mem, MemoryOptions{})
			require.NoError(t, err, "it is free again")
			require.NoError(t, y.Release())
		})
	}
}

// TestMemoryIsReleasedAfterItsUses keeps a command buffer, and with it the memory, in flight: the memory is released
// after the device has let go of it, not when the runtime has.
func TestMemoryIsReleasedAfterItsUses(t *testing.T) {
	rt, dev := softRuntime(t, soft.Options{})
	var released atomic.Bool
	x, err := WrapMemory(rt, elementsOf[uint32](pages(os.Getpagesize())), MemoryOptions{Release: func() { released.Store(true) }})
	require.NoError(t, err)
	// A command buffer of the caller's own, on another queue, holds the buffer.
	func() {
		defer objc.NewPool().Drain()
		queue := dev.NewCommandQueue()
		defer queue.Release()
		cb := queue.CommandBuffer()
		cb.Retain()
		enc := cb.BlitCommandEncoder()
		enc.FillBuffer(x.view.a.buf, mtl.Range{Location: 0, Length: 64}, 3)
		enc.EndEncoding()
		require.NoError(t, x.Release())
		require.Zero(t, rt.MemStats().External)
		time.Sleep(2 * time.Millisecond)
		require.False(t, released.Load())
		cb.Commit()
		cb.WaitUntilCompleted()
		cb.Release()
	}()
	eventually(t, released.Load, "not released")
}

func TestWrapMemoryRefusals(t *testing.T) {
	rt, dev := softRuntime(t, soft.Options{MaxBufferLength: 1 << 20})
	page := os.Getpagesize()
	mem := pages(4 * page)
	never := MemoryOptions{Release: func() { t.Error("released") }}
	_, err := WrapMemory[uint8](rt, nil, never)
	require.ErrorIs(t, err, ErrShape)
	_, err = WrapMemory(rt, mem[1:page+1], never)
	require.ErrorIs(t, err, ErrShape)
	_, err = WrapMemory(rt, mem[:page-1], never)
	require.ErrorIs(t, err, ErrShape)
	_, err = WrapMemory(rt, pages(2<<20), never)
	require.ErrorIs(t, err, ErrLimit)
	_, err = WrapMemory[uint8](nil, mem, never)
	require.ErrorIs(t, err, ErrMisuse)
	require.NoError(t, soft.Inject(dev, soft.Faults{Allocation: 1}))
	_, err = WrapMemory(rt, mem, never)
	require.ErrorIs(t, err, ErrDevice)
	require.Zero(t, rt.MemStats().Held)
	ro, err := WrapMemory(rt, mem, MemoryOptions{ReadOnly: true})
	require.NoError(t, err)
	again, err := WrapMemory(rt, mem[page:], MemoryOptions{ReadOnly: true})
	require.NoError(t, err, "both only read it")
	require.NoError(t, again.Release())
	_, err = WrapMemory(rt, mem[page:], never)
	require.ErrorIs(t, err, ErrOverlap)
	require.NoError(t, ro.Release())
	require.NoError(t, rt.Close())
	_, err = WrapMemory(rt, mem, never)
	require.ErrorIs(t, err, ErrClosed)
	time.Sleep(time.Millisecond)
}

func TestReadOnlyMemory(t *testing.T) {
	rt, _ := softRuntime(t, soft.Options{})
	x, err := WrapMemory(rt, elementsOf[uint32](pagesOf(os.Getpagesize())), MemoryOptions{ReadOnly: true})
	require.NoError(t, err)
	require.True(t, x.ReadOnly())
	require.True(t, x.Slice(1, 2).View().ReadOnly())
	y, err := NewSlice[uint32](rt, 4)
	require.NoError(t, err)
	require.NoError(t, rt.Run(func(p *Pass) error {
		err := bump(p, x.Slice(0, 4), 1)
		require.ErrorIs(t, err, ErrMisuse)
		require.ErrorContains(t, err, "read-only")
		require.ErrorIs(t, fill(p, x.Slice(0, 4), 1), ErrMisuse)
		require.Zero(t, p.Count())
		return duplicate(p, y, x.Slice(0, 4))
	}))
	_, err = rt.Record(func(p *Pass) error { return fill(p, x.Slice(0, 4), 1) })
	require.ErrorIs(t, err, ErrMisuse)
	require.ErrorIs(t, x.Slice(0, 1).Write([]uint32{1}), ErrMisuse)
	_, err = x.Map()
	require.ErrorIs(t, err, ErrMisuse)
	m, err := x.Slice(0, 4).MapRead()
	require.NoError(t, err)
	got := make([]uint32, 4)
	require.NoError(t, y.Read(got))
	require.Equal(t, got, m.Data())
	require.EqualValues(t, 0x03020100, got[0])
	require.NoError(t, m.Unmap())
}

func TestMapFile(t *testing.T) {
	for name, o := range memoryKinds {
		t.Run(name, func(t *testing.T) {
			rt, _ := softRuntime(t, o)
			page := os.Getpagesize()
			data := make([]byte, 40*page+123)
			for i := range data {
				data[i] = byte(i>>8) ^ byte(3*i)
			}
			path := filepath.Join(t.TempDir(), "weights")
			require.NoError(t, os.WriteFile(path, data, 0o600))
			f, err := MapFile(rt, path)
			require.NoError(t, err)
			require.Equal(t, len(data), f.Len())
			require.True(t, f.ReadOnly())
			got := make([]byte, len(data))
			require.NoError(t, f.Read(got))
			require.Equal(t, data, got)

			// Elements of a tensor in it, for a kernel.
			w, err := As[uint32](f.View().Bytes(4*page+8, 4*page+8+64))
			require.NoError(t, err)
			y, err := NewSlice[uint32](rt, 16)
			require.NoError(t, err)
			require.NoError(t, rt.Run(func(p *Pass) error { return duplicate(p, y, w) }))
			words := make([]uint32, 16)
			require.NoError(t, y.Read(words))
			require.Equal(t, elementsOf[uint32](data[4*page+8:4*page+8+64]), words)
			require.ErrorIs(t, rt.Run(func(p *Pass) error { return fill(p, w, 1) }), ErrMisuse)
			require.ErrorIs(t, w.Release(), ErrMisuse, "a part of the file")

			for _, c := range [][2]int64{{0, 10}, {1, 1}, {int64(page) - 1, 2}, {20*int64(page) + 5, 20*int64(page) + 118}, {int64(len(data)) - 1, 1}} {
				part, err := MapFileRange(rt, path, c[0], c[1])
				require.NoError(t, err)
				got := make([]byte, c[1])
				require.NoError(t, part.Read(got))
				require.Equal(t, data[c[0]:c[0]+c[1]], got, "%d bytes at %d", c[1], c[0])
				require.NoError(t, part.Release())
			}
			_, err = rt.Submit(func(p *Pass) error { return duplicate(p, y, w) })
			require.NoError(t, err)
			require.NoError(t, f.Release())
			require.NoError(t, rt.Wait(t.Context()))
			require.ErrorIs(t, w.Valid(), ErrClosed)
			require.Zero(t, rt.MemStats().External)
			// Left to Close:
			_, err = MapFile(rt, path)
			require.NoError(t, err)
			require.NoError(t, rt.Close())
		})
	}
}

func TestMapFileRefusals(t *testing.T) {
	rt, dev := softRuntime(t, soft.Options{MaxBufferLength: 1 << 20})
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	_, err := MapFile(rt, path)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	_, err = MapFile(rt, path)
	require.ErrorIs(t, err, ErrShape)
	_, err = MapFile(rt, dir)
	require.Error(t, err)
	require.NoError(t, os.WriteFile(path, make([]byte, 2<<20), 0o600))
	_, err = MapFile(rt, path)
	require.ErrorIs(t, err, ErrLimit)
	part, err := MapFileRange(rt, path, 1<<20, 1000)
	require.NoError(t, err)
	require.NoError(t, part.Release())
	for _, c := range [][2]int64{{-1, 1}, {0, 0}, {0, -1}, {2 << 20, 1}, {1, 2 << 20}, {1 << 62, 1 << 62}} {
		_, err = MapFileRange(rt, path, c[0], c[1])
		require.ErrorIs(t, err, ErrShape)
	}
	require.NoError(t, soft.Inject(dev, soft.Faults{Allocation: 1}))
	_, err = MapFileRange(rt, path, 0, 1000)
	require.ErrorIs(t, err, ErrDevice)
	_, err = MapFile(nil, path)
	require.ErrorIs(t, err, ErrMisuse)
	require.Zero(t, rt.MemStats().Held)
}

func TestReadPages(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	require.NoError(t, os.WriteFile(path, []byte("0123456789"), 0o600))
	f, err := os.Open(path)
	require.NoError(t, err)
	mem, unmap, err := readPages(f, 3, 7, os.Getpagesize())
	require.NoError(t, err)
	require.Equal(t, "3456789\x00", string(mem[:8]))
	require.Len(t, mem, os.Getpagesize())
	unmap()
	require.NoError(t, f.Close())
	_, _, err = readPages(f, 3, 7, os.Getpagesize())
	require.Error(t, err)
}

func TestAs(t *testing.T) {
	rt, _ := softRuntime(t, soft.Options{})
	x, err := SliceOf(rt, []uint8{1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0})
	require.NoError(t, err)
	w, err := As[uint32](x.View().Bytes(4, 8))
	require.NoError(t, err)
	got := []uint32{0}
	require.NoError(t, w.Read(got))
	require.EqualValues(t, 2, got[0])
	for _, v := range []View{x.View(), x.View().Bytes(1, 5), x.View().Bytes(4, 20), {}} {
		_, err = As[uint32](v)
		require.ErrorIs(t, err, ErrShape)
	}
	require.NoError(t, x.Release())
	_, err = As[uint8](x.View())
	require.ErrorIs(t, err, ErrClosed)
	require.ErrorIs(t, w.Valid(), ErrClosed)
	require.True(t, errors.Is(err, ErrClosed))
}
