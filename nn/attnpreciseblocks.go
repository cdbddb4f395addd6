package nn

import (
	"strconv"

	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// PreciseBlocksShape is the number of tiles of a mask of tq rows and tk keys: of rows, and of keys. 0 and 0 for a head dimension that
// [PreciseTile] has no tile for.
func PreciseBlocksShape(headDim, tq, tk int) (rows, keys int) {
	r, k := PreciseTile(headDim)
	if r == 0 {
		return 0, 0
	}
	return ceilDiv(tq, r), ceilDiv(tk, k)
}

// PreciseBlocks says what is in the tiles of a mask, so that [FlashAttnPrecise] can skip those that hide everything and need not read
// those that hide nothing:
//
//	blocks[i, j] = 0 if every element of tile (i, j) is minus infinity, 2 if every one is 0, else 1
//
// with the tiles of PreciseTile(headDim), those at the edge cut off.
//
// Shapes: mask [tq, tk], blocks [PreciseBlocksShape(headDim, tq, tk)]. tq == 0 and tk == 0 are no-ops.
//
// Slots: 0 mask, 1 blocks; scalars 2 tq, 3 tk, 4 rows and 5 keys of a tile (uint32).
//
// blocks must not overlap mask. Deterministic. Errors: ErrShape, ErrLimit, ErrForeign, ErrClosed, ErrOverlap.
func PreciseBlocks(p *runtime.Pass, blocks runtime.Slice[uint8], mask runtime.Slice[half.Float16], headDim, tq, tk int) error {
	return preciseBlocks("nn.PreciseBlocks", p, blocks, mask, headDim, tq, tk, nil)
}

// UnsafePreciseBlocks is [PreciseBlocks] with its scalars in the caller's own storage.
//
// Unsafe: see the package documentation.
func UnsafePreciseBlocks(p *runtime.Pass, blocks runtime.Slice[uint8], mask runtime.Slice[half.Float16], headDim, tq, tk int,
	bind func(*runtime.ScalarBinder) error) error {
	return preciseBlocks("nn.UnsafePreciseBlocks", p, blocks, mask, headDim, tq, tk, bind)
}

func preciseBlocks(fn string, p *runtime.Pass, blocks runtime.Slice[uint8], mask runtime.Slice[half.Float16], headDim, tq, tk int,
	bind func(*runtime.ScalarBinder) error) error {
	c := start(fn, p)
	tileRows, tileKeys := c.preciseTile(headDim)
	c.dim("tq", tq, 0)
	c.dim("tk", tk, 0)
	rows, keys := PreciseBlocksShape(headDim, max(tq, 0), max(tk, 0))
	n, tiles := c.elements("tq * tk", tq, tk), c.elements("tiles", rows, keys)
	c.memory(memory{"blocks", blocks.View(), tiles, 1}, memory{"mask", mask.View(), n, 2})
	if c.err != nil || n == 0 {
		return c.result()
	}
	to, from := first(blocks.View(), tiles, 1), first(mask.View(), n, 2)
	c.disjoint(1, operand{"blocks", to}, operand{"mask", from})
	if c.err != nil {
		return c.result()
	}
	l := p.Kernel("flash_attn_prefill_blk")
	l.Read(0, from)
	l.Write(1, to)
	l.Uint32(2, uint32(tq))
	l.Uint32(3, uint32(tk))
	l.Uint32(4, uint32(tileRows))
	l.Uint32(5, uint32(tileKeys))
	l.Scalars(bind)
	return l.Dispatch(runtime.D2(keys, rows), runtime.D1(SIMDWidth))
}

// preciseTile is PreciseTile of a head dimension that has one.
func (c *check) preciseTile(headDim int) (rows, keys int) {
	rows, keys = PreciseTile(headDim)
	if rows == 0 {
		c.refuse("HeadDim", strconv.Itoa(headDim), "64, 128, 256 or 512", runtime.ErrShape)
	}
	return rows, keys
}
