package nn

import (
	"testing"

	"github.com/ingot-metal/ingot/runtime"
)

// The products of dense matrices; see kernelSlots.
func init() {
	const shared = "101 bool, 102 bool, 103 bool, 104 bool, 105 bool, 106 uint, 107 uint"
	for _, kind := range []string{"f32", "f16", "bf16"} {
		for _, tile := range []string{"_t32", "_t64"} {
			kernelSlots["gemm_dense_"+kind+tile] = "0r 1r 2w 3u 4u 5u 6u 7u 8r 9f 10f 11r 12u 13u"
			kernelConstants["gemm_dense_"+kind+tile] = "100 bool, " + shared
		}
		for _, trans := range []string{"", "t_"} {
			kernelSlots["gemv_dense_"+trans+kind] = "0r 1r 2w 4u 5u 6u 7u 8r 9f 10f 11r 12u 13u"
		}
		kernelConstants["gemv_dense_"+kind] = "102 bool, 103 bool, 104 bool, 105 bool, 106 uint, 107 uint"
		kernelConstants["gemv_dense_t_"+kind] = "103 bool, 104 bool, 105 bool, 106 uint, 107 uint"
	}
}

// Host and kernels agree on the numbers that both have.
func TestDenseGeometryMatchesShaders(t *testing.T) {
	text := shaders(t)
	for _, c := range []struct {
		file, name string
		want       int
	}{
		{"gemm_tile.h", "INGOT_GEMM_PART", GEMMSmallTile},
		{"gemm_weights.metal", "INGOT_GEMM_WEIGHTS_COLS", GEMMWeightsCols},
		{"gemv_dense.metal", "INGOT_GEMV_ROWS", GEMVRows / (GEMVThreads / SIMDWidth)},
		{"gemv_dense.metal", "INGOT_GEMV_SIMDGROUPS", GEMVThreads / SIMDWidth},
		{"gemv_dense.metal", "INGOT_GEMV_BLOCK", 4 * SIMDWidth},
		{"gemv_dense.metal", "INGOT_GEMV_T_COLS", GEMVTransRows},
		{"gemv_dense.metal", "INGOT_GEMV_T_SIMDGROUPS", GEMVTransThreads / SIMDWidth},
		{"gemm_dense.h", "INGOT_ACT_NONE", int(ActNone)},
		{"gemm_dense.h", "INGOT_ACT_RELU", int(ActReLU)},
		{"gemm_dense.h", "INGOT_ACT_GELU", int(ActGELU)},
		{"gemm_dense.h", "INGOT_ACT_SILU", int(ActSiLU)},
		{"gemm_dense.h", "INGOT_OUT_F32", kindFloat32},
		{"gemm_dense.h", "INGOT_OUT_F16", kindFloat16},
		{"gemm_dense.h", "INGOT_OUT_BF16", kindBFloat16},
	} {
		if got := defined(text[c.file], c.name); got != c.want {
			t.Errorf("%s: %s is %d, the host has %d", c.file, c.name, got, c.want)
		}
	}
}

// Every element of a result has a place in the launch.
func TestDenseGeometry(t *testing.T) {
	for _, c := range []struct{ m, n, want int }{
		{1, 1, 32}, {32, 1000, 32}, {1000, 32, 32}, {33, 33, 64}, {33, 1, 32}, {4096, 4096, 64}, {0, 0, 32}, {-1, -1, 32},
	} {
		if got := GEMMTileFor(c.m, c.n); got != c.want {
			t.Errorf("GEMMTileFor(%d, %d) = %d, want %d", c.m, c.n, got, c.want)
		}
	}
	for _, c := range []struct {
		tile, batch, m, n int
		groups, threads   runtime.Size
	}{
		{32, 1, 1, 1, runtime.D3(1, 1, 1), runtime.D1(32)}, {32, 3, 32, 33, runtime.D3(2, 1, 3), runtime.D1(32)}, {64, 1, 65, 64, runtime.D3(1, 2, 1), runtime.D1(128)},
		{64, 2, 4096, 11008, runtime.D3(172, 64, 2), runtime.D1(128)},
	} {
		if groups, threads := GEMMGeometry(c.tile, c.batch, c.m, c.n); groups != c.groups || threads != c.threads {
			t.Errorf("%+v: %v groups of %v", c, groups, threads)
		}
	}
	for _, c := range []struct {
		trans           bool
		batch, rows     int
		groups, threads runtime.Size
	}{
		{false, 1, 1, runtime.D2(1, 1), runtime.D1(64)}, {false, 5, 9, runtime.D2(2, 5), runtime.D1(64)}, {true, 1, 128, runtime.D2(1, 1), runtime.D1(256)},
		{true, 2, 129, runtime.D2(2, 2), runtime.D1(256)},
	} {
		if groups, threads := GEMVGeometry(c.trans, c.batch, c.rows); groups != c.groups || threads != c.threads {
			t.Errorf("%+v: %v groups of %v", c, groups, threads)
		}
	}
	GEMMGeometry(0, 0, 0, 0) // what no launch has gives no launch, and no panic
	GEMMGeometry(-1, -1, -1, -1)
	for a := ActNone; a <= ActSiLU+1; a++ {
		if got, want := a.String(), []string{"none", "ReLU", "GELU", "SiLU", "Activation(4)"}[a]; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
