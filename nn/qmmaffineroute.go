package nn

import (
	"fmt"

	"github.com/ingot-metal/ingot/runtime"
)

const (
	// MaxQMMAffineVectors is the most vectors that [QMMAffine] multiplies row-exactly, each as if it were alone.
	MaxQMMAffineVectors = 16
	// QMMAffineSmallTile and QMMAffineLargeTile are the vectors of a tile for more than that.
	QMMAffineSmallTile = 32
	QMMAffineLargeTile = 64
	// QMMAffineTileRows is how many rows of weights such a tile has.
	QMMAffineTileRows = 64
	// QMMAffineTileThreads is the size of its threadgroup.
	QMMAffineTileThreads = 128
)

// QMMAffineRoute names the kernels of [QMMAffine] for some number of vectors; one of its fields is not 0.
type QMMAffineRoute struct {
	Vectors int // how many vectors a threadgroup takes at once, 1 to 8, each as if alone
	Tile    int // the vectors of a tile on simdgroup matrices
}

// QMMAffineRouteFor is the route for m vectors on a device that has simdgroup matrices or not: up to [MaxQMMAffineVectors] a kernel for
// vectors, in as few threadgroups of at most eight as it takes, of the same number each; then tiles, the small one if it holds all.
func QMMAffineRouteFor(m int, simdMatrix bool) QMMAffineRoute {
	switch {
	case m <= 1:
		return QMMAffineRoute{Vectors: 1}
	case m <= MaxQMMAffineVectors || !simdMatrix:
		return QMMAffineRoute{Vectors: ceilDiv(m, ceilDiv(m, qmmAffineMost))}
	case m <= QMMAffineSmallTile:
		return QMMAffineRoute{Tile: QMMAffineSmallTile}
	}
	return QMMAffineRoute{Tile: QMMAffineLargeTile}
}

// qmmAffineMost is the most vectors that a kernel takes at once.
const qmmAffineMost = 8

// qmmAffineKernels are the kernels by bits, 4, 6 and 8: for 1 to 8 vectors, and the two tiles.
var qmmAffineKernels = func() (names [3][qmmAffineMost + 2]string) {
	for i := range names {
		for j := range qmmAffineMost {
			names[i][j] = fmt.Sprintf("qmv_affine_b%d_m%d", 4+2*i, j+1)
		}
		names[i][qmmAffineMost] = fmt.Sprintf("qmm_affine_b%d_t%d", 4+2*i, QMMAffineSmallTile)
		names[i][qmmAffineMost+1] = fmt.Sprintf("qmm_affine_b%d_t%d", 4+2*i, QMMAffineLargeTile)
	}
	return names
}()

// Kernel is the kernel's name for codes of 4, 6 or 8 bits, empty for what is no route or no such number.
func (r QMMAffineRoute) Kernel(bits int) string {
	if bits != 4 && bits != 6 && bits != 8 {
		return ""
	}
	names := &qmmAffineKernels[bits/2-2]
	switch {
	case r.Tile == 0 && r.Vectors >= 1 && r.Vectors <= qmmAffineMost:
		return names[r.Vectors-1]
	case r.Vectors == 0 && r.Tile == QMMAffineSmallTile:
		return names[qmmAffineMost]
	case r.Vectors == 0 && r.Tile == QMMAffineLargeTile:
		return names[qmmAffineMost+1]
	}
	return ""
}

// Geometry is the launch for m vectors and that many rows of weights.
func (r QMMAffineRoute) Geometry(m, rows int) (groups, threads runtime.Size) {
	if r.Tile != 0 {
		return runtime.D2(ceilDiv(rows, QMMAffineTileRows), ceilDiv(m, r.Tile)), runtime.D1(QMMAffineTileThreads)
	}
	return runtime.D2(GEMVTiles(rows), ceilDiv(m, max(r.Vectors, 1))), runtime.D1(GEMVThreads)
}
