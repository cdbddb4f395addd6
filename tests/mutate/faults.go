package main

import "slices"

// allFaults is the whole table. It is by hand: a fault that a person might make says more than one that a program can.
func allFaults() []fault {
	return slices.Concat(rowFaults, elementFaults, decodeFaults, attnFaults, gemvFaults, gemvMLXFaults, gemmFaults, denseFaults, preciseFaults, rowExactFaults, weightsFaults, affineFaults)
}

// attnKernels are some of the kernels of attention, by rows and split: the whole of them takes long to compile.
const attnKernels = `_h(80_|128_(r8_g8|c256_r8|c256$)|256_(r16_g32|c128_r16|c128$))`

// Patterns of tests, by family.
const (
	normTests    = "RMSNorm|RegressionNorm|RegressionResidual|FewThreads"
	reduceTests  = "Softmax|RowSum|RowMax|RowReduce|RegressionRowsSee|RegressionSoftmax"
	argmaxTests  = "Argmax|SoftcapSample|ElementsFewThreads|ElementsInExact"
	softcapTests = "Softcap|Argmax"
	elementTests = "Scale|TestAdd|Softcap|Elementwise|ElementsInExact|RegressionBFloatElements"
	castTests    = "Cast|Copy|ElementsInExact"
	mlpTests     = "MLP|ElementsInExact"
	geluTests    = "MLPGELU|MLPNotFinite|GateUpGELU|RegressionGELU"
	kvTests      = "KV(Store|Ring|Recorded)|RegressionStores|ElementsInExact"
	embedTests   = "EmbedLookup"
	ropeTests    = "RMSQKVRoPE|RegressionPadding|RegressionOffsets|RegressionQueries|RegressionRoPE|RoPEPairings"
	advanceTests = "DecodeAdvance|DecodeState|StepOnEvery"
	rowsTests    = "FlashAttnRows|AttnSinks|TestAttention|RegressionFully|RegressionAllScores|RegressionBFloatOutput|RegressionNo|RegressionAttn|RegressionOffsets"
	partialTests = "FlashAttnDecode|AttnSinks|TestAttention|RegressionNo|RegressionAttn"
	tiledTests   = "FlashAttnTiled|RegressionTiledScores|RegressionNo|RegressionAttn"
	attnTests    = rowsTests + "|" + partialTests + "|" + tiledTests
	q8Tests      = "GEMVF32|Q8|ProductsFewThreads"
	q4Tests      = "GEMVF32|ProductsFewThreads|RegressionTiledKernels"
	simdTests    = "GEMVQ4MLX|GEMVSimd|GEMVRecorded|GEMMQ4MLX|GEMMKeeps|RegressionGEMM|RegressionFused|RegressionBanks"
	mlxF32Tests  = "GEMVF32|GEMVQ4MLXBlocked|RegressionTiledKernels|RegressionTiledBanks|RegressionBlocked|ProductsFewThreads"
	preciseTests = "Precise"
	tqhbTests    = "TQHB|PreciseCodes|PrecisePipeline"
	int8Tests    = "Int8"
	denseTests   = "TestGEMM(F32|F16|BF16|Exact|Extremes|Epilogue|Broadcast|Rounds|Keeps|Elements|Live|Without)|GEMVDense|Dense|TestRegressionGEMM"
)
