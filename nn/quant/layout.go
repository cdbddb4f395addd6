package quant

import (
	"fmt"

	"github.com/ingot-metal/ingot/runtime/half"
)

const (
	// BlockRows is how many rows a block of [Q4MLXBlocked] has.
	BlockRows = 16
	// TileRows is how many rows a tile of [Q4MLXInterleaved] has.
	TileRows = 4
	// packWords is how many words of a row stand together in an interleaved tile: 16 codes.
	packWords = 2
)

// Q4MLXBlocked is a [Q4MLX] in blocks of 16 rows; see the package documentation for the layout. Rows is the number of rows
// without the padding, which is zeros: codes, scales and biases.
type Q4MLXBlocked struct {
	Rows, Cols, GroupSize int
	Packed                []uint32
	ScalesBiases          []half.BFloat16
}

// Q4MLXInterleaved is a [Q4MLX] in tiles of 4 interleaved rows; see the package documentation for the layout. Rows is the
// number of rows without the padding, which is zeros: codes, scales and biases.
type Q4MLXInterleaved struct {
	Rows, Cols, GroupSize int
	Packed                []uint32
	ScalesBiases          []half.BFloat16
}

// Q4MLXBlockedSizes are the lengths of Packed and ScalesBiases for a matrix of that shape in blocks, padding included.
func Q4MLXBlockedSizes(rows, cols, groupSize int) (words, scalesBiases int, err error) {
	return paddedSizes("Q4MLXBlockedSizes", rows, cols, groupSize, BlockRows)
}

// Q4MLXInterleavedSizes are the lengths of Packed and ScalesBiases for a matrix of that shape in interleaved tiles, padding
// included.
func Q4MLXInterleavedSizes(rows, cols, groupSize int) (words, scalesBiases int, err error) {
	return paddedSizes("Q4MLXInterleavedSizes", rows, cols, groupSize, TileRows)
}

func paddedSizes(fn string, rows, cols, groupSize, tile int) (words, scalesBiases int, err error) {
	if err := checkQ4MLX(fn, rows, cols, groupSize); err != nil {
		return 0, 0, err
	}
	padded := paddedRows(rows, tile)
	if err := checkQ4MLX(fn, padded, cols, groupSize); err != nil {
		return 0, 0, err
	}
	return padded * (cols / CodesPerWord), 2 * padded * (cols / groupSize), nil
}

func paddedRows(rows, tile int) int { return (rows + tile - 1) / tile * tile }

// Blocked is the matrix in blocks of 16 rows, in new memory.
func (q Q4MLX) Blocked() (Q4MLXBlocked, error) {
	const fn = "Q4MLX.Blocked"
	if err := q.lengths(fn); err != nil {
		return Q4MLXBlocked{}, err
	}
	words, pairs, err := paddedSizes(fn, q.Rows, q.Cols, q.GroupSize, BlockRows)
	if err != nil {
		return Q4MLXBlocked{}, err
	}
	out := Q4MLXBlocked{q.Rows, q.Cols, q.GroupSize, make([]uint32, words), make([]half.BFloat16, pairs)}
	tiled(q.Rows, q.Cols/CodesPerWord, q.GroupSize/CodesPerWord, BlockRows, func(at, plain, n int) {
		copy(out.Packed[at:at+n], q.Packed[plain:plain+n])
	})
	tiled(q.Rows, 2*(q.Cols/q.GroupSize), 2, BlockRows, func(at, plain, n int) {
		copy(out.ScalesBiases[at:at+n], q.ScalesBiases[plain:plain+n])
	})
	return out, nil
}

// Interleaved is the matrix in tiles of 4 interleaved rows, in new memory.
func (q Q4MLX) Interleaved() (Q4MLXInterleaved, error) {
	const fn = "Q4MLX.Interleaved"
	if err := q.lengths(fn); err != nil {
		return Q4MLXInterleaved{}, err
	}
	words, pairs, err := paddedSizes(fn, q.Rows, q.Cols, q.GroupSize, TileRows)
	if err != nil {
		return Q4MLXInterleaved{}, err
	}
	out := Q4MLXInterleaved{q.Rows, q.Cols, q.GroupSize, make([]uint32, words), make([]half.BFloat16, pairs)}
	tiled(q.Rows, q.Cols/CodesPerWord, packWords, TileRows, func(at, plain, n int) {
		copy(out.Packed[at:at+n], q.Packed[plain:plain+n])
	})
	tiled(q.Rows, 2*(q.Cols/q.GroupSize), 2, TileRows, func(at, plain, n int) {
		copy(out.ScalesBiases[at:at+n], q.ScalesBiases[plain:plain+n])
	})
	return out, nil
}

