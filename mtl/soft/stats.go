package soft

import (
	"github.com/ingot-metal/ingot/mtl"
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
