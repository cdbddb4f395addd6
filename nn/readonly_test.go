package nn

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ingot-metal/ingot/nn/quant"
	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// readOnly is the memory of a mapped file, as elements of a type.
func readOnly[T runtime.Element](t *testing.T, rt *runtime.Runtime) runtime.Slice[T] {
	t.Helper()
	path := filepath.Join(t.TempDir(), "weights")
	if err := os.WriteFile(path, make([]byte, 1<<16), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := runtime.MapFile(rt, path)
	if err != nil {
		t.Fatal(err)
	}
	s, err := runtime.As[T](file.View())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Release() })
	return s
}

// What is to be written must not be read-only: the error names function and argument, and preflights say so too.
func TestReadOnlyOutputs(t *testing.T) {
	rt, r := open(t), source(1700)
	ro, roIDs, roBytes, roBF, roInts := readOnly[float32](t, rt), readOnly[uint32](t, rt), readOnly[uint8](t, rt), readOnly[half.BFloat16](t, rt), readOnly[int32](t, rt)
	x, out := newBuffer(t, rt, normals(r, 8192, 1)), output[float32](t, rt, 8192)
	f16, one := newBuffer(t, rt, make([]half.Float16, 8192)), newBuffer(t, rt, []uint32{0})
	bf16, bytes := newBuffer(t, rt, make([]half.BFloat16, 1024)), newBuffer(t, rt, make([]int8, 64))
	ids := output[uint32](t, rt, 64)
	affine := randomAffine(t, rt, r, quant.AffineFormat{Bits: 4, GroupSize: 32, Scale: quant.ScaleF32}, 8, 64).bank
	codes := randomAffineCodes(t, rt, r, 8, 64, 32).bank
	plane := newPlaneProduct(t, rt, uploadAffinePlane(t, rt, randomAffine(t, rt, r, planeFormat, 64, 64).host), normals(r, 64, 1), 1).a
	dense, err := UploadDense(rt, normals(r, 8*64, 1), 8, 64)
	if err != nil {
		t.Fatal(err)
	}
	mlx, err := UploadQ4MLX(rt, quantizedMLX(t, r, 8, 64, 32))
	if err != nil {
		t.Fatal(err)
	}
	heads := QKVHeads{Q: x.s, K: out.s, V: out.s.Slice(4096, 8192), QWeight: x.s.Slice(4096, 4104), KWeight: x.s.Slice(4096, 4104), T: 1, HeadsQ: 1, HeadsKV: 1, HeadDim: 8, Eps: 1}
	precise := PreciseDims{Batch: 1, Heads: 1, HeadsKV: 1, HeadDim: 64, Tq: 1, Tk: 1, Capacity: 1, Scale: 1}
	attention := AttnDims{Batch: 1, Tq: 1, Heads: 1, HeadsKV: 1, HeadDim: 64, Capacity: 1, Scale: 1}
	live := AttnLive{one.s, one.s, one.s}
	cache := TQHBCache{Codes: readOnly[uint8](t, rt), Norms: out.s, Capacity: 1, Codec: quant.TQHB{Dim: 64, Bits: 8}}
	norms := cache
	planeWith := func(change func(a *QMMAffinePlaneArgs)) QMMAffinePlaneArgs {
		a := plane
		change(&a)
		return a
	}
	headsWith := func(change func(a *QKVHeads)) QKVHeads {
		a := heads
		change(&a)
		return a
	}
	coded, err := runtime.NewSlice[uint8](rt, 64)
	if err != nil {
		t.Fatal(err)
	}
	norms.Codes, norms.Norms = coded, ro
	for _, c := range []struct {
		fn, arg  string
		call     func(p *runtime.Pass) error
		validate func() error
	}{
		{"ScaleInPlaceF32", "x", func(p *runtime.Pass) error { return ScaleInPlaceF32(p, ro, 8, 2) }, nil},
		{"Add", "out", func(p *runtime.Pass) error { return Add(p, ro, x.s, x.s, 8) }, nil},
		{"Add", "out", func(p *runtime.Pass) error { return Add(p, ro, ro, ro, 8) }, nil},
		{"AddInPlace", "x", func(p *runtime.Pass) error { return AddInPlace(p, ro, x.s, 8) }, nil},
		{"AddBias", "out", func(p *runtime.Pass) error { return AddBias(p, ro, x.s, x.s, 2, 4) }, nil},
		{"SoftcapLogits", "logits", func(p *runtime.Pass) error { return SoftcapLogits(p, ro, x.s, 8) }, nil},
		{"SoftcapArgmax", "token", func(p *runtime.Pass) error { return SoftcapArgmax(p, roIDs, out.s, x.s, x.s, 8) }, nil},
		{"SoftcapSample", "logits", func(p *runtime.Pass) error { return SoftcapSample(p, ids.s, ro, x.s, 8) }, nil},
		{"ArgmaxPass", "Value", func(p *runtime.Pass) error {
			return ArgmaxPass(p, ArgmaxOperands{Index: ids.s, Value: ro, Values: x.s, N: 8})
		}, nil},
		{"EmbedLookup", "out", func(p *runtime.Pass) error { return EmbedLookup(p, ro, dense, one.s, 1, 1) }, nil},
		{"EmbedLookupAffine", "out", func(p *runtime.Pass) error { return EmbedLookupAffine(p, ro, affine, one.s, 1, 1) }, nil},
		{"EmbedLookupQ4MLX", "out", func(p *runtime.Pass) error { return EmbedLookupQ4MLX(p, ro, mlx, one.s, 1, 1) }, nil},
		{"RMSNormF32", "out", func(p *runtime.Pass) error { return RMSNormF32(p, ro, x.s, x.s, 1, 8, 1) }, nil},
		{"RMSNormResidualAddF32", "resid", func(p *runtime.Pass) error { return RMSNormResidualAddF32(p, ro, x.s, x.s, 1, 8, 1, 1) }, nil},
		{"SoftmaxRowsF32", "out", func(p *runtime.Pass) error { return SoftmaxRowsF32(p, ro, x.s, 1, 8) }, nil},
		{"RowSumF32", "out", func(p *runtime.Pass) error { return RowSumF32(p, ro, x.s, 1, 8) }, nil},
		{"Cast", "dst", func(p *runtime.Pass) error { return Cast(p, roBF, x.s, 8) }, nil},
		{"Copy", "dst", func(p *runtime.Pass) error { return Copy(p, ro, x.s, 8) }, nil},
		{"KVStoreTimestep", "dst", func(p *runtime.Pass) error { return KVStoreTimestep(p, ro, x.s, one.s, 8, 8) }, nil},
		{"MLPSiLU", "out", func(p *runtime.Pass) error { return MLPSiLU(p, ro, x.s, x.s, 8) }, nil},
		{"GEMM", "out", func(p *runtime.Pass) error { return GEMM(p, ro, x.s, x.s, GEMMDims{M: 2, N: 2, K: 2}) },
			func() error { return ValidateGEMM(rt, ro, x.s, x.s, GEMMDims{M: 2, N: 2, K: 2}) }},
		{"GEMV", "y", func(p *runtime.Pass) error { return GEMV(p, ro, x.s, x.s, GEMVDims{Rows: 2, Cols: 2}) },
			func() error { return ValidateGEMV(rt, ro, x.s, x.s, GEMVDims{Rows: 2, Cols: 2}) }},
		{"GEMMWeights", "y", func(p *runtime.Pass) error { return GEMMWeights(p, ro, dense, f16.s, 1) },
			func() error { return ValidateGEMMWeights(rt, ro, dense, f16.s, 1) }},
		{"GEMMInt8", "c", func(p *runtime.Pass) error {
			return GEMMInt8(p, roInts, bytes.s, bytes.s, GEMMInt8Dims{M: 2, N: 2, K: 2})
		}, func() error { return ValidateGEMMInt8(rt, roInts, bytes.s, bytes.s, GEMMInt8Dims{M: 2, N: 2, K: 2}) }},
		{"GEMMQ4MLX", "y", func(p *runtime.Pass) error { return GEMMQ4MLX(p, ro, mlx, bf16.s, 2) },
			func() error { return ValidateGEMMQ4MLX(rt, ro, mlx, bf16.s, 2) }},
		{"GEMVQ4MLX", "y", func(p *runtime.Pass) error { return GEMVQ4MLX(p, ro, mlx, bf16.s) }, func() error { return ValidateGEMVQ4MLX(rt, ro, mlx, bf16.s) }},
		{"GEMVQ4MLXF32", "y", func(p *runtime.Pass) error { return GEMVQ4MLXF32(p, ro, mlx, x.s) }, func() error { return ValidateGEMVQ4MLXF32(rt, ro, mlx, x.s) }},
		{"QMMAffine", "y", func(p *runtime.Pass) error { return QMMAffine(p, ro, affine, x.s, 1) }, func() error { return ValidateQMMAffine(rt, ro, affine, x.s, 1) }},
		{"QMMAffinePacked", "y", func(p *runtime.Pass) error { return QMMAffinePacked(p, ro, affine, x.s, 1) },
			func() error { return ValidateQMMAffinePacked(rt, ro, affine, x.s, 1) }},
		{"QMMAffineCodes", "y", func(p *runtime.Pass) error { return QMMAffineCodes(p, ro, codes, x.s, 1, QMMAffineScalar) },
			func() error { return ValidateQMMAffineCodes(rt, ro, codes, x.s, 1, QMMAffineScalar) }},
		{"QMMAffinePlane", "Y", func(p *runtime.Pass) error {
			return QMMAffinePlane(p, planeWith(func(a *QMMAffinePlaneArgs) { a.Y = ro }))
		}, func() error { return ValidateQMMAffinePlane(rt, planeWith(func(a *QMMAffinePlaneArgs) { a.Y = ro })) }},
		{"QMMAffinePlane", "Table", func(p *runtime.Pass) error {
			return QMMAffinePlane(p, planeWith(func(a *QMMAffinePlaneArgs) { a.Table = roBF }))
		}, nil},
		{"QMMAffinePlane", "Sums", func(p *runtime.Pass) error {
			return QMMAffinePlane(p, planeWith(func(a *QMMAffinePlaneArgs) { a.Sums = ro }))
		}, nil},
		{"RowExactMatvec", "y", func(p *runtime.Pass) error { return RowExactMatvec(p, ro, dense, x.s, RowExactContiguous(1, 8, 64)) },
			func() error { return ValidateRowExactMatvec(rt, ro, dense, x.s, RowExactContiguous(1, 8, 64)) }},
		{"RMSQKVRoPE", "Q", func(p *runtime.Pass) error { return RMSQKVRoPE(p, headsWith(func(a *QKVHeads) { a.Q = ro }), 0) },
			func() error { return ValidateRMSQKVRoPE(rt, headsWith(func(a *QKVHeads) { a.Q = ro }), 0) }},
		{"RMSQKVRoPE", "V", func(p *runtime.Pass) error { return RMSQKVRoPE(p, headsWith(func(a *QKVHeads) { a.V = ro }), 0) }, nil},
		{"FlashAttnPrecise", "out", func(p *runtime.Pass) error { return FlashAttnPrecise(p, ro, f16.s, f16.s, PreciseV{F32: x.s}, precise) },
			func() error { return ValidateFlashAttnPrecise(rt, ro, f16.s, f16.s, PreciseV{F32: x.s}, precise) }},
		{"PreciseBlocks", "blocks", func(p *runtime.Pass) error { return PreciseBlocks(p, roBytes, f16.s, 64, 1, 1) }, nil},
		{"FlashAttnRows", "out", func(p *runtime.Pass) error { return FlashAttnRows(p, ro, x.s, x.s, x.s, live, attention) },
			func() error { return ValidateFlashAttnRows(rt, ro, x.s, x.s, x.s, live, attention) }},
		{"FlashAttnDecode", "scratch", func(p *runtime.Pass) error { return FlashAttnDecode(p, out.s, x.s, x.s, x.s, live, ro, attention) },
			func() error { return ValidateFlashAttnDecode(rt, out.s, x.s, x.s, x.s, live, ro, attention) }},
		{"TQHBEncode", "Codes", func(p *runtime.Pass) error { return TQHBEncode(p, cache, x.s, one.s, 1, 1, false) }, nil},
		{"TQHBEncode", "Norms", func(p *runtime.Pass) error { return TQHBEncode(p, norms, x.s, one.s, 1, 1, false) }, nil},
		{"TQHBDequantize", "out", func(p *runtime.Pass) error { return TQHBDequantize(p, ro, roBytes, x.s, cache.Codec, 1) }, nil},
		{"DecodeAdvance", "State", func(p *runtime.Pass) error {
			return DecodeAdvance(p, DecodeStep{State: roIDs, Prompt: one.s, Argmax: one.s, Output: ids.s, KVCapacity: 1, KVStride: 1})
		}, nil},
	} {
		bad := refusal{c.fn + " " + c.arg, c.call, runtime.ErrMisuse, []string{c.arg, "read-only"}}
		refuses(t, rt, "nn."+c.fn, []target{out, ids}, []refusal{bad})
		if c.validate != nil {
			checkRefused(t, "nn.Validate"+c.fn, bad, c.validate())
		}
	}
}
