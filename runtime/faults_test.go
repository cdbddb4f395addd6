package runtime

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/mtl/soft"
)

// TestDeviceErrors sorts Metal's codes.
func TestDeviceErrors(t *testing.T) {
	kinds := []error{ErrTimeout, ErrOutOfMemory, ErrDeviceLost}
	for code, want := range map[mtl.CommandBufferError]error{
		mtl.CommandBufferErrorNone: nil, mtl.CommandBufferErrorInternal: nil, mtl.CommandBufferErrorTimeout: ErrTimeout,
		mtl.CommandBufferErrorPageFault: nil, mtl.CommandBufferErrorAccessRevoked: ErrDeviceLost, mtl.CommandBufferErrorNotPermitted: nil,
		mtl.CommandBufferErrorOutOfMemory: ErrOutOfMemory, mtl.CommandBufferErrorInvalidResource: nil,
		mtl.CommandBufferErrorDeviceRemoved: ErrDeviceLost, mtl.CommandBufferErrorStackOverflow: nil,
	} {
		e := &Error{Func: "f", Err: &Error{Err: &DeviceError{Op: "command buffer", Domain: commandBufferDomain, Code: int(code)}}}
		require.ErrorIs(t, e, ErrDevice)
		require.ErrorIs(t, (*DeviceError)(nil), ErrDevice)
		require.NotErrorIs(t, (*DeviceError)(nil), want)
		for _, kind := range kinds {
			require.Equal(t, kind == want, errors.Is(e, kind), "code %d, %v", code, kind)
		}
		require.Equal(t, want == ErrDeviceLost, lost(e))
		other := &DeviceError{Op: "library", Domain: "MTLLibraryErrorDomain", Code: int(code)}
		require.NotErrorIs(t, other, want)
	}
	require.False(t, lost(&Error{Err: ErrClosed}))
}

// TestDeviceRemoved loses the device under work of every kind: all of it ends, and says why.
func TestDeviceRemoved(t *testing.T) {
	rt, dev := softRuntime(t, soft.Options{})
	x, err := NewSlice[uint32](rt, 16)
	require.NoError(t, err)
	prog, err := rt.Record(func(p *Pass) error { return bump(p, x, 1) })
	require.NoError(t, err)
	require.NoError(t, soft.Inject(dev, soft.Faults{Remove: 2}))
	require.NoError(t, prog.Run())
	require.ErrorIs(t, prog.Run(), ErrDeviceLost)
	require.ErrorIs(t, rt.Err(), ErrDeviceLost)
	require.ErrorIs(t, rt.Run(func(p *Pass) error { return fill(p, x, 1) }), ErrDeviceLost)
	require.ErrorIs(t, x.Read(make([]uint32, 16)), ErrDeviceLost)
	require.ErrorIs(t, x.Write(make([]uint32, 16)), ErrDeviceLost)
	_, err = NewSlice[uint32](rt, 16)
	require.ErrorIs(t, err, ErrDeviceLost)
	_, err = prog.Replay()
	require.ErrorIs(t, err, ErrDeviceLost)
	require.ErrorIs(t, rt.Wait(t.Context()), ErrDeviceLost)
}

// TestEncoderDetail has the error say which encoder failed.
func TestEncoderDetail(t *testing.T) {
	rt, _ := softRuntime(t, soft.Options{})
	x, err := NewSlice[uint32](rt, 4)
	require.NoError(t, err)
	err = rt.Run(func(p *Pass) error {
		l := p.Kernel("fill")
		l.Write(0, x.View())
		l.Uint32(1, 1)
		l.Uint32(2, 1000) // more than there is
		return l.Dispatch(D1(1), D1(32))
	})
	var de *DeviceError
	require.ErrorAs(t, err, &de)
	require.Equal(t, commandBufferDomain, de.Domain)
	require.EqualValues(t, mtl.CommandBufferErrorPageFault, de.Code)
	require.Len(t, de.Encoders, 1)
	require.Contains(t, de.Encoders[0], "faulted")
}

// TestNobodyWaits submits work and calls nothing more: its memory is given back all the same.
func TestNobodyWaits(t *testing.T) {
	rt, _ := softRuntime(t, soft.Options{})
	x, err := NewSlice[uint32](rt, 16)
	require.NoError(t, err)
	a := x.view.a
	_, err = rt.Submit(func(p *Pass) error { return fill(p, x, 1) })
	require.NoError(t, err)
	require.NoError(t, x.Release())
	eventually(t, func() bool { return a.refs.Load() == 0 }, "its memory is kept")
	eventually(t, func() bool {
		rt.queue.mu.Lock()
		defer rt.queue.mu.Unlock()
		return !rt.queue.armed
	}, "the timer runs while nothing is in flight")
}

func TestNobodyWaitsForAHang(t *testing.T) {
	d := new(fake)
	rt := d.open(t, WithTimeout(20*time.Millisecond))
	y, err := NewSlice[uint32](rt, 4)
	require.NoError(t, err)
	d.hang.Store(true)
	_, err = rt.Submit(func(p *Pass) error { return fill(p, y, 1) })
	require.NoError(t, err)
	eventually(t, func() bool { return errors.Is(rt.Err(), ErrTimeout) }, "the device was not given up")
	require.NoError(t, rt.Close())
}

// TestPendingWorkOfAFailedRuntime waits for work that was still pending in a stream when the device failed: it ends with that failure,
// though nothing can be committed any more.
func TestPendingWorkOfAFailedRuntime(t *testing.T) {
	rt, dev := softRuntime(t, soft.Options{}, WithTimeout(time.Second))
	s, x := openStream(t, rt), mustSlice(t, rt, 4)
	f, err := Compute(s, 4, func(p *Pass, out Slice[uint32]) error { return fill(p, out, 7) })
	require.NoError(t, err)
	require.NoError(t, soft.Inject(dev, soft.Faults{Remove: 1}))
	require.ErrorIs(t, rt.Run(func(p *Pass) error { return fill(p, x, 1) }), ErrDeviceLost)
	require.Equal(t, FuturePending, f.State())
	require.ErrorIs(t, f.Wait(t.Context()), ErrDeviceLost)
	require.ErrorIs(t, f.Read(t.Context(), make([]uint32, 4)), ErrDeviceLost)
	require.NoError(t, f.Release())
	require.NoError(t, rt.Close())
}
