package main

import (
	"github.com/ingot-metal/ingot/nn"
	"github.com/ingot-metal/ingot/runtime"
)

// place is where the rows of a step or a tile come from and where they belong. Weights work on all rows at once; what has to
// do with positions goes span by span.
type place struct {
	rows  int
	spans []span
	tile  bool
}

// span is a run of consecutive tokens of one sequence. Its words are in device memory: the kernels read them when they run.
type span struct {
	sequence    int
	first, rows int                   // of the place's rows
	tokens      runtime.Slice[uint32] // [rows]
	position    runtime.Slice[uint32] // [1]: of the first one
	kvLength    runtime.Slice[uint32] // [1]: positions in the cache once all are stored
	cacheOffset runtime.Slice[uint32] // [1]: element of the cache where the first one is stored
}

// step is the place of a decode step: a row for each sequence, by the words of its decode state.
func (m *model) step() place {
	at := place{rows: m.sequences}
	for i := range m.sequences {
		state := m.stateOf(i)
		word := func(j int) runtime.Slice[uint32] { return state.Slice(j, j+1) }
		at.spans = append(at.spans, span{i, i, 1, word(nn.StateToken), word(nn.StatePosition), word(nn.StateKVLength), word(nn.StateCacheOffset)})
	}
	return at
}

// stateOf is a sequence's decode state.
func (m *model) stateOf(sequence int) runtime.Slice[uint32] {
	return part(m.state, sequence, nn.DecodeStateWords)
}

// caches are a sequence's keys and values of a layer.
func (m *model) caches(l *layer, sequence int) (keys, values runtime.Slice[float32]) {
	n := m.positions * m.kvStride()
	return part(l.keys, sequence, n), part(l.values, sequence, n)
}

// kvStride is how many elements of a cache a position takes.
func (m *model) kvStride() int { return m.config.KVHeads * m.config.HeadDim }
