package soft

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/objc"
)

// open makes a device for a test, inside a pool. When the test ends, nothing may be left of either.
func open(t testing.TB, opts Options) mtl.Device {
	t.Helper()
	require.NoError(t, objc.TakeError())
	before := objc.LiveObjects()
	parked := objc.Parked()
	pool := objc.NewPool()
	dev := New(opts)
	d := deviceOf(dev)
	t.Cleanup(func() {
		pool.Drain()
		waitFor(t, "goroutines to end", func() bool { return d.goroutines.Load() == 0 })
		dev.Release()
		if t.Failed() {
			return
		}
		require.NoError(t, objc.TakeError())
		require.Zero(t, objc.Parked()-parked, "objects were borrowed outside of every pool")
		require.Zero(t, d.objects.Load(), "objects of the device are left")
		require.Zero(t, d.allocated.Load(), "memory is left")
		require.Equal(t, before, objc.LiveObjects(), "objects are left")
	})
	return dev
}

func waitFor(t testing.TB, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited too long for %s", what)
		}
	}
}

// newQueue makes a queue that goes when the test ends.
func newQueue(t testing.TB, dev mtl.Device) mtl.CommandQueue {
	q := dev.NewCommandQueue()
	require.False(t, q.IsNil())
	t.Cleanup(q.Release)
	return q
}

// newBuffer makes a buffer that goes when the test ends.
func newBuffer(t testing.TB, dev mtl.Device, n uint) mtl.Buffer {
	b := dev.NewBufferWithLength(n, mtl.ResourceStorageModeShared)
	require.False(t, b.IsNil(), "%v", Refusal(dev))
	t.Cleanup(b.Release)
	return b
}

// mustFail commits a command buffer and wants an error with a code and all of some texts.
func mustFail(t testing.TB, cb mtl.CommandBuffer, code mtl.CommandBufferError, texts ...string) {
	t.Helper()
	cb.Commit()
	cb.WaitUntilCompleted()
	require.Equal(t, mtl.CommandBufferStatusError, cb.Status())
	err := cb.Error()
	var e *objc.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, "MTLCommandBufferErrorDomain", e.Domain)
	require.Equal(t, int(code), e.Code, "%v", err)
	for _, text := range texts {
		require.Contains(t, e.Description, text)
	}
}

// mustRun commits a command buffer and wants it to complete.
func mustRun(t testing.TB, cb mtl.CommandBuffer) {
	t.Helper()
	cb.Commit()
	cb.WaitUntilCompleted()
	require.NoError(t, cb.Error())
	require.Equal(t, mtl.CommandBufferStatusCompleted, cb.Status())
}
