//go:build linux && objcdouble

package double

import (
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/objc"
	"github.com/stretchr/testify/require"
)

// device is the double's Metal device.
func device(t testing.TB) mtl.Device {
	t.Helper()
	d, err := mtl.SystemDefaultDevice()
	require.NoError(t, err)
	require.False(t, d.ID().IsGo(), "the system's device comes before software devices")
	t.Cleanup(d.Release)
	return d
}

func TestDevice(t *testing.T) {
	ledger(t)
	d := device(t)
	require.Equal(t, "Metal double", d.Name())
	require.Equal(t, uint64(42), d.RegistryID())
	require.True(t, d.SupportsFamily(mtl.GPUFamilyApple9))
	require.False(t, d.SupportsFamily(mtl.GPUFamily(1)))
	require.Equal(t, mtl.Size{Width: 1024, Height: 1024, Depth: 1024}, d.MaxThreadsPerThreadgroup())
	all := mtl.Devices()
	require.Equal(t, d.ID(), all[0].ID())
	for _, other := range all {
		other.Release()
	}
}

func TestBufferMemory(t *testing.T) {
	ledger(t)
	d := device(t)
	b := d.NewBufferWithBytes([]byte("heat"), mtl.ResourceStorageModeShared)
	defer b.Release()
	require.Equal(t, "heat", string(b.Contents()))
	b.Contents()[0] = 'b'
	require.Equal(t, "beat", string(b.Contents()))
	require.True(t, d.NewBufferWithLength(0, 0).IsNil())
}

func TestErrorsOfTheDevice(t *testing.T) {
	ledger(t)
	d := device(t)
	_, err := d.NewLibraryWithData([]byte("no library"))
	var e *objc.Error
	require.True(t, errors.As(err, &e), "%v", err)
	require.Equal(t, "MTLLibraryErrorDomain", e.Domain)
	require.Contains(t, e.Description, "not a metallib")
	_, err = d.NewLibraryWithSource("#error", mtl.CompileOptions{})
	require.True(t, errors.As(err, &e), "%v", err)
	require.Equal(t, 3, e.Code)
	library, err := d.NewLibraryWithData([]byte("MTLB…"))
	require.NoError(t, err)
	defer library.Release()
	require.True(t, library.NewFunctionWithName("missing").IsNil())
	f := library.NewFunctionWithName("add")
	defer f.Release()
	require.Equal(t, "add", f.Name())
}

// Borrowed objects live as long as the pool, and no longer.
func TestPoolsEndBorrowedObjects(t *testing.T) {
	ledger(t)
	d := device(t)
	q := d.NewCommandQueue()
	defer q.Release()
	before := call(t, "objcdouble_live_objects")
	pool := objc.NewPool()
	b := q.CommandBuffer()
	e := b.ComputeCommandEncoder()
	require.Equal(t, before+2, call(t, "objcdouble_live_objects"))
	inner := objc.NewPool()
	b.BlitCommandEncoder()
	require.Equal(t, before+3, call(t, "objcdouble_live_objects"))
	inner.Drain()
	require.Equal(t, before+2, call(t, "objcdouble_live_objects"))
	e.Retain()
	pool.Drain()
	require.Equal(t, before+1, call(t, "objcdouble_live_objects"))
	e.Release()
}

// Completion handlers run on threads that Go never saw, more of them than purego has callbacks.
func TestCompletionHandlers(t *testing.T) {
	ledger(t)
	d := device(t)
	q := d.NewCommandQueue()
	defer q.Release()
	n := 3000
	if testing.Short() {
		n = 50
	}
	done := make(chan objc.ID, 1)
	for range n {
		pool := objc.NewPool()
		b := q.CommandBuffer()
		require.NoError(t, b.AddCompletedHandler(func(c mtl.CommandBuffer) { done <- c.ID() }))
		b.Commit()
		select {
		case id := <-done:
			require.Equal(t, b.ID(), id)
		case <-time.After(time.Minute):
			t.Fatal("no completion")
		}
		require.Equal(t, mtl.CommandBufferStatusCompleted, b.Status())
		require.InDelta(t, 0.25, b.GPUEndTime()-b.GPUStartTime(), 0)
		pool.Drain()
	}
}

func TestPanicInHandlerIsCaught(t *testing.T) {
	ledger(t)
	d := device(t)
	q := d.NewCommandQueue()
	defer q.Release()
	pool := objc.NewPool()
	defer pool.Drain()
	b := q.CommandBuffer()
	done := make(chan struct{})
	require.NoError(t, b.AddCompletedHandler(func(mtl.CommandBuffer) { defer close(done); panic("in a handler") }))
	b.Commit()
	<-done
	err := objc.TakeError()
	for late := time.Now().Add(time.Minute); err == nil && time.Now().Before(late); err = objc.TakeError() {
		time.Sleep(time.Millisecond)
	}
	require.ErrorContains(t, err, "in a handler")
}

func TestNewerSelectorsAreAskedFor(t *testing.T) {
	d := device(t)
	require.False(t, d.RespondsTo("newMTL4CommandQueue"))
	require.True(t, d.RespondsTo("newSharedEvent"))
}

// Messages allocate nothing.
func TestSendingAllocatesNothing(t *testing.T) {
	d := device(t)
	q := d.NewCommandQueue()
	defer q.Release()
	pool := objc.NewPool()
	defer pool.Drain()
	e := q.CommandBuffer().ComputeCommandEncoder()
	b := d.NewBufferWithLength(16, mtl.ResourceStorageModeShared)
	defer b.Release()
	size := mtl.Size{Width: 1, Height: 1, Depth: 1}
	resources := []mtl.Resource{b.Resource}
	runtime.GC()
	require.Zero(t, testing.AllocsPerRun(100, func() {
		e.SetBuffer(b, 0, 0)
		e.DispatchThreadgroups(size, size)
		e.UseResources(resources, mtl.ResourceUsageRead)
		e.MemoryBarrierWithScope(mtl.BarrierScopeBuffers)
	}))
}

func BenchmarkSetBuffer(b *testing.B) {
	d := device(b)
	q := d.NewCommandQueue()
	defer q.Release()
	pool := objc.NewPool()
	defer pool.Drain()
	e := q.CommandBuffer().ComputeCommandEncoder()
	buffer := d.NewBufferWithLength(16, mtl.ResourceStorageModeShared)
	defer buffer.Release()
	b.ReportAllocs()
	for b.Loop() {
		e.SetBuffer(buffer, 0, 0)
	}
}
