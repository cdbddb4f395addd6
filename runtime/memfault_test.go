package runtime

import (
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/mtl/soft"
)

// memoryScenario uses memory of every kind. Each step may fail, with an error of this package; a step that does not must
// have had its effect. It counts the steps that failed.
func memoryScenario(t *testing.T, dev mtl.Device, path string) (failed int) {
	ok := func(err error) bool {
		if err == nil {
			return true
		}
		failed++
		var e *Error
		require.ErrorAs(t, err, &e)
		require.True(t, errors.Is(err, ErrDevice), "%v", err)
		return false
	}
	rt, err := Open(WithDevice(dev), WithLibrary(testKernels))
	if !ok(err) {
		return failed
	}
	defer func() { ok(rt.Close()) }()
	const n = 40
	ones, got := make([]uint32, n), make([]uint32, n)
	for i := range ones {
		ones[i] = 1
	}
	// round writes to memory from the host, changes it with a kernel, and reads it.
	round := func(x Slice[uint32], what string) {
		if !ok(x.Write(ones)) {
			return
		}
		if !ok(rt.Run(func(p *Pass) error { return bump(p, x.Slice(0, n/2), 4) })) {
			return
		}
		if ok(x.Read(got)) {
			require.EqualValues(t, 7, got[0], what)
			require.EqualValues(t, 1, got[n-1], what)
		}
	}
	for _, storage := range []Storage{Shared, Private} {
		x, err := NewSlice[uint32](rt, n, storage)
		if !ok(err) {
			continue
		}
		if ok(x.Read(got)) {
			require.Equal(t, make([]uint32, n), got)
		}
		round(x, storage.String())
		if storage == Shared {
			if m, err := x.Map(); ok(err) {
				require.Len(t, m.Data(), n)
				require.NoError(t, m.Unmap())
			}
		}
		prog, err := rt.Record(func(p *Pass) error { return fill(p, x, 9) })
		if ok(err) {
			if ok(prog.Run()) && ok(x.Read(got)) {
				require.EqualValues(t, 9, got[n-1])
			}
			require.NoError(t, prog.Release())
		}
		require.NoError(t, x.Release())
		if y, err := SliceOf(rt, ones, storage); ok(err) {
			if ok(y.Read(got)) {
				require.Equal(t, ones, got)
			}
			require.NoError(t, y.Release())
		}
	}
	for _, storage := range []Storage{Shared, Private} {
		arena, err := NewTempArena(rt, 512, storage)
		if !ok(err) {
			continue
		}
		for range 2 {
			x, err := Temp[uint32](arena, n)
			require.NoError(t, err)
			if ok(x.Read(got)) {
				require.Equal(t, make([]uint32, n), got)
			}
			round(x, "temporary")
			if !ok(arena.Reset()) {
				require.NoError(t, x.Valid(), "nothing has changed")
				break
			}
			require.ErrorIs(t, x.Valid(), ErrClosed)
		}
		require.NoError(t, arena.Release())
	}
	var released atomic.Int32
	mem := elementsOf[uint32](pages(os.Getpagesize()))
	if x, err := WrapMemory(rt, mem, MemoryOptions{Release: func() { released.Add(1) }}); ok(err) {
		round(x.Slice(0, n), "wrapped memory")
		require.NoError(t, x.Release())
		ok(rt.Wait(t.Context()))
		rt.queue.reap()
		eventually(t, func() bool { return released.Load() == 1 }, "not released")
	}
	if x, err := MapFile(rt, path); ok(err) {
		b := make([]byte, 4)
		if ok(x.Slice(0, 4).Read(b)) {
			require.Equal(t, "file", string(b))
		}
	}
	if b := dev.NewBufferWithLength(4*n, mtl.ResourceStorageModeManaged); !b.IsNil() {
		if x, err := WrapBuffer[uint32](rt, b); ok(err) {
			round(x, "wrapped buffer")
			require.NoError(t, x.Release())
		}
		b.Release()
	}
	s := rt.MemStats()
	require.Equal(t, s.Live+s.Pooled+s.Scalars, s.Held, "every byte is accounted for")
	if s.Resident != 0 {
		require.Equal(t, s.Held, s.Resident)
	}
	_, err = rt.Trim(0)
	require.NoError(t, err)
	return failed
}

// TestMemoryFaultsEverywhere lets every allocation, every contents and every commit of the scenario fail in turn, once and
// twice in a row (an allocation is tried again after the pool was emptied): the steps fail or are right, nothing is left
// (softDevice looks), and the device works for the next runtime.
func TestMemoryFaultsEverywhere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	require.NoError(t, os.WriteFile(path, []byte("file of weights"), 0o600))
	for name, o := range memoryKinds {
		t.Run(name, func(t *testing.T) {
			dev := softDevice(t, o)
			require.Zero(t, memoryScenario(t, dev, path))
			s := soft.Stats(dev)
			objects := s.Objects
			allocations := s.Messages["newBufferWithLength:options:"] + s.Messages["newBufferWithBytesNoCopy:length:options:deallocator:"] +
				s.Messages["newIndirectCommandBufferWithDescriptor:maxCommandCount:options:"]
			require.Greater(t, allocations, uint64(8))
			total := 0
			sweep := func(what string, points uint64, fault func(n int) soft.Faults) {
				for n := 1; n <= int(points); n++ {
					require.NoError(t, soft.Inject(dev, fault(n)))
					total += memoryScenario(t, dev, path)
					require.NoError(t, soft.Inject(dev, soft.Faults{}))
					eventually(t, func() bool { return soft.Stats(dev).Objects == objects }, "%s %d: objects are left", what, n)
				}
				require.Zero(t, memoryScenario(t, dev, path), "the next one works")
			}
			sweep("allocation", allocations, func(n int) soft.Faults { return soft.Faults{Allocation: n} })
			once := total
			sweep("allocations", allocations, func(n int) soft.Faults { return soft.Faults{Allocation: n, Times: 2} })
			require.Greater(t, total-once, int(allocations)/2)
			once = total
			sweep("contents", s.Messages["contents"], func(n int) soft.Faults { return soft.Faults{Contents: n} })
			require.GreaterOrEqual(t, total-once, int(s.Messages["contents"]))
			once = total
			sweep("commit", s.Commits, func(n int) soft.Faults { return soft.Faults{Commit: n} })
			require.GreaterOrEqual(t, total-once, int(s.Commits))
			sweep("residency set", 1, func(n int) soft.Faults { return soft.Faults{ResidencySet: n} })
			t.Logf("%d allocations, %d contents, %d commits; %d steps failed", allocations, s.Messages["contents"], s.Commits, total)
		})
	}
}
