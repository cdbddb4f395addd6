package nn

import (
	"testing"

	"github.com/ingot-metal/ingot/nn/quant"
)

// The products with quantised weights; see kernelSlots.
func init() {
	for name, slots := range map[string]string{
		"gemv_q8":                          "0r 1r 2r 3r 4w 5u 6u 7u",
		"gemv_q4":                          "0r 1r 2r 3r 4w 5u 6u 7u",
		"gemv_q4_tiled":                    "0r 1r 2r 3r 4w 5u 6u 7u",
		"gemv_q4_mlx":                      "0r 1r 3r 4w 5u 6u 7u",
		"gemv_q4_mlx_wide":                 "0r 1r 3r 4w 5u 6u 7u",
		"gemv_q4_mlx_tiled":                "0r 1r 3r 4w 5u 6u 7u",
		"gemv_q4_mlx_blocked":              "0r 1r 3r 4w 5u 6u 7u",
		"gemv_q4_mlx_blocked_gate_up_gelu": "0r 1r 3r 4r 6r 7w 8u 9u 10u 11u",
		"gemv_q4_mlx_simd_add":             "0r 1r 3r 4w 5u 6u 7u 8r",
		"gemv_q4_mlx_simd_kv":              "0r 1r 3r 4r 6r 7w 8w 9u 10u 11u 12u",
		"gemv_q4_mlx_simd_i4":              "0r 1r 3r 4w 5u 6u 7u",
		"gemv_q4_mlx_simd_add_i4":          "0r 1r 3r 4w 5u 6u 7u 8r",
		"gemv_q4_mlx_simd_kv_i4":           "0r 1r 3r 4r 6r 7w 8w 9u 10u 11u 12u",
		"gemv_q4_mlx_simd_qkv_i4":          "0r 1r 2r 3r 4r 5r 6r 7w 8w 9w 10u 11u 12u 13u 14u 15u",
		"gemv_q4_mlx_simd_gate_up_gelu_i4": "0r 1r 3r 4r 6r 7w 8u 9u 10u 11u",
		"gemm_q4_mlx_simd":                 "0r 1r 3r 4w 5u 6u 7u 8u",
		"gemm_q4_mlx_simd_add":             "0r 1r 3r 4w 5u 6u 7u 8u 9r",
		"gemm_q4_mlx_simd_i4":              "0r 1r 3r 4w 5u 6u 7u 8u",
		"gemm_q4_mlx_simd_add_i4":          "0r 1r 3r 4w 5u 6u 7u 8u 9r",
	} {
		kernelSlots[name] = slots
	}
}

// Host and kernels of the products agree on the numbers that both have.
func TestGEMVGeometryMatchesShaders(t *testing.T) {
	text := shaders(t)
	for _, c := range []struct {
		file, name string
		want       int
	}{
		{"gemv_q8.metal", "INGOT_Q8_ROWS", GEMVRows / 2},
		{"gemv_q8.metal", "INGOT_Q8_GROUP_ROWS", GEMVRows},
		{"gemv_q4.metal", "INGOT_Q4S_ROWS", GEMVRows / 2},
		{"gemv_q4.metal", "INGOT_Q4S_GROUP_ROWS", GEMVRows},
		{"gemm_q4_mlx.h", "INGOT_GEMM_M", MaxGEMMVectors},
		{"q4_mlx.h", "INGOT_Q4_ROWS", quant.TileRows},
		{"gemv_q4_mlx_blocked.metal", "INGOT_BLOCK_ROWS", quant.BlockRows},
		{"gemv_q4_mlx_blocked.metal", "INGOT_BLOCK_LANES", GEMVBlockThreads / quant.BlockRows},
	} {
		if got := defined(text[c.file], c.name); got != c.want {
			t.Errorf("%s: %s is %d, the host has %d", c.file, c.name, got, c.want)
		}
	}
	for _, c := range [][2]int{{1, 32}, {32, 32}, {33, 64}, {127, 128}, {128, 128}, {1000, 128}} {
		if got := GEMVRowThreads(c[0]); got != c[1] {
			t.Errorf("%d rows: %d threads, want %d", c[0], got, c[1])
		}
	}
}
