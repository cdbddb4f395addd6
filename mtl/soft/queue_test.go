package soft

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/objc"
)

// fill encodes that a buffer is filled with a value.
func fill(cb mtl.CommandBuffer, b mtl.Buffer, v byte) {
	e := cb.BlitCommandEncoder()
	e.FillBuffer(b, mtl.Range{Location: 0, Length: b.Length()}, v)
	e.EndEncoding()
}

func TestCommandBufferStates(t *testing.T) {
	dev := open(t, Options{})
	q := newQueue(t, dev)
	q.SetLabel("main")
	require.Equal(t, "main", q.Label())
	b := newBuffer(t, dev, 64)
	cb := q.CommandBuffer()
	require.Equal(t, mtl.CommandBufferStatusNotEnqueued, cb.Status())
	require.Equal(t, q.ID(), cb.CommandQueue().ID())
	require.True(t, cb.RetainedReferences())
	require.Zero(t, cb.GPUEndTime())
	fill(cb, b, 3)
	cb.Enqueue()
	require.Equal(t, mtl.CommandBufferStatusEnqueued, cb.Status())
	mustRun(t, cb)
	require.EqualValues(t, 3, b.Contents()[63])
	require.Greater(t, cb.GPUStartTime(), 0.0)
	require.GreaterOrEqual(t, cb.GPUEndTime(), cb.GPUStartTime())
	require.GreaterOrEqual(t, cb.GPUStartTime(), cb.KernelEndTime())
	require.GreaterOrEqual(t, cb.KernelEndTime(), cb.KernelStartTime())
}

// TestOrder runs what was enqueued first first, even if it is committed last.
func TestOrder(t *testing.T) {
	dev := open(t, Options{})
	q := newQueue(t, dev)
	b := newBuffer(t, dev, 16)
	first, second := q.CommandBuffer(), q.CommandBuffer()
	fill(first, b, 1)
	fill(second, b, 2)
	first.Enqueue()
	second.Commit()
	time.Sleep(5 * time.Millisecond)
	require.Equal(t, mtl.CommandBufferStatusCommitted, second.Status())
	first.Commit()
	second.WaitUntilCompleted()
	require.EqualValues(t, 2, b.Contents()[0])
}

// TestGivenUp lets command buffers go that were enqueued, or encoded, and never committed.
func TestGivenUp(t *testing.T) {
	dev := open(t, Options{})
	q := newQueue(t, dev)
	b := newBuffer(t, dev, 16)
	func() {
		defer objc.NewPool().Drain()
		cb := q.CommandBuffer()
		cb.Enqueue()
		fill(cb, b, 1)
	}()
	func() {
		defer objc.NewPool().Drain()
		cb := q.CommandBuffer()
		cb.ComputeCommandEncoder() // left open
	}()
	cb := q.CommandBuffer()
	fill(cb, b, 2)
	mustRun(t, cb)
	require.EqualValues(t, 2, b.Contents()[0])
}

// TestMaxCommandBuffers makes a queue wait when too many command buffers are outstanding.
func TestMaxCommandBuffers(t *testing.T) {
	dev := open(t, Options{})
	q := dev.NewCommandQueueWithMaxCommandBufferCount(2)
	defer q.Release()
	event := dev.NewSharedEvent()
	defer event.Release()
	for range 2 {
		cb := q.CommandBuffer()
		cb.EncodeWaitForEvent(event.Event, 1)
		cb.Commit()
	}
	made := make(chan struct{})
	go func() {
		defer close(made)
		defer objc.NewPool().Drain()
		q.CommandBuffer()
	}()
	select {
	case <-made:
		t.Fatal("the third command buffer did not wait")
	case <-time.After(20 * time.Millisecond):
	}
	event.SetSignaledValue(1)
	<-made
	require.True(t, dev.NewCommandQueueWithMaxCommandBufferCount(0).IsNil())
	desc, err := mtl.NewCommandQueueDescriptor(dev)
	require.NoError(t, err)
	defer desc.Release()
	desc.SetMaxCommandBufferCount(5)
	other := dev.NewCommandQueueWithDescriptor(desc)
	require.Equal(t, 5, valueOf[*queue](uintptr(other.ID())).max)
	other.Release()
}

