package soft

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/mtl"
)

func TestDevice(t *testing.T) {
	dev := open(t, Options{})
	require.Equal(t, "Ingot Software Device", dev.Name())
	require.NotZero(t, dev.RegistryID())
	require.Equal(t, "ingot", dev.Architecture().Name())
	require.Equal(t, mtl.Size{Width: 1024, Height: 1024, Depth: 1024}, dev.MaxThreadsPerThreadgroup())
	require.True(t, dev.HasUnifiedMemory())
	require.EqualValues(t, 32768, dev.MaxThreadgroupMemoryLength())
	require.Greater(t, dev.MaxBufferLength(), uint(1<<20))
	require.GreaterOrEqual(t, dev.RecommendedMaxWorkingSetSize(), uint64(dev.MaxBufferLength()))
	require.True(t, dev.SupportsFamily(mtl.GPUFamilyApple9))
	require.True(t, dev.SupportsFamily(mtl.GPUFamilyMac2))
	require.True(t, dev.SupportsFamily(mtl.GPUFamilyMetal3))
	require.False(t, dev.SupportsFamily(mtl.GPUFamilyApple10))
	require.False(t, dev.SupportsFamily(mtl.GPUFamilyMetal4))
	require.False(t, dev.SupportsRaytracing())
	require.False(t, dev.ShouldMaximizeConcurrentCompilation())
	dev.SetShouldMaximizeConcurrentCompilation(true)
	require.True(t, dev.ShouldMaximizeConcurrentCompilation())
	require.Positive(t, dev.MaximumConcurrentCompilationTaskCount())
	cpu, gpu := dev.SampleTimestamps()
	require.NotZero(t, cpu)
	require.Equal(t, cpu, gpu)
	require.True(t, dev.NewDefaultLibrary().IsNil())
}

// TestPretend sets what a device reports.
func TestPretend(t *testing.T) {
	dev := open(t, Options{Name: "Apple M1", Families: AppleFamilies(7), OSVersion: Version{14, 5}, DiscreteMemory: true,
		MaxThreads: 512, ThreadgroupMemory: 16384, MaxBufferLength: 4096, NoEventTimeouts: true, NoResidencySets: true})
	require.Equal(t, "Apple M1", dev.Name())
	require.True(t, dev.SupportsFamily(mtl.GPUFamilyApple7))
	require.False(t, dev.SupportsFamily(mtl.GPUFamilyApple8))
	require.False(t, dev.HasUnifiedMemory())
	require.EqualValues(t, 512, dev.MaxThreadsPerThreadgroup().Width)
	require.EqualValues(t, 16384, dev.MaxThreadgroupMemoryLength())
	require.EqualValues(t, 4096, dev.MaxBufferLength())
	require.True(t, dev.RespondsTo("architecture"))
	require.False(t, dev.RespondsTo("newResidencySetWithDescriptor:error:"))
	e := dev.NewSharedEvent()
	defer e.Release()
	require.False(t, e.RespondsTo("waitUntilSignaledValue:timeoutMS:"))
	require.True(t, deviceOf(dev).opts.FirstFamilies)

	require.True(t, dev.NewBufferWithLength(4097, 0).IsNil())
	require.ErrorContains(t, Refusal(dev), "maxBufferLength")
}

func TestBuffers(t *testing.T) {
	dev := open(t, Options{WorkingSet: 1 << 20})
	b := dev.NewBufferWithLength(1000, mtl.ResourceStorageModeShared)
	require.EqualValues(t, 1000, b.Length())
	require.Len(t, b.Contents(), 1000)
	require.Equal(t, make([]byte, 1000), b.Contents())
	require.Zero(t, uintptr(b.ContentsPointer())%alignment)
	require.NotZero(t, b.GPUAddress())
	require.Equal(t, mtl.StorageModeShared, b.StorageMode())
	require.Equal(t, mtl.HazardTrackingModeTracked, b.HazardTrackingMode())
	require.Equal(t, dev.ID(), b.Device().ID())
	b.SetLabel("weights")
	require.Equal(t, "weights", b.Label())
	require.True(t, b.Heap().IsNil())
	require.EqualValues(t, 1000, b.AllocatedSize())
	require.EqualValues(t, 1000, dev.CurrentAllocatedSize())

	private := dev.NewBufferWithLength(16, mtl.ResourceStorageModePrivate)
	require.Nil(t, private.Contents())
	require.Equal(t, mtl.StorageModePrivate, private.StorageMode())
	filled := dev.NewBufferWithBytes([]byte("hello"), mtl.ResourceStorageModeShared)
	require.Equal(t, "hello", string(filled.Contents()))

	for _, bad := range []struct {
		n       uint
		options mtl.ResourceOptions
		text    string
	}{
		{0, 0, "at least one byte"},
		{16, mtl.ResourceStorageModeMemoryless, "memoryless"},
		{16, 1 << 20, "not defined"},
		{2 << 20, 0, "working set"},
	} {
		require.True(t, dev.NewBufferWithLength(bad.n, bad.options).IsNil())
		require.ErrorContains(t, Refusal(dev), bad.text)
	}
	b.Release()
	private.Release()
	filled.Release()
	require.Zero(t, dev.CurrentAllocatedSize())
}