// RowMajor is the matrix in row-major order, in new memory. What the padding holds does not matter.
func (q Q4MLXBlocked) RowMajor() (Q4MLX, error) {
	if err := q.lengths("Q4MLXBlocked.RowMajor"); err != nil {
		return Q4MLX{}, err
	}
	out := newQ4MLX(q.Rows, q.Cols, q.GroupSize)
	tiled(q.Rows, q.Cols/CodesPerWord, q.GroupSize/CodesPerWord, BlockRows, func(at, plain, n int) {
		copy(out.Packed[plain:plain+n], q.Packed[at:at+n])
	})
	tiled(q.Rows, 2*(q.Cols/q.GroupSize), 2, BlockRows, func(at, plain, n int) {
		copy(out.ScalesBiases[plain:plain+n], q.ScalesBiases[at:at+n])
	})
	return out, nil
}

// RowMajor is the matrix in row-major order, in new memory. What the padding holds does not matter.
func (q Q4MLXInterleaved) RowMajor() (Q4MLX, error) {
	if err := q.lengths("Q4MLXInterleaved.RowMajor"); err != nil {
		return Q4MLX{}, err
	}
	out := newQ4MLX(q.Rows, q.Cols, q.GroupSize)
	tiled(q.Rows, q.Cols/CodesPerWord, packWords, TileRows, func(at, plain, n int) {
		copy(out.Packed[plain:plain+n], q.Packed[at:at+n])
	})
	tiled(q.Rows, 2*(q.Cols/q.GroupSize), 2, TileRows, func(at, plain, n int) {
		copy(out.ScalesBiases[plain:plain+n], q.ScalesBiases[at:at+n])
	})
	return out, nil
}

// tiled visits the units of rows of width elements: at is where a unit starts among tiles of rows that take turns unit by
// unit, plain where it starts in row-major order, and n its length, for rows without the padding.
func tiled(rows, width, unit, tile int, visit func(at, plain, n int)) {
	perRow := width / unit
	for row := range rows {
		for k := range perRow {
			visit(((row/tile*perRow+k)*tile+row%tile)*unit, row*width+k*unit, unit)
		}
	}
}

// Validate says why q is not a matrix in this format, or nil: shape, lengths, and scales and biases that are finite, also
// those of the padding.
func (q Q4MLXBlocked) Validate() error {
	const fn = "Q4MLXBlocked.Validate"
	if err := q.lengths(fn); err != nil {
		return err
	}
	return checkFinite(fn, "scales and biases", q.ScalesBiases)
}

// Validate says why q is not a matrix in this format, or nil: shape, lengths, and scales and biases that are finite, also
// those of the padding.
func (q Q4MLXInterleaved) Validate() error {
	const fn = "Q4MLXInterleaved.Validate"
	if err := q.lengths(fn); err != nil {
		return err
	}
	return checkFinite(fn, "scales and biases", q.ScalesBiases)
}

func (q Q4MLXBlocked) lengths(fn string) error {
	return paddedLengths(fn, q.Rows, q.Cols, q.GroupSize, BlockRows, len(q.Packed), len(q.ScalesBiases))
}

func (q Q4MLXInterleaved) lengths(fn string) error {
	return paddedLengths(fn, q.Rows, q.Cols, q.GroupSize, TileRows, len(q.Packed), len(q.ScalesBiases))
}

func paddedLengths(fn string, rows, cols, groupSize, tile, packed, scalesBiases int) error {
	words, pairs, err := paddedSizes(fn, rows, cols, groupSize, tile)
	if err != nil {
		return err
	}
	if packed != words {
		return shape(fn, "packed", fmt.Sprintf("%d words", packed), fmt.Sprintf("%d for %d * %d codes padded to %d rows", words, rows, cols, paddedRows(rows, tile)))
	}
	if scalesBiases != pairs {
		return shape(fn, "scales and biases", fmt.Sprintf("%d numbers", scalesBiases),
			fmt.Sprintf("%d, two for each group of %d in %d rows", pairs, groupSize, paddedRows(rows, tile)))
	}
	return nil
}
