package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/ingot-metal/ingot/examples/decode/internal/checkpoint"
	"github.com/ingot-metal/ingot/nn"
	"github.com/ingot-metal/ingot/runtime"
)

// A prompt goes through the model in tiles of tokens, the last one of what is left: matrices are read once for all of a tile, and
// kernels that work on rows have many of them. The last tile also gives the logits of the text's first token. Tiles are always
// those of the first sequence; see readPrompts for the others.

const (
	mostTileRows  = 512
	leastTileRows = 32
	tileScratch   = 256 << 20 // bytes that the rows of a tile may take, roughly
	maxTiles      = 6         // recorded tiles that are kept
)

// tileRowsFor is how many tokens a tile has at most: fewer for wide models, so that its memory stays small beside the weights.
func tileRowsFor(c *checkpoint.Config) int {
	each := 4 * (3*c.Hidden + 2*c.Heads*c.HeadDim + 2*c.KVHeads*c.HeadDim + 3*c.FFN)
	rows := mostTileRows
	for rows > leastTileRows && rows*each > tileScratch {
		rows /= 2
	}
	return rows
}

// Words of a tile: what a span has, then the tokens.
const (
	tilePosition = iota
	tileKVLength
	tileCacheOffset
	tileTokens
)

func (m *model) tileWords() int { return tileTokens + m.tileRows }

// tileShape is what distinguishes the work of one tile from that of another, besides its words.
type tileShape struct {
	rows int
	last bool // the prompt's last one
}

// tileProgram is the recorded work of tiles of a shape.
type tileProgram struct {
	shape   tileShape
	program *runtime.Program
}

// tileCount is how many tiles of up to tileRows tokens a prompt of n tokens has.
func tileCount(n, tileRows int) int { return (n + tileRows - 1) / tileRows }

// tileAt is the shape of tile i of a prompt of n tokens.
func tileAt(i, n, tileRows int) tileShape {
	left := n - i*tileRows
	return tileShape{min(left, tileRows), left <= tileRows}
}

// tileList are the words of a prompt's tiles, for caches with kvStride elements for each position.
func tileList(prompt []uint32, tileRows, kvStride int) []uint32 {
	size := tileTokens + tileRows
	words := make([]uint32, tileCount(len(prompt), tileRows)*size)
	for i := range tileCount(len(prompt), tileRows) {
		first, rows := i*tileRows, tileAt(i, len(prompt), tileRows).rows
		w := words[i*size:]
		w[tilePosition], w[tileKVLength], w[tileCacheOffset] = uint32(first), uint32(first+rows), uint32(first*kvStride)
		copy(w[tileTokens:], prompt[first:first+rows])
	}
	return words
}

// tilePlace is the place of the tile that is being read.
func (m *model) tilePlace(rows int) place {
	word := func(i int) runtime.Slice[uint32] { return m.tile.Slice(i, i+1) }
	s := span{0, 0, rows, m.tile.Slice(tileTokens, tileTokens+rows), word(tilePosition), word(tileKVLength), word(tileCacheOffset)}
	return place{rows, []span{s}, true}
}

// encodeTile takes a tile through the model. Tiles but the last are there for what they leave in the caches.
func (m *model) encodeTile(p *runtime.Pass, s tileShape) error {
	if err := m.encodeLayers(p, m.tilePlace(s.rows), s.last); err != nil || !s.last {
		return err
	}
	return m.encodeNext(p, s.rows-1, 1)
}

// encodeTileWords makes tile i of the list the one that is read.
func (m *model) encodeTileWords(p *runtime.Pass, i int) error {
	return nn.Copy(p, m.tile, part(m.tiles, i, m.tileWords()), m.tileWords())
}

// tileProgram is the recorded work of tiles of that shape. Only some are kept, those that were used last.
func (m *model) tileProgram(s tileShape) (*runtime.Program, error) {
	for i, t := range m.tilePrograms {
		if t.shape == s {
			m.tilePrograms = append(append(m.tilePrograms[:i:i], m.tilePrograms[i+1:]...), t)
			return t.program, nil
		}
	}
	program, err := m.rt.Record(func(p *runtime.Pass) error {
		return errors.Join(p.Label(fmt.Sprintf("tile of %d tokens", s.rows)), m.encodeTile(p, s))
	})
	if err != nil {
		return nil, err
	}
	m.tilePrograms = append(m.tilePrograms, tileProgram{s, program})
	if len(m.tilePrograms) > maxTiles {
		oldest := m.tilePrograms[0].program
		m.tilePrograms = m.tilePrograms[1:]
		return program, oldest.Release()
	}
	return program, nil
}

// submitTile hands a tile to the device and does not wait for it.
func (m *model) submitTile(w way, i int, s tileShape) (runtime.Submission, error) {
	if w == direct {
		return m.rt.Submit(func(p *runtime.Pass) error {
			if err := m.encodeTileWords(p, i); err != nil {
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
	if _, err := m.rt.Submit(func(p *runtime.Pass) error { return m.encodeTileWords(p, i) }); err != nil {
		return runtime.Submission{}, err
	}
	return program.Replay()
}

// read hands the tiles of a prompt of n tokens, that start has written, to the device. It returns the last one.
func (m *model) read(ctx context.Context, w way, n int) (last runtime.Submission, err error) {
	for i := range tileCount(n, m.tileRows) {
		if err := ctx.Err(); err != nil {
			return last, err
		}
		if last, err = m.submitTile(w, i, tileAt(i, n, m.tileRows)); err != nil {
			return last, err
		}
	}
	return last, nil
}