func TestNoCopy(t *testing.T) {
	dev := open(t, Options{PageSize: 4096})
	raw := make([]byte, 3*4096)
	skip := -uintptr(unsafe.Pointer(&raw[0])) & 4095
	page := raw[skip : skip+4096]
	freed := 0
	b, err := dev.NewBufferWithBytesNoCopy(unsafe.Pointer(&page[0]), 4096, 0, func(p unsafe.Pointer, n uint) {
		require.Equal(t, unsafe.Pointer(&page[0]), p)
		require.EqualValues(t, 4096, n)
		freed++
	})
	require.NoError(t, err)
	require.False(t, b.IsNil())
	page[7] = 42
	require.EqualValues(t, 42, b.Contents()[7])
	require.Zero(t, freed)
	b.Release()
	require.Equal(t, 1, freed)

	bad, err := dev.NewBufferWithBytesNoCopy(unsafe.Pointer(&page[1]), 4096, 0, nil)
	require.True(t, err != nil || bad.IsNil())
	require.ErrorContains(t, Refusal(dev), "whole pages")
}

func TestHeaps(t *testing.T) {
	dev := open(t, Options{})
	desc, err := mtl.NewHeapDescriptor(dev)
	require.NoError(t, err)
	defer desc.Release()
	desc.SetSize(4096)
	desc.SetStorageMode(mtl.StorageModeShared)
	h := dev.NewHeapWithDescriptor(desc)
	require.False(t, h.IsNil(), "%v", Refusal(dev))
	defer h.Release()
	h.SetLabel("arena")
	require.EqualValues(t, 4096, h.Size())
	a := h.NewBufferWithLength(1000, mtl.ResourceStorageModeShared)
	b := h.NewBufferWithLength(1000, mtl.ResourceStorageModeShared)
	require.Zero(t, a.HeapOffset())
	require.EqualValues(t, 1024, b.HeapOffset())
	require.Equal(t, h.ID(), b.Heap().ID())
	require.EqualValues(t, 2000, h.UsedSize())
	require.EqualValues(t, 2048, h.MaxAvailableSizeWithAlignment(256))
	require.True(t, h.NewBufferWithLength(4096, mtl.ResourceStorageModeShared).IsNil())
	require.ErrorContains(t, Refusal(dev), "no room")
	require.True(t, h.NewBufferWithLength(16, mtl.ResourceStorageModePrivate).IsNil())
	require.ErrorContains(t, Refusal(dev), "storage mode")
	a.Contents()[0] = 7
	a.MakeAliasable()
	require.True(t, a.IsAliasable())
	c := h.NewBufferWithLength(500, mtl.ResourceStorageModeShared)
	require.Zero(t, c.HeapOffset())
	require.EqualValues(t, 7, c.Contents()[0])
	for _, x := range []mtl.Buffer{a, b, c} {
		x.Release()
	}
	require.Zero(t, h.UsedSize())
	require.EqualValues(t, 4096, dev.CurrentAllocatedSize())

	desc.SetType(mtl.HeapTypePlacement)
	p := dev.NewHeapWithDescriptor(desc)
	defer p.Release()
	d := p.NewBufferWithLengthOffset(100, mtl.ResourceStorageModeShared, 512)
	require.EqualValues(t, 512, d.HeapOffset())
	d.Release()
	require.True(t, p.NewBufferWithLength(100, 0).IsNil())
	require.True(t, p.NewBufferWithLengthOffset(100, 0, 4090).IsNil())
	require.EqualValues(t, 1024, dev.HeapBufferSizeAndAlignWithLength(1000, 0).Size)
}

// TestManaged gives CPU and GPU a copy each where memory is not unified.
func TestManaged(t *testing.T) {
	dev := open(t, Options{DiscreteMemory: true})
	q := newQueue(t, dev)
	b := dev.NewBufferWithLength(16, mtl.ResourceStorageModeManaged)
	defer b.Release()
	out := newBuffer(t, dev, 16)
	copyOut := func(sync bool) {
		cb := q.CommandBuffer()
		e := cb.BlitCommandEncoder()
		e.CopyFromBuffer(b, 0, out, 0, 16)
		e.FillBuffer(b, mtl.Range{Location: 0, Length: 4}, 9)
		if sync {
			e.SynchronizeResource(b.Resource)
		}
		e.EndEncoding()
		mustRun(t, cb)
	}
	b.Contents()[4] = 5
	copyOut(false)
	require.Zero(t, out.Contents()[4], "the GPU does not see what it was not told of")
	require.Zero(t, b.Contents()[0])
	b.DidModifyRange(mtl.Range{Location: 4, Length: 4})
	copyOut(true)
	require.EqualValues(t, 5, out.Contents()[4])
	require.EqualValues(t, 9, b.Contents()[0])
}

func TestRegistered(t *testing.T) {
	found := false
	for _, d := range mtl.Devices() {
		found = found || d.Name() == "Ingot Software Device"
		d.Release()
	}
	require.True(t, found)
	require.Error(t, Remove(mtl.Device{}))
	require.Error(t, Inject(mtl.Device{}, Faults{}))
	require.Error(t, Refusal(mtl.Device{}))
	require.Zero(t, Stats(mtl.Device{}).Commits)
}
