package soft

import (
	"sync/atomic"

	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/mtl/soft/internal/simt"
)

// Statistics are what a device did since it was made.
type Statistics struct {
	// Messages counts the messages to the device's objects by selector.
	Messages map[string]uint64
	// Commits are the command buffers that were committed, Failures those that failed.
	Commits, Failures uint64
	// Dispatches are the dispatches that ran, those of indirect command buffers (IndirectCommands) included; Threadgroups
	// are theirs.
	Dispatches, IndirectCommands, Threadgroups uint64
	// Traced are the dispatches whose every access was noted, since they could meet another one without a barrier between
	// them.
	Traced uint64
	// Objects are the living objects of the device, Allocated the bytes of its buffers and heaps, Goroutines what runs
	// for it now.
	Objects, Allocated, Goroutines int
	// Kernels are what each kernel did, by name, if the device counts ([Options.Counts]).
	Kernels map[string]KernelStatistics
}

// KernelStatistics are what the dispatches of one kernel did, with whatever function constants.
type KernelStatistics struct {
	Dispatches uint64
	// Instructions are those that simdgroups executed, of the program that the software device makes of the kernel. Lanes
	// are the lanes that ran, summed over the instructions.
	Instructions, Lanes uint64
	// Barriers are the simdgroups' arrivals at threadgroup barriers.
	Barriers uint64
	// Read and Written are the bytes that loads and stores moved, by buffer slot; an atomic counts as both. What a
	// simdgroup reads from one address for all its lanes counts once, if the compiler knows.
	Read, Written [bufferSlots]uint64
	// The same for threadgroup memory and for private variables that are not in registers.
	ThreadgroupRead, ThreadgroupWritten uint64
	PrivateRead, PrivateWritten         uint64
}

// Occupancy is the share of lanes that ran, on average over the instructions: 1 where nothing diverges and simdgroups
// are full.
func (k KernelStatistics) Occupancy() float64 {
	if k.Instructions == 0 {
		return 0
	}
	return float64(k.Lanes) / (32 * float64(k.Instructions))
}

// kernelCounts are the counters of a kernel.
type kernelCounts struct {
	dispatches atomic.Uint64
	counts     simt.Counts
}

// countsOf are the counters of the kernel of a name.
func (d *device) countsOf(kernel string) *kernelCounts {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.kernels[kernel]
	if c == nil {
		if d.kernels == nil {
			d.kernels = map[string]*kernelCounts{}
		}
		c = &kernelCounts{}
		d.kernels[kernel] = c
	}
	return c
}

func (d *device) kernelStatistics() map[string]KernelStatistics {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.kernels == nil {
		return nil
	}
	all := map[string]KernelStatistics{}
	for name, c := range d.kernels {
		t := c.counts.Totals()
		all[name] = KernelStatistics{Dispatches: c.dispatches.Load(), Instructions: t.Instructions, Lanes: t.Lanes,
			Barriers: t.Barriers, Read: t.Read, Written: t.Written,
			ThreadgroupRead: t.ThreadgroupRead, ThreadgroupWritten: t.ThreadgroupWritten,
			PrivateRead: t.PrivateRead, PrivateWritten: t.PrivateWritten}
	}
	return all
}

// TotalMessages is the number of messages to the device's objects.
func (s Statistics) TotalMessages() uint64 {
	n := uint64(0)
	for _, c := range s.Messages {
		n += c
	}
	return n
}

// Stats tells what a device did so far. Of other devices than those of this package it is empty.
func Stats(dev mtl.Device) Statistics {
	d := deviceOf(dev)
	if d == nil {
		return Statistics{}
	}
	s := Statistics{
		Messages: map[string]uint64{}, Commits: d.commits.Load(), Failures: d.failures.Load(),
		Dispatches: d.dispatches.Load(), IndirectCommands: d.indirectCommands.Load(), Threadgroups: d.threadgroups.Load(),
		Traced: d.traced.Load(), Objects: int(d.objects.Load()), Allocated: int(d.allocated.Load()), Goroutines: int(d.goroutines.Load()),
		Kernels: d.kernelStatistics(),
	}
	counters.Lock()
	names := counters.names
	counters.Unlock()
	for i, name := range names {
		if n := d.messages[i].Load(); n > 0 {
			s.Messages[name] = n
		}
	}
	return s
}
