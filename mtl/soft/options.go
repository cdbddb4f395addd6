package soft

import (
	"fmt"
	"os"
	"runtime"

	"github.com/ingot-metal/ingot/mtl"
)

// Options describe the device that [New] makes. The zero value is a device like a recent Apple GPU under macOS 26, with
// the checks that cost little on. The other settings let tests pretend what only some real systems do.
type Options struct {
	// Name is what the device calls itself; the default is "Ingot Software Device".
	Name string
	// Workers is the number of cores that a dispatch runs on; the default is all of them.
	Workers int

	// OSVersion is the version of macOS that the device pretends to run under: it decides which libraries load (macOS 14
	// takes Metal 3.1, 15 takes 3.2, 26 takes 4.0) and which selectors the device answers (residency sets need 15).
	// The default is 26.0.
	OSVersion Version
	// Families are the GPU families the device supports. The default is Apple1 to Apple9, Mac2, Common1 to Common3 and
	// Metal3. See [AppleFamilies].
	Families []mtl.GPUFamily
	// FirstFamilies makes the device ask for what the first two Apple GPU families of the Mac need: every pipeline that an
	// indirect command buffer uses must also have been set on the encoder and dispatched there, if only with a size of zero,
	// before the commands are executed. Otherwise the command buffer fails. It is implied when Apple7 or Apple8 is the latest
	// of Families.
	FirstFamilies bool
	// NoIndirectCompute makes the device refuse compute pipelines and indirect command buffers for indirect compute, as
	// paravirtual GPUs and Intel Macs do.
	NoIndirectCompute bool
	// OffsetsWrap makes an indirect command buffer keep 32 bits of a buffer offset and drop the rest silently, as real ones
	// do. By default such an offset fails the command buffer that executes the command.
	OffsetsWrap bool
	// NoResidencySets and NoEventTimeouts take away the selectors of residency sets and of
	// waitUntilSignaledValue:timeoutMS:.
	NoResidencySets bool
	NoEventTimeouts bool
	// Sampling is where the device samples counters, of which it has one, the clock; the default is as on Apple GPUs.
	Sampling CounterSampling
	// DiscreteMemory makes the device report memory of its own. Managed buffers then have a copy on each side.
	DiscreteMemory bool
	// ExecutionWidth is the width that pipelines report; the default is 32, the only one that is executed.
	ExecutionWidth int
	// MaxThreads caps maxTotalThreadsPerThreadgroup of every pipeline; the default is 1024.
	MaxThreads int
	// KernelThreads caps it for the pipelines of single kernels, by name: on a GPU kernels with many registers take fewer threads.
	KernelThreads map[string]int
	// ThreadgroupMemory is the longest threadgroup memory in bytes; the default is 32768.
	ThreadgroupMemory int
	// MaxBufferLength is the longest buffer in bytes; the default is 8 GiB, or half of the machine's memory if that is less.
	MaxBufferLength uint64
	// WorkingSet is how many bytes all buffers together may have; the default is three quarters of the machine's memory
	// where it is known, else 16 GiB.
	WorkingSet uint64
	// PageSize is the alignment that newBufferWithBytesNoCopy asks for; the default is the system's page size.
	PageSize int
	// ConstantAlignment is the least alignment of offsets of constant arguments; the default is 4, as on Apple GPUs.
	ConstantAlignment int
	// EventTimeout is how long a command buffer waits for an event before it fails, in milliseconds; the default is a
	// minute.
	EventTimeout int

	// StepLimit is how many instructions the simdgroups of one threadgroup may execute together before the dispatch fails;
	// the default, 2³¹, is some minutes' worth.
	StepLimit int64

	// Checks turns the checking mode on: reads of threadgroup and private memory that was never written, and races within
	// and between threadgroups fail the command buffer. Order then applies to the threadgroups of a dispatch and the
	// simdgroups of a threadgroup, too. Every dispatch runs on one core, and kernels that share much memory run slower.
	Checks bool
	// NoLockStep makes the checks stricter than what GPUs do: threads of a simdgroup are then ordered by simdgroup barriers
	// only. Without it, what one instruction did is done when the simdgroup's next one begins.
	NoLockStep bool
	// Counts makes [Stats] tell what each kernel did. Kernels run a little slower.
	Counts bool
	// NoHazards turns the detection of hazards between concurrent dispatches off.
	NoHazards bool
	// Order is the order in which dispatches run that no barrier orders.
	Order Order
	// Seed starts the random orders of [Shuffled].
	Seed uint64

	// RefuseLibraries makes every library made from data an error with this text.
	RefuseLibraries string
	// RefuseSource makes every library made from source an error with this text.
	RefuseSource string
	// RefuseKernels are the kernels whose pipelines are refused, by name. "*" refuses all.
	RefuseKernels []string
	// Faults are armed from the start; see [Inject].
	Faults Faults
}

