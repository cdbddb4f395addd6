package runtime

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/objc"
)

func TestFailedSubmission(t *testing.T) {
	for _, noTimeouts := range []bool{false, true} {
		d := &fake{noTimeouts: noTimeouts}
		rt := d.open(t)
		x, err := NewSlice[uint32](rt, 4)
		require.NoError(t, err)
		y, err := NewSlice[uint32](rt, 4)
		require.NoError(t, err)
		require.NoError(t, rt.Run(func(p *Pass) error { return fill(p, y, 5) }))
		d.fail.Store(2)
		good, err := rt.Submit(func(p *Pass) error { return fill(p, x, 1) })
		require.NoError(t, err)
		bad, err := rt.Submit(func(p *Pass) error { return bump(p, x, 1) })
		require.NoError(t, err)
		after, err := rt.Submit(func(p *Pass) error { return bump(p, x, 1) })
		if err == nil {
			err = after.Wait(t.Context())
		}
		require.ErrorIs(t, err, ErrDevice, "follows a failure")
		require.NoError(t, good.Wait(t.Context()))
		err = bad.Wait(context.Background())
		require.ErrorIs(t, err, ErrDevice)
		var de *DeviceError
		require.True(t, errors.As(err, &de))
		require.Equal(t, DeviceError{Op: "command buffer", Domain: "MTLCommandBufferErrorDomain", Code: 3, Text: "page fault in kernel add"}, *de)
		require.ErrorIs(t, bad.Err(), ErrDevice)
		require.NoError(t, good.Err())
		require.ErrorIs(t, rt.Err(), ErrDevice)
		require.ErrorIs(t, rt.Run(func(p *Pass) error { return nil }), ErrDevice)
		_, err = NewSlice[uint32](rt, 1)
		require.ErrorIs(t, err, ErrDevice)
		require.ErrorIs(t, x.Read(make([]uint32, 4)), ErrDevice)
		got := make([]uint32, 4)
		require.NoError(t, y.Read(got), "was written before the failure")
		require.EqualValues(t, 5, got[0])

		again, err := rt.Reopen()
		require.NoError(t, err)
		require.NoError(t, again.Err())
		z, err := NewSlice[uint32](again, 4)
		require.NoError(t, err)
		require.NoError(t, again.Run(func(p *Pass) error { return fill(p, z, 5) }))
		require.NoError(t, again.Close())
	}
}

func TestFailureSeenByRunAndReplay(t *testing.T) {
	d := new(fake)
	rt := d.open(t)
	x, err := NewSlice[uint32](rt, 4)
	require.NoError(t, err)
	prog, err := rt.Record(func(p *Pass) error { return bump(p, x, 1) })
	require.NoError(t, err)
	d.fail.Store(2)
	require.NoError(t, prog.Run())
	require.ErrorIs(t, prog.Run(), ErrDevice)
	_, err = prog.Replay()
	require.ErrorIs(t, err, ErrDevice)
	_, err = rt.Record(func(p *Pass) error { return nil })
	require.ErrorIs(t, err, ErrDevice)
	require.NoError(t, prog.Release())
	require.NoError(t, rt.Close(), "the failure was reported before")
}

func TestUnseenFailureIsReportedByClose(t *testing.T) {
	d := new(fake)
	rt := d.open(t)
	x, err := NewSlice[uint32](rt, 4)
	require.NoError(t, err)
	d.fail.Store(1)
	_, err = rt.Submit(func(p *Pass) error { return fill(p, x, 1) })
	require.NoError(t, err)
	require.ErrorIs(t, rt.Close(), ErrDevice)
}

// giveUpAfter has the runtime give a device up that makes no progress for so long. Until a test calls it, the time is a long one: a
// machine may be so slow that a short one would be over before the test is where it wants to be.
func giveUpAfter(rt *Runtime, d time.Duration) {
	rt.queue.mu.Lock()
	defer rt.queue.mu.Unlock()
	rt.cfg.timeout = d
}

