package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/ingot-metal/ingot/nn"
	"github.com/ingot-metal/ingot/runtime"
)

// A prompt goes through the model in tiles of tileRows tokens, the last one of what is left: matrices are read once for
// several tokens, and kernels that work on rows have many of them. 32 query rows are what a threadgroup of the attention
// takes with heads of 128. The last tile also produces the first token of the text.
const tileRows = 32

// Words of a tile: what a place has, then the tokens.
const (
	tilePosition = iota
	tileKVLength
	tileCacheOffset
	tileTokens
	tileWords = tileTokens + tileRows
)

// tileShape is what distinguishes the work of one tile from that of another, besides its words.
type tileShape struct {
	rows int
	last bool // the prompt's last one
}

// tileCount is how many tiles a prompt of n tokens has.
func tileCount(n int) int { return (n + tileRows - 1) / tileRows }

// tileAt is the shape of tile i of a prompt of n tokens.
func tileAt(i, n int) tileShape {
	left := n - i*tileRows
	return tileShape{min(left, tileRows), left <= tileRows}
}

// tileList are the words of a prompt's tiles, for caches with kvStride elements for each position.
func tileList(prompt []uint32, kvStride int) []uint32 {
	words := make([]uint32, tileCount(len(prompt))*tileWords)
	for i := range tileCount(len(prompt)) {
		first, rows := i*tileRows, tileAt(i, len(prompt)).rows
		w := words[i*tileWords:]
		w[tilePosition], w[tileKVLength], w[tileCacheOffset] = uint32(first), uint32(first+rows), uint32(first*kvStride)
		copy(w[tileTokens:], prompt[first:first+rows])
	}
	return words
}

// tilePlace is the place of the tile that is being read.
func (m *model) tilePlace(rows int) place {
	word := func(i int) runtime.Slice[uint32] { return m.tile.Slice(i, i+1) }
	return place{rows, m.tile.Slice(tileTokens, tileTokens+rows), word(tilePosition), word(tileKVLength), word(tileCacheOffset)}
}

// encodeTile takes a tile through the model.
func (m *model) encodeTile(p *runtime.Pass, s tileShape) error {
	return m.encodeTokens(p, m.tilePlace(s.rows), s.last)
}

// encodeNext makes tile i of the list the one that is read.
func (m *model) encodeNext(p *runtime.Pass, i int) error {
	return nn.Copy(p, m.tile, m.tiles.Slice(i*tileWords, (i+1)*tileWords), tileWords)
}

// tileProgram is the recorded work of tiles of that shape.
func (m *model) tileProgram(s tileShape) (*runtime.Program, error) {
	if program := m.tilePrograms[s]; program != nil {
		return program, nil
	}
	program, err := m.rt.Record(func(p *runtime.Pass) error {
		return errors.Join(p.Label(fmt.Sprintf("tile of %d tokens", s.rows)), m.encodeTile(p, s))
	})
	if err != nil {
		return nil, err
	}
	if m.tilePrograms == nil {
		m.tilePrograms = map[tileShape]*runtime.Program{}
	}
	m.tilePrograms[s] = program
	return program, nil
}

// submitTile hands a tile to the device and does not wait for it.
func (m *model) submitTile(w way, i int, s tileShape) (runtime.Submission, error) {
	if s.rows == 1 { // the last tile: the decode state is at its token
		return m.submit(w)
	}
	if w == direct {
		return m.rt.Submit(func(p *runtime.Pass) error {
			if err := m.encodeNext(p, i); err != nil {
				return err
			}
			return m.encodeTile(p, s)
		})
	}
	program, err := m.tileProgram(s)
	if err != nil {
		return runtime.Submission{}, err
	}
	// What a program reads is always in the same place, so that each tile is brought there first.
	if _, err := m.rt.Submit(func(p *runtime.Pass) error { return m.encodeNext(p, i) }); err != nil {
		return runtime.Submission{}, err
	}
	return program.Replay()
}

// read hands the tiles of a prompt of n tokens, that start has written, to the device. It returns the last one, which
// produces a token.
func (m *model) read(ctx context.Context, w way, n int) (last runtime.Submission, err error) {
	for i := range tileCount(n) {
		if err := ctx.Err(); err != nil {
			return last, err
		}
		if last, err = m.submitTile(w, i, tileAt(i, n)); err != nil {
			return last, err
		}
	}
	return last, nil
}
