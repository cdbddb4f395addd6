package nn

import "github.com/ingot-metal/ingot/runtime"

const (
	// GEMMSmallTile and GEMMLargeTile are the rows and columns of a result that a threadgroup of [GEMM] computes.
	GEMMSmallTile = 32
	GEMMLargeTile = 64
	// GEMVTransRows is how many results a threadgroup of [GEMV] computes from a transposed matrix.
	GEMVTransRows = 128
	// GEMVTransThreads is the size of such a threadgroup, unless the device allows fewer threads.
	GEMVTransThreads = 256
)

// GEMMTileFor is the tile of [GEMM] for a result of m rows and n columns, unless GEMMDims.Tile asks for another one: the
// small one where the large one would be half empty. Elements have the same bits with both.
func GEMMTileFor(m, n int) int {
	if m <= GEMMSmallTile || n <= GEMMSmallTile {
		return GEMMSmallTile
	}
	return GEMMLargeTile
}

// GEMMGeometry is the launch of [GEMM] with a tile of GEMMTileFor for a batch of results of m rows and n columns: a
// simdgroup for each 32 rows and columns of a tile.
func GEMMGeometry(tile, batch, m, n int) (groups, threads runtime.Size) {
	tile = max(tile, GEMMSmallTile)
	side := tile / GEMMSmallTile
	return runtime.D3(ceilDiv(n, tile), ceilDiv(m, tile), batch), runtime.D1(side * side * SIMDWidth)
}

// GEMVGeometry is the launch of [GEMV] for a batch of results of that many rows, from matrices that are transposed or not.
func GEMVGeometry(trans bool, batch, rows int) (groups, threads runtime.Size) {
	if trans {
		return runtime.D2(ceilDiv(rows, GEMVTransRows), batch), runtime.D1(GEMVTransThreads)
	}
	return runtime.D2(GEMVTiles(rows), batch), runtime.D1(GEMVThreads)
}