func TestHang(t *testing.T) {
	d := new(fake)
	rt := d.open(t, WithMaxInFlight(2))
	x, err := NewSlice[uint32](rt, 4)
	require.NoError(t, err)
	d.hang.Store(true)
	s, err := rt.Submit(func(p *Pass) error { return fill(p, x, 1) })
	require.NoError(t, err)
	require.False(t, s.Done())
	require.NoError(t, s.Err())
	require.Zero(t, s.GPUTime())

	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Millisecond)
	defer cancel()
	err = s.Wait(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorIs(t, err, ErrTimeout)
	require.NotErrorIs(t, err, ErrDevice)
	require.NoError(t, rt.Err(), "the deadline was the caller's")
	ctx, cancel = context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, s.Wait(ctx), context.Canceled)

	giveUpAfter(rt, 20*time.Millisecond)
	err = s.Wait(t.Context())
	require.ErrorIs(t, err, ErrTimeout)
	require.ErrorIs(t, err, ErrDevice)
	require.ErrorIs(t, rt.Err(), ErrTimeout)
	require.True(t, s.Done())
	_, err = rt.Submit(func(p *Pass) error { return fill(p, x, 1) })
	require.ErrorIs(t, err, ErrTimeout)
	require.ErrorIs(t, x.Write(make([]uint32, 4)), ErrTimeout)
	live := objc.LiveObjects()
	require.NoError(t, rt.Close())
	require.Less(t, objc.LiveObjects(), live)
	require.EqualValues(t, 1, x.view.a.refs.Load(), "the device may still write to it")
}

func TestHangWithQueueFull(t *testing.T) {
	d := new(fake)
	rt := d.open(t, WithMaxInFlight(2))
	x, err := NewSlice[uint32](rt, 4)
	require.NoError(t, err)
	d.hang.Store(true)
	for range 2 {
		_, err = rt.Submit(func(p *Pass) error { return fill(p, x, 1) })
		require.NoError(t, err)
	}
	giveUpAfter(rt, 20*time.Millisecond)
	_, err = rt.Submit(func(p *Pass) error { return fill(p, x, 1) })
	require.ErrorIs(t, err, ErrTimeout)
	require.NoError(t, rt.Close())
}

func TestAllocationFailure(t *testing.T) {
	d := new(fake)
	rt := d.open(t)
	x, err := NewSlice[uint32](rt, 100)
	require.NoError(t, err)
	require.NoError(t, x.Release())
	d.noBuffers.Store(true)
	y, err := NewSlice[uint32](rt, 100)
	require.NoError(t, err, "from the pool")
	_, err = NewSlice[uint32](rt, 100)
	require.ErrorIs(t, err, ErrDevice)
	// The const arena cannot grow either: the launch is refused and the pass goes on.
	require.NoError(t, rt.Run(func(p *Pass) error {
		require.ErrorIs(t, fill(p, y, 1), ErrDevice)
		require.Zero(t, p.Count())
		d.noBuffers.Store(false)
		return fill(p, y, 1)
	}))
}

func TestLibraryRefused(t *testing.T) {
	d := &fake{refuseData: true}
	d.prepare()
	defer d.id.Release()
	before := objc.LiveObjects()
	_, err := openFake(d)
	require.ErrorIs(t, err, ErrDevice)
	require.ErrorContains(t, err, "not supported on this OS")
	require.Equal(t, before, objc.LiveObjects())

	rt, err := openFake(d, withBuiltin("source"))
	require.NoError(t, err)
	require.Equal(t, OriginSource, rt.LibraryOrigin())
	x, err := NewSlice[uint32](rt, 100)
	require.NoError(t, err)
	require.Equal(t, OriginNone, rt.KernelOrigin("fill"))
	require.NoError(t, rt.Run(func(p *Pass) error { return fill(p, x, 1) }))
	require.Equal(t, OriginSource, rt.KernelOrigin("fill"))
	require.NoError(t, rt.Close())

	d.refuseSource = true
	_, err = openFake(d, withBuiltin("source"))
	require.ErrorIs(t, err, ErrDevice)
	require.ErrorContains(t, err, "not supported on this OS")
	require.ErrorContains(t, err, "no compiler")
	require.Equal(t, before, objc.LiveObjects())
}

func TestKernelRefused(t *testing.T) {
	d := &fake{refuseBinary: "add"}
	d.prepare()
	defer d.id.Release()
	before := objc.LiveObjects()
	rt, err := openFake(d, withBuiltin("source"))
	require.NoError(t, err)
	require.Equal(t, OriginEmbedded, rt.LibraryOrigin())
	x, err := NewSlice[uint32](rt, 4)
	require.NoError(t, err)
	require.NoError(t, rt.Run(func(p *Pass) error { return errors.Join(fill(p, x, 1), bump(p, x, 1)) }))
	require.Equal(t, OriginEmbedded, rt.KernelOrigin("fill"))
	require.Equal(t, OriginSource, rt.KernelOrigin("add"))
	require.NoError(t, rt.Close())

	d.refuseSource = true
	rt, err = openFake(d, withBuiltin("source"))
	require.NoError(t, err)
	x, err = NewSlice[uint32](rt, 4)
	require.NoError(t, err)
	err = rt.Run(func(p *Pass) error { return bump(p, x, 1) })
	require.ErrorIs(t, err, ErrDevice)
	require.ErrorContains(t, err, "cannot be compiled")
	require.ErrorContains(t, err, "no compiler")
	require.NoError(t, rt.Close())
	require.Equal(t, before, objc.LiveObjects())
}