// An Order is the order in which dispatches run that no barrier orders. Metal may choose any.
type Order uint8

// The orders.
const (
	// Encoded runs dispatches as they were encoded.
	Encoded Order = iota
	// Reversed runs the last first.
	Reversed
	// Shuffled runs them in a random order, another each time.
	Shuffled
)

// A Version is the version of an operating system.
type Version struct{ Major, Minor int }

// String is the version as it is written.
func (v Version) String() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }

func (v Version) less(w Version) bool {
	return v.Major < w.Major || v.Major == w.Major && v.Minor < w.Minor
}

// Faults are failures to come. A number n means that the n-th from now fails, once or as often as Times says; 0 means none
// does.
type Faults struct {
	// Times is how many fail in a row, from the n-th on; the default is one.
	Times int
	// Allocation makes a buffer nil.
	Allocation int
	// Contents makes the contents of a buffer nil.
	Contents int
	// ResidencySet makes the creation of a residency set an error.
	ResidencySet int
	// Pipeline makes the creation of a pipeline an error.
	Pipeline int
	// Commit makes a committed command buffer fail before it does anything.
	Commit int
	// Hang makes a committed command buffer never complete. It ends when the device is removed.
	Hang int
	// Remove removes the device when the command buffer is committed.
	Remove int
}

// AppleFamilies are the families of an Apple GPU of generation n (7 for M1, 8 for M2, 9 for M3 and M4, 10 for M5): all
// earlier Apple families, Mac2, the common ones and Metal3.
func AppleFamilies(n int) []mtl.GPUFamily {
	var families []mtl.GPUFamily
	for i := range n {
		families = append(families, mtl.GPUFamilyApple1+mtl.GPUFamily(i))
	}
	return append(families, mtl.GPUFamilyMac2, mtl.GPUFamilyCommon1, mtl.GPUFamilyCommon2, mtl.GPUFamilyCommon3,
		mtl.GPUFamilyMetal3)
}

// withDefaults fills in what was left out.
func (o Options) withDefaults() Options {
	def := func(p *int, v int) {
		if *p <= 0 {
			*p = v
		}
	}
	if o.Name == "" {
		o.Name = "Ingot Software Device"
	}
	if o.OSVersion == (Version{}) {
		o.OSVersion = Version{26, 0}
	}
	if o.Families == nil {
		o.Families = AppleFamilies(9)
	}
	latest := mtl.GPUFamily(0)
	for _, f := range o.Families {
		if f <= mtl.GPUFamilyApple10 {
			latest = max(latest, f)
		}
	}
	o.FirstFamilies = o.FirstFamilies || latest == mtl.GPUFamilyApple7 || latest == mtl.GPUFamilyApple8
	def(&o.Workers, runtime.GOMAXPROCS(0))
	def(&o.ExecutionWidth, 32)
	def(&o.MaxThreads, 1024)
	def(&o.ThreadgroupMemory, 32768)
	def(&o.PageSize, os.Getpagesize())
	def(&o.ConstantAlignment, 4)
	def(&o.EventTimeout, 60_000)
	memory := systemMemory()
	if o.WorkingSet == 0 {
		o.WorkingSet = 16 << 30
		if memory > 0 {
			o.WorkingSet = memory / 4 * 3
		}
	}
	if o.MaxBufferLength == 0 {
		o.MaxBufferLength = 8 << 30
		if memory > 0 {
			o.MaxBufferLength = min(o.MaxBufferLength, memory/2)
		}
	}
	// The list belongs to the caller.
	o.RefuseKernels = append([]string(nil), o.RefuseKernels...)
	o.Families = append([]mtl.GPUFamily(nil), o.Families...)
	return o
}