func TestHandlers(t *testing.T) {
	dev := open(t, Options{})
	q := newQueue(t, dev)
	b := newBuffer(t, dev, 16)
	var mu sync.Mutex
	var heard []string
	note := func(s string) {
		mu.Lock()
		defer mu.Unlock()
		heard = append(heard, s)
	}
	scheduled := make(chan struct{})
	for i := range 3 {
		cb := q.CommandBuffer()
		fill(cb, b, byte(i))
		if i == 0 {
			require.NoError(t, cb.AddScheduledHandler(func(mtl.CommandBuffer) { close(scheduled) }))
		}
		for k := range 2 {
			require.NoError(t, cb.AddCompletedHandler(func(done mtl.CommandBuffer) {
				require.Equal(t, mtl.CommandBufferStatusCompleted, done.Status())
				note(fmt.Sprint(i, k))
			}))
		}
		cb.Commit()
		if i == 2 {
			cb.WaitUntilCompleted()
		}
	}
	<-scheduled
	mu.Lock()
	defer mu.Unlock()
	require.Equal(t, []string{"0 0", "0 1", "1 0", "1 1", "2 0", "2 1"}, heard)
}

// TestHandlerMayWait waits for a later command buffer inside a handler: the queue goes on meanwhile.
func TestHandlerMayWait(t *testing.T) {
	dev := open(t, Options{})
	q := newQueue(t, dev)
	b := newBuffer(t, dev, 16)
	first, second := q.CommandBuffer(), q.CommandBuffer()
	fill(first, b, 1)
	fill(second, b, 2)
	committed := make(chan struct{})
	require.NoError(t, first.AddCompletedHandler(func(mtl.CommandBuffer) {
		<-committed
		second.WaitUntilCompleted()
	}))
	first.Commit()
	second.Commit()
	close(committed)
	first.WaitUntilCompleted()
	require.EqualValues(t, 2, b.Contents()[0])
}

func TestEvents(t *testing.T) {
	dev := open(t, Options{})
	one, two := newQueue(t, dev), newQueue(t, dev)
	b, c := newBuffer(t, dev, 16), newBuffer(t, dev, 16)
	event := dev.NewEvent()
	defer event.Release()
	event.SetLabel("step")
	later, earlier := one.CommandBuffer(), two.CommandBuffer()
	later.EncodeWaitForEvent(event, 7)
	e := later.BlitCommandEncoder()
	e.CopyFromBuffer(b, 0, c, 0, 16)
	e.EndEncoding()
	later.Commit()
	fill(earlier, b, 5)
	earlier.EncodeSignalEvent(event, 7)
	earlier.Commit()
	later.WaitUntilCompleted()
	require.EqualValues(t, 5, c.Contents()[0])
	bad := one.CommandBuffer()
	bad.EncodeSignalEvent(mtl.EventOf(b.ID()), 1)
	mustFail(t, bad, mtl.CommandBufferErrorInvalidResource, "encodeSignalEvent:value:", "class IngotBuffer")
}

// TestEventTimeout waits for a value that nobody signals.
func TestEventTimeout(t *testing.T) {
	dev := open(t, Options{EventTimeout: 50})
	q := newQueue(t, dev)
	event := dev.NewEvent()
	defer event.Release()
	event.SetLabel("step")
	signal, stuck := q.CommandBuffer(), q.CommandBuffer()
	signal.EncodeSignalEvent(event, 7)
	mustRun(t, signal)
	stuck.EncodeWaitForEvent(event, 8)
	mustFail(t, stuck, mtl.CommandBufferErrorTimeout, "value 8", `"step"`, "50 ms", "its value is 7")
}