func TestDevicesRefused(t *testing.T) {
	d := &fake{families: 5}
	rt := d.open(t)
	require.Equal(t, 5, rt.Device().Family)
	require.False(t, rt.Device().Indirect)
	require.Contains(t, rt.Device().NoIndirect, "family 5")

	wide := &fake{width: 64}
	rt = wide.open(t)
	_, err := rt.Kernel("fill")
	require.ErrorIs(t, err, ErrLimit)
	require.ErrorContains(t, err, "width 64")
}

func TestNoReflection(t *testing.T) {
	d := &fake{noReflection: true}
	rt := d.open(t)
	_, err := rt.Kernel("fill")
	require.ErrorIs(t, err, ErrKernel)
	require.ErrorContains(t, err, "none from the library's file")

	rt = (&fake{noReflection: true}).open(t, WithLibrary(testKernels))
	x, err := NewSlice[uint32](rt, 4)
	require.NoError(t, err)
	require.NoError(t, rt.Run(func(p *Pass) error { return fill(p, x, 7) }))
	got := make([]uint32, 4)
	require.NoError(t, x.Read(got))
	require.EqualValues(t, 7, got[3])
}

// TestNothingMade lets each message that makes something make nothing: every call says so, nothing leaks, and the
// device works for the next one.
func TestNothingMade(t *testing.T) {
	for _, selector := range []string{
		"newCommandQueueWithMaxCommandBufferCount:", "newSharedEvent", "newLibraryWithData:error:", "newBufferWithLength:options:", "contents",
		"newComputePipelineStateWithDescriptor:options:reflection:error:", "commandBufferWithDescriptor:", "computeCommandEncoderWithDispatchType:",
		"newIndirectCommandBufferWithDescriptor:maxCommandCount:options:", "indirectComputeCommandAtIndex:",
	} {
		t.Run(selector, func(t *testing.T) {
			d := new(fake)
			d.prepare()
			defer d.id.Release()
			before := objc.LiveObjects()
			use := func(refuse bool) (failures int) {
				check := func(err error) bool {
					if err != nil {
						require.ErrorIs(t, err, ErrDevice)
						failures++
					}
					return err == nil
				}
				set := func(on bool) {
					d.refuse.Store(nil)
					if on && refuse {
						d.refuse.Store(&selector)
					}
				}
				set(true)
				rt, err := openFake(d)
				if !check(err) {
					return
				}
				x, err := NewSlice[uint32](rt, 4)
				if !check(err) {
					set(false)
					x, err = NewSlice[uint32](rt, 4)
					require.NoError(t, err)
					set(true)
				}
				encode := func(p *Pass) error { return fill(p, x, 5) }
				check(rt.Run(encode))
				prog, err := rt.Record(encode)
				if check(err) {
					if ok, why := prog.Indirect(); !ok {
						require.NotEmpty(t, why)
						failures++
					}
					check(prog.Run())
					set(false)
					require.NoError(t, prog.Run())
				}
				set(false)
				require.NoError(t, rt.Run(encode), "the next one works")
				require.NoError(t, rt.Err())
				require.NoError(t, rt.Close())
				return
			}
			require.NotZero(t, use(true))
			require.Zero(t, use(false))
			require.Equal(t, before, objc.LiveObjects())
			require.NoError(t, objc.TakeError())
		})
	}
}

func TestEncoderStates(t *testing.T) {
	for s, want := range map[mtl.CommandEncoderErrorState]string{
		mtl.CommandEncoderErrorStateUnknown: "in an unknown state", mtl.CommandEncoderErrorStateCompleted: "completed",
		mtl.CommandEncoderErrorStateAffected: "affected by another", mtl.CommandEncoderErrorStatePending: "pending",
		mtl.CommandEncoderErrorStateFaulted: "faulted",
	} {
		require.Equal(t, want, encoderState(s))
	}
	require.Equal(t, &DeviceError{Op: "x"}, deviceError("x", nil))
	require.Equal(t, &DeviceError{Op: "x", Text: "y"}, deviceError("x", errors.New("y")))
}
