package runtime

import (
	"fmt"

	"github.com/ingot-metal/ingot/mtl"
)

// DeviceInfo describes a device. What it can do is asked of it, never guessed from its name.
type DeviceInfo struct {
	Name         string
	Architecture string
	// Family is the highest Apple GPU family, such as 7 for M1 and 9 for M3; 0 if it is none.
	Family int
	// MaxThreads is the most that a threadgroup can have in each dimension; a kernel may allow less.
	MaxThreads Size
	// MaxThreadgroupMemory and MaxBuffer are in bytes.
	MaxThreadgroupMemory int
	MaxBuffer            int
	// WorkingSet is how many bytes the device recommends to use in all.
	WorkingSet uint64
	// UnifiedMemory says that host and device share their memory.
	UnifiedMemory bool
	// BFloat and SIMDMatrix say whether kernels can use bfloat and simdgroup matrices.
	BFloat, SIMDMatrix bool
	// Indirect says whether programs are executed as indirect command buffers, and NoIndirect why not.
	Indirect   bool
	NoIndirect string
	// Primed says that each pipeline of a program is set once more, with an empty dispatch, on every replay, as the first
	// two GPU families of Macs need it.
	Primed bool
}

// Device describes the device, nothing for a nil runtime.
func (rt *Runtime) Device() DeviceInfo {
	if rt == nil {
		return DeviceInfo{}
	}
	return rt.info
}

// softArchitecture is what package mtl/soft calls its architecture.
const softArchitecture = "ingot"

// probe asks the device what it can do.
func (rt *Runtime) probe() error {
	dev := rt.dev
	refuse := func(have, need string) error {
		return &Error{Func: "Open", Arg: "device", Have: have, Need: need, Err: ErrDevice}
	}
	info := DeviceInfo{Name: dev.Name(), UnifiedMemory: dev.HasUnifiedMemory(), WorkingSet: dev.RecommendedMaxWorkingSetSize()}
	// -[MTLDevice architecture] came with macOS 14, the oldest system that the library is built for.
	if !dev.RespondsTo("architecture") {
		return refuse(fmt.Sprintf("%q on a system before macOS 14", info.Name), "macOS 14")
	}
	info.Architecture = dev.Architecture().Name()
	for family := mtl.GPUFamilyApple1; family <= mtl.GPUFamilyApple10; family++ {
		if dev.SupportsFamily(family) {
			info.Family = int(family-mtl.GPUFamilyApple1) + 1
		}
	}
	mac2, metal3 := dev.SupportsFamily(mtl.GPUFamilyMac2), dev.SupportsFamily(mtl.GPUFamilyMetal3)
	if info.Family < 7 && !mac2 {
		return refuse(fmt.Sprintf("%q, of Apple family %d", info.Name, info.Family), "GPU family Mac2, or Apple7 or later")
	}
	info.BFloat = info.Family >= 6 || metal3
	info.SIMDMatrix = info.Family >= 7
	threads := dev.MaxThreadsPerThreadgroup()
	info.MaxThreads = Size{int(threads.Width), int(threads.Height), int(threads.Depth)}
	info.MaxThreadgroupMemory = int(dev.MaxThreadgroupMemoryLength())
	info.MaxBuffer = int(dev.MaxBufferLength())
	switch {
	case rt.cfg.noIndirect:
		info.NoIndirect = "turned off by WithoutIndirect"
	case info.Family < 7:
		// Macs with other GPUs have none for compute, and paravirtual GPUs, which report a lower Apple family, are known to
		// fail with them.
		info.NoIndirect = fmt.Sprintf("a GPU of Apple family %d, where compute has none", info.Family)
	case !dev.RespondsTo("newIndirectCommandBufferWithDescriptor:maxCommandCount:options:"):
		info.NoIndirect = "a device that does not make any"
	}
	info.Indirect = info.NoIndirect == ""
	info.Primed = info.Indirect && info.Family < 9
	rt.info = info
	rt.declare = declarer(dev)
	rt.limits = limits{
		threads:       info.MaxThreads,
		threadgroup:   info.MaxThreadgroupMemory,
		buffer:        info.MaxBuffer,
		constantAlign: scalarStride,
		indirectOff:   maxIndirectOffset,
		indirectMax:   maxIndirectCommands,
		exact:         info.Architecture == softArchitecture,
	}
	if info.Family > 0 {
		rt.limits.constantAlign = 16
	}
	return nil
}