func TestSharedEvents(t *testing.T) {
	dev := open(t, Options{})
	q := newQueue(t, dev)
	event := dev.NewSharedEvent()
	defer event.Release()
	require.Zero(t, event.SignaledValue())
	require.False(t, event.WaitUntilSignaledValue(1, 1))
	require.False(t, event.WaitUntilSignaledValue(1, 0))
	cb := q.CommandBuffer()
	cb.EncodeSignalEvent(event.Event, 3)
	cb.Commit()
	require.True(t, event.WaitUntilSignaledValue(3, 60_000))
	require.True(t, event.WaitUntilSignaledValue(2, ^uint64(0)))
	require.EqualValues(t, 3, event.SignaledValue())

	heard := make(chan uint64, 2)
	block, err := objc.NewBlock(event.ID(), 2, func(args []uintptr) { heard <- uint64(args[1]) })
	require.NoError(t, err)
	notify := objc.RegisterName("notifyListener:atValue:block:")
	objc.Send(event.ID(), notify, 0, 2, uintptr(block))
	require.EqualValues(t, 3, <-heard)
	objc.Send(event.ID(), notify, 0, 4, uintptr(block))
	event.SetSignaledValue(9)
	require.EqualValues(t, 9, <-heard)
	objc.Send(event.ID(), notify, 0, 100, uintptr(block)) // never called
	block.Release()
}

// TestWaiters wakes many waiters, each with its own value, under contention.
func TestWaiters(t *testing.T) {
	dev := open(t, Options{})
	event := dev.NewSharedEvent()
	defer event.Release()
	var all sync.WaitGroup
	for i := range 32 {
		all.Add(1)
		go func() {
			defer all.Done()
			require.True(t, event.WaitUntilSignaledValue(uint64(i), 60_000))
			require.GreaterOrEqual(t, event.SignaledValue(), uint64(i))
		}()
	}
	for v := range uint64(32) {
		event.SetSignaledValue(v)
	}
	all.Wait()
}

func TestInjectedFaults(t *testing.T) {
	dev := open(t, Options{Faults: Faults{Commit: 2, Allocation: 1}})
	q := newQueue(t, dev)
	require.True(t, dev.NewBufferWithLength(16, 0).IsNil())
	b := newBuffer(t, dev, 16)
	mustRun(t, q.CommandBuffer())
	cb := q.CommandBuffer()
	fill(cb, b, 1)
	mustFail(t, cb, mtl.CommandBufferErrorInternal, "told to fail")
	require.Zero(t, b.Contents()[0])
	mustRun(t, q.CommandBuffer())
	require.NoError(t, Inject(dev, Faults{Allocation: 2}))
	newBuffer(t, dev, 16)
	require.True(t, dev.NewBufferWithLength(16, 0).IsNil())
	require.ErrorContains(t, Refusal(dev), "told to fail")
	s := Stats(dev)
	require.EqualValues(t, 3, s.Commits)
	require.EqualValues(t, 1, s.Failures)
	require.EqualValues(t, 3, s.Messages["commit"])
	require.Greater(t, s.TotalMessages(), s.Messages["commit"])
}

// TestHang never completes a command buffer, until the device is removed.
func TestHang(t *testing.T) {
	dev := open(t, Options{})
	q := dev.NewCommandQueueWithMaxCommandBufferCount(2)
	defer q.Release()
	event := dev.NewSharedEvent()
	defer event.Release()
	require.NoError(t, Inject(dev, Faults{Hang: 1}))
	stuck, behind := q.CommandBuffer(), q.CommandBuffer()
	stuck.EncodeSignalEvent(event.Event, 1)
	stuck.Commit()
	behind.Commit()
	waitFor(t, "the first to begin", func() bool { return stuck.Status() == mtl.CommandBufferStatusScheduled })
	require.False(t, event.WaitUntilSignaledValue(1, 20))
	require.Equal(t, mtl.CommandBufferStatusCommitted, behind.Status())
	blocked := make(chan struct{})
	go func() {
		defer close(blocked)
		defer objc.NewPool().Drain()
		mustFail(t, q.CommandBuffer(), mtl.CommandBufferErrorDeviceRemoved)
	}()
	time.Sleep(5 * time.Millisecond)
	require.NoError(t, Remove(dev))
	stuck.WaitUntilCompleted()
	require.ErrorContains(t, stuck.Error(), "removed")
	behind.WaitUntilCompleted()
	require.ErrorContains(t, behind.Error(), "removed")
	<-blocked
}

func TestRemoveOnCommit(t *testing.T) {
	dev := open(t, Options{Faults: Faults{Remove: 2}})
	q := newQueue(t, dev)
	mustRun(t, q.CommandBuffer())
	mustFail(t, q.CommandBuffer(), mtl.CommandBufferErrorDeviceRemoved, "the device was removed")
	mustFail(t, q.CommandBuffer(), mtl.CommandBufferErrorDeviceRemoved)
}

