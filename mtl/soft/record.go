package soft

import (
	"github.com/ingot-metal/ingot/objc"
)

// An op is what a command does.
type op uint8

const (
	opBegin           op = iota // an encoder begins
	opEnd                       // and ends
	opDispatch                  // a dispatch of one kernel
	opExecute                   // the commands of an indirect command buffer
	opBarrier                   // of all buffers
	opBarrierResource           // of one resource
	opUse                       // a resource is declared
	opUseSet                    // a residency set is declared
	opCopy                      // buffer to buffer
	opFill                      //
	opSynchronize               // a managed buffer
	opResetICB                  // commands from at on, n of them
	opCopyICB                   //
	opOptimizeICB               //
	opSignal                    // an event
	opWait                      //
	opSample                    // a counter, after what came before unless concurrent
	opResolve                   // samples into a buffer
	opFenceUpdate               // a fence
	opFenceWait                 //
	opQueueBarrier              // of the queue's encoders before
)

// A binding is what is bound at one buffer slot: a buffer, or bytes.
type binding struct {
	buf   *buffer
	off   uint64
	bytes []byte
	slot  int
	// declared is how many bytes from off on are meant to be used, 0 for all. See [DeclareBytes].
	declared uint64
}

func (b *binding) bound() bool { return b.buf != nil || b.bytes != nil }

// A command is one step of a command buffer. Which fields have a meaning depends on op.
type command struct {
	op       op
	encoder  int32 // which encoder of the command buffer
	number   int32 // dispatch number in the encoder
	threads  bool  // grid is in threads
	pipeline *pipeline
	// grid is in threadgroups, or in threads. An indirect buffer holds it otherwise.
	grid, group [3]uint32
	indirect    *buffer
	binds       []binding
	memory      []threadgroupMemory
	// from and to are the buffers or indirect command buffers of a blit, at and dst offsets or indices, n a length or count.
	from, to   *buffer
	icb, toICB *indirect
	at, dst, n uint64
	resource   *resource
	storage    *storage
	set        *residencySet
	event      *event
	samples    *sampleBuffer
	fence      *fence
	write      bool // a resource is declared for writing
	concurrent bool
	fill       byte
}

// threadgroupMemory is the length of the threadgroup memory at one index.
type threadgroupMemory struct {
	index  int
	length uint32
}

// An encoding is what one encoder left behind for error reports.
type encoding struct {
	kind  string // "compute" or "blit"
	label string
	posts []string
}

// A recording is the memory of a command buffer: it is used again by later ones, so that encoding allocates nothing
// once it has grown.
type recording struct {
	commands  []command
	binds     [][]binding
	memories  []threadgroupMemory
	arena     [][]byte
	arenaUsed int // chunks of the arena in use
	bindsUsed int
	held      []objc.ID
	encodings []encoding
	// executions are the indirect commands that are executed.
	executions []execution
}

const (
	bindChunk  = 1024
	arenaChunk = 64 << 10
)

// addBinds copies bindings into memory that does not move.
func (r *recording) addBinds(from []binding) []binding {
	if len(from) == 0 {
		return nil
	}
	for {
		if r.bindsUsed == 0 || cap(r.binds[r.bindsUsed-1])-len(r.binds[r.bindsUsed-1]) < len(from) {
			if r.bindsUsed == len(r.binds) {
				r.binds = append(r.binds, make([]binding, 0, bindChunk))
			}
			r.bindsUsed++
			continue
		}
		chunk := &r.binds[r.bindsUsed-1]
		start := len(*chunk)
		*chunk = append(*chunk, from...)
		return (*chunk)[start:len(*chunk):len(*chunk)]
	}
}

// addBytes copies at most 4 KiB into memory that does not move, aligned to 16.
func (r *recording) addBytes(from []byte) []byte {
	for {
		if r.arenaUsed > 0 {
			chunk := &r.arena[r.arenaUsed-1]
			start := (len(*chunk) + 15) &^ 15
			if end := start + len(from); end <= cap(*chunk) {
				*chunk = (*chunk)[:end]
				copy((*chunk)[start:end], from)
				return (*chunk)[start:end:end]
			}
		}
		if r.arenaUsed == len(r.arena) {
			r.arena = append(r.arena, allocate(arenaChunk)[:0])
		}
		r.arenaUsed++
	}
}

// addMemory copies the lengths of threadgroup memory. The list may move while it grows: commands keep what they have.
func (r *recording) addMemory(from []threadgroupMemory) []threadgroupMemory {
	if len(from) == 0 {
		return nil
	}
	start := len(r.memories)
	r.memories = append(r.memories, from...)
	return r.memories[start:len(r.memories):len(r.memories)]
}

// reset forgets everything but the memory.
func (r *recording) reset() {
	clear(r.commands)
	r.commands = r.commands[:0]
	for i := range r.binds[:r.bindsUsed] {
		clear(r.binds[i])
		r.binds[i] = r.binds[i][:0]
	}
	for i := range r.arena[:r.arenaUsed] {
		r.arena[i] = r.arena[i][:0]
	}
	r.arenaUsed, r.bindsUsed = 0, 0
	r.memories = r.memories[:0]
	r.held = r.held[:0]
	clear(r.executions)
	r.executions = r.executions[:0]
	clear(r.encodings)
	r.encodings = r.encodings[:0]
}
