package metallib_test

import (
	"testing"

	"github.com/ingot-metal/ingot/metallib"
	"github.com/stretchr/testify/require"
)

func TestFamilies(t *testing.T) {
	var l metallib.Library
	require.Empty(t, l.Families())
	for name, bytes := range map[string]int{
		"gemm_dense_f16_t32": 10, "gemm_dense_bf16_t64": 20, "gemm_int8_nn": 7, "decode_advance": 7,
		"q4_dequant": 1, "f16": 2, "_0": 3, "": 4,
	} {
		l.Functions = append(l.Functions, metallib.Function{Name: name, Bitcode: make([]byte, bytes)})
	}
	require.Equal(t, []metallib.Family{
		{"gemm_dense", 2, 30}, {"decode_advance", 1, 7}, {"gemm", 1, 7}, {"", 1, 4}, {"_0", 1, 3}, {"f16", 1, 2}, {"q4_dequant", 1, 1},
	}, l.Families())
}

// Programs carry the whole library: it has a budget.
func TestDefaultFitsItsBudget(t *testing.T) {
	data := metallib.Default()
	require.Less(t, len(data), 8<<20)
	l, err := metallib.Read(data)
	require.NoError(t, err)
	functions, bytes := 0, 0
	for _, f := range l.Families() {
		functions, bytes = functions+f.Functions, bytes+f.Bytes
	}
	require.Equal(t, len(l.Functions), functions)
	require.Less(t, bytes, len(data))
}