// TestEncoderInfo says in the error which encoders ran.
func TestEncoderInfo(t *testing.T) {
	dev := open(t, Options{})
	q := newQueue(t, dev)
	b := newBuffer(t, dev, 64)
	desc, err := mtl.NewCommandBufferDescriptor(dev)
	require.NoError(t, err)
	defer desc.Release()
	desc.SetErrorOptions(mtl.CommandBufferErrorOptionEncoderExecutionStatus)
	desc.SetRetainedReferences(false)
	cb := q.CommandBufferWithDescriptor(desc)
	require.False(t, cb.RetainedReferences())
	require.Equal(t, mtl.CommandBufferErrorOptionEncoderExecutionStatus, cb.ErrorOptions())
	gone := dev.NewBufferWithLength(16, 0)
	cb.SetLabel("frame")
	for i, target := range []mtl.Buffer{b, gone, b} {
		e := cb.BlitCommandEncoder()
		e.SetLabel(fmt.Sprint("fill ", i))
		e.InsertDebugSignpost("here")
		e.FillBuffer(target, mtl.Range{Location: 0, Length: 16}, byte(i+1))
		e.EndEncoding()
	}
	gone.Release()
	mustFail(t, cb, mtl.CommandBufferErrorInvalidResource, `command buffer "frame"`, `blit encoder "fill 1"`, "has been released")
	require.EqualValues(t, 1, b.Contents()[0], "what came before the failure ran, what came after did not")

	errID := objc.ID(objc.Send(cb.ID(), objc.RegisterName("error")))
	info := objc.ID(objc.Send(errID, objc.RegisterName("userInfo")))
	key := objc.NSString(encoderInfoKey)
	defer key.Release()
	list := mtl.ArrayOf(objc.ID(objc.Send(info, objc.RegisterName("objectForKey:"), uintptr(key))))
	require.Equal(t, 3, list.Len())
	for i, state := range []mtl.CommandEncoderErrorState{mtl.CommandEncoderErrorStateCompleted, mtl.CommandEncoderErrorStateFaulted, mtl.CommandEncoderErrorStatePending} {
		e := mtl.CommandBufferEncoderInfoOf(list.At(i).ID())
		require.Equal(t, fmt.Sprint("fill ", i), e.Label())
		require.Equal(t, state, e.ErrorState())
		require.Equal(t, []string{"here"}, e.DebugSignposts().Strings())
	}
}

// TestRetainedReferences keeps what a command buffer uses alive.
func TestRetainedReferences(t *testing.T) {
	dev := open(t, Options{})
	q := newQueue(t, dev)
	b := dev.NewBufferWithLength(64, 0)
	event := dev.NewSharedEvent()
	defer event.Release()
	cb := q.CommandBuffer()
	cb.EncodeWaitForEvent(event.Event, 1)
	fill(cb, b, 1)
	b.Release()
	cb.Commit()
	require.EqualValues(t, 64, dev.CurrentAllocatedSize())
	event.SetSignaledValue(1)
	cb.WaitUntilCompleted()
	require.NoError(t, cb.Error())
	require.Zero(t, dev.CurrentAllocatedSize(), "it lets go when it has completed")
}

// TestManyQueues commits from many goroutines.
func TestManyQueues(t *testing.T) {
	dev := open(t, Options{})
	var all sync.WaitGroup
	for i := range 4 {
		all.Add(1)
		go func() {
			defer all.Done()
			defer objc.NewPool().Drain()
			q := dev.NewCommandQueue()
			defer q.Release()
			b := dev.NewBufferWithLength(4096, 0)
			defer b.Release()
			for k := range 50 {
				func() {
					defer objc.NewPool().Drain()
					cb := q.CommandBuffer()
					fill(cb, b, byte(i*50+k))
					if k%3 == 0 {
						_ = cb.AddCompletedHandler(func(mtl.CommandBuffer) {})
					}
					cb.Commit()
					if k%7 == 0 {
						cb.WaitUntilCompleted()
					}
				}()
			}
			cb := q.CommandBuffer()
			cb.Commit()
			cb.WaitUntilCompleted()
			require.EqualValues(t, byte(i*50+49), b.Contents()[4095])
		}()
	}
	all.Wait()
}
