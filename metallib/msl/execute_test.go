package msl_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/internal/testenv"
	"github.com/ingot-metal/ingot/metallib"
	"github.com/ingot-metal/ingot/metallib/msl"
	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/mtl/soft"
	"github.com/ingot-metal/ingot/objc"
	"github.com/ingot-metal/ingot/runtime/half"
)

// A machine runs kernels compiled from testdata/execute.metal on the software device.
type machine struct {
	t   *testing.T
	dev mtl.Device
	lib mtl.Library
}

func newMachine(t *testing.T) *machine {
	testenv.Tool(t, "clang-22")
	testenv.Tool(t, "opt-22")
	source, err := os.ReadFile("testdata/execute.metal")
	require.NoError(t, err)
	lib, err := msl.Compile(t.Context(), string(source), msl.Options{})
	require.NoError(t, err)
	return loadMachine(t, lib)
}

func loadMachine(t *testing.T, lib *metallib.Library) *machine {
	data, err := metallib.Write(lib)
	require.NoError(t, err)
	pool := objc.NewPool()
	t.Cleanup(pool.Drain)
	dev := soft.New(soft.Options{})
	t.Cleanup(dev.Release)
	l, err := dev.NewLibraryWithData(data)
	require.NoError(t, err)
	t.Cleanup(l.Release)
	return &machine{t, dev, l}
}

// run dispatches threads in one go; buffers are changed in place.
func (m *machine) run(fn mtl.Function, threads, group int, buffers ...[]byte) {
	m.t.Helper()
	defer fn.Release()
	p, err := m.dev.NewComputePipelineStateWithFunction(fn)
	require.NoError(m.t, err)
	defer p.Release()
	queue := m.dev.NewCommandQueue()
	defer queue.Release()
	cb := queue.CommandBuffer()
	e := cb.ComputeCommandEncoder()
	e.SetComputePipelineState(p)
	var held []mtl.Buffer
	for i, b := range buffers {
		held = append(held, m.dev.NewBufferWithBytes(b, mtl.ResourceStorageModeShared))
		e.SetBuffer(held[i], 0, uint(i))
	}
	e.DispatchThreads(mtl.Size{Width: uint(threads), Height: 1, Depth: 1}, mtl.Size{Width: uint(group), Height: 1, Depth: 1})
	e.EndEncoding()
	cb.Commit()
	cb.WaitUntilCompleted()
	require.NoError(m.t, cb.Error())
	for i, b := range held {
		copy(buffers[i], b.Contents())
		b.Release()
	}
}

func floatBytes(v ...float32) []byte {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

func floatAt(b []byte, i int) float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
}

func TestExecuteClasses(t *testing.T) {
	m := newMachine(t)
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	x := []float32{0, float32(math.Copysign(0, -1)), 1, -1, 2, -2, inf, -inf, nan, math.MaxFloat32, -math.MaxFloat32, 1.5e-38, -1.5e-38}
	out := make([]byte, 4*len(x))
	m.run(m.lib.NewFunctionWithName("classes"), len(x), 32, floatBytes(x...), out)
	for i, v := range x {
		isNaN, isInf := v != v, v == inf || v == -inf
		want := uint32(128 | 256)
		for bit, is := range map[uint32]bool{1: isNaN, 2: isInf, 4: !isNaN && !isInf, 8: isNaN || isInf || v == 0, 16: math.Signbit(float64(v)),
			32: !isNaN && !isInf && v != 0, 64: v > 1} {
			if is {
				want |= bit
			}
		}
		require.Equal(t, want, binary.LittleEndian.Uint32(out[4*i:]), "of %v", v)
	}
}

func TestExecuteIntegers(t *testing.T) {
	m := newMachine(t)
	pairs := [][2]uint32{{0, 0}, {1, 2}, {5, 3}, {math.MaxUint32, 1}, {math.MaxInt32, 7}, {1 << 31, 1 << 31}, {0xdeadbeef, 0x12345678}, {3, math.MaxUint32}}
	var in []byte
	for _, p := range pairs {
		in = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(in, p[0]), p[1])
	}
	out := make([]byte, 64*len(pairs))
	m.run(m.lib.NewFunctionWithName("integers"), len(pairs), 32, in, out)
	for i, p := range pairs {
		a, b := p[0], p[1]
		wide, other := uint64(a)<<20|uint64(b), uint64(b)<<31|uint64(a)
		var want [8]uint64
		want[0] = uint64(a + b)
		if a+b < a {
			want[0] = 1
		}
		high, low := bits.Mul64(wide, other)
		want[1] = low
		if high != 0 {
			want[1] = 1
		}
		want[2] = 1
		if a > b {
			want[2] = 2
		} else if a < b {
			want[2] = 0
		}
		if a >= b {
			want[3] = uint64(a - b)
		}
		want[4] = uint64(max(min(int64(int32(a))+int64(int32(b)), math.MaxInt32), math.MinInt32) + 0x100000000)
		want[5] = high
		want[6] = uint64(bits.OnesCount32(a)) + uint64(bits.LeadingZeros32(a))<<8 + uint64(bits.TrailingZeros32(b))<<16 + uint64(bits.Reverse32(b))<<32
		inserted := a&^(0xffff<<8) | b<<8&(0xffff<<8)
		want[7] = uint64(a>>4&0xfff) + uint64(inserted)<<16 + uint64(bits.RotateLeft32(a, int(b&31)))<<32
		for k := range want {
			require.Equal(t, want[k], binary.LittleEndian.Uint64(out[64*i+8*k:]), "result %d of %#x, %#x", k, a, b)
		}
	}
}

func TestExecuteVectors(t *testing.T) {
	m := newMachine(t)
	x := []float32{1, 2, 3, 4, -1.5, 0.25, 7, -2, 100, -3.75, 0.125, 9}
	n := len(x) / 4
	out, packed := make([]byte, 32*n), make([]byte, 12*n)
	m.run(m.lib.NewFunctionWithName("vectors"), n, 32, floatBytes(x...), out, packed)
	h := func(f float32) float32 { return half.Float16FromFloat32(f).Float32() }
	bf := func(f float32) float32 { return half.BFloat16FromFloat32(f).Float32() }
	for i := range n {
		v := x[4*i : 4*i+4]
		w := []float32{v[0] + v[3], v[1] + v[2], 2*v[2] + v[1], 1.5}
		var s float32
		for k := range v {
			s += max(v[k], w[k])
		}
		want := []float32{
			w[0] + 2*w[1] + 3*w[2] + 4*w[3],
			h(v[1]) + h(h(v[0])*h(v[2])),
			float32(int32(v[0]) + int32(v[1])*int32(v[3])),
			s,
			bf(v[0]) + bf(bf(v[1])*bf(v[2])),
			v[3] + v[1],
			h(h(v[0])*h(v[2])) + h(h(v[1])*h(v[2])),
			v[0] + 2,
		}
		for k := range want {
			require.Equal(t, want[k], floatAt(out, 8*i+k), "result %d of %v", k, v)
		}
		require.Equal(t, []float32{v[1], v[2], v[3]}, []float32{floatAt(packed, 3*i), floatAt(packed, 3*i+1), floatAt(packed, 3*i+2)})
	}
}

func TestExecuteConstantsAndThreadgroups(t *testing.T) {
	m := newMachine(t)
	x := make([]float32, 192)
	for i := range x {
		x[i] = float32(i % 7)
	}
	for _, c := range []struct {
		factor int32
		twice  byte
		total  float32
		extra  float32
	}{{3, 0, 3, 0}, {3, 1, 6, 0}, {6, 1, 12, 1000}, {-4, 1, -8, 0}} {
		values, err := mtl.NewFunctionConstantValues(m.dev)
		require.NoError(t, err)
		values.SetInt32(3, c.factor)
		require.NoError(t, values.SetNamed("twice", mtl.DataTypeBool, []byte{c.twice}))
		fn, err := m.lib.NewFunctionWithNameConstantValues("sums", values)
		require.NoError(t, err)
		values.Release()
		out := make([]byte, 4*2)
		m.run(fn, len(x), 96, floatBytes(x...), out)
		for g := range 2 {
			var sum float32
			for _, v := range x[96*g : 96*g+96] {
				sum += v
			}
			require.Equal(t, sum*c.total+c.extra+96*100000, floatAt(out, g), "%+v", c)
		}
	}
}

// The elements of simdgroup matrices that lanes change are taken out and put in one by one, as Apple's compiler does it.
func TestExecuteMatrixElements(t *testing.T) {
	m := newMachine(t)
	x, h := make([]float32, 64), []byte{}
	for i := range x {
		x[i] = float32(i + 3)
		h = binary.LittleEndian.AppendUint16(h, uint16(half.Float16FromFloat32(float32(i)/2)))
	}
	out := make([]byte, 4*128)
	m.run(m.lib.NewFunctionWithName("matrix_elements"), 32, 32, floatBytes(x...), out, h)
	for lane := range 32 {
		quad := lane / 4
		at := 8*(quad&4+lane/2%4) + quad&2*2 + lane%2*2
		f := float32(lane + 1)
		require.Equal(t, x[at]*f, floatAt(out, at), "lane %d", lane)
		require.Equal(t, x[at+1]*f+2*x[at]+x[at+1], floatAt(out, at+1), "lane %d", lane)
		require.Equal(t, float32(at+1)/2, floatAt(out, 64+at), "lane %d", lane)
		require.Equal(t, float32(at)/2, floatAt(out, 64+at+1), "lane %d", lane)
	}
}

// Operations that the optimiser makes of rare shapes of code, written down as it would: arithmetic with overflow flags,
// three-way comparison, classes of numbers, signs.
func TestExecuteRareIntrinsics(t *testing.T) {
	names := []string{"uadd", "usub", "umul", "sadd", "ssub", "smul"}
	text := "target triple = \"spir64\"\ndefine void @k(ptr addrspace(1) %in, ptr addrspace(1) %out, i32 %i) {\n" +
		"  %a0 = zext i32 %i to i64\n  %a1 = shl i64 %a0, 1\n  %a2 = add i64 %a1, 1\n" +
		"  %pa = getelementptr i32, ptr addrspace(1) %in, i64 %a1\n  %pb = getelementptr i32, ptr addrspace(1) %in, i64 %a2\n" +
		"  %a = load i32, ptr addrspace(1) %pa\n  %b = load i32, ptr addrspace(1) %pb\n" +
		"  %o = mul i64 %a0, 64\n  %po = getelementptr i8, ptr addrspace(1) %out, i64 %o\n"
	store := func(value string, n int) {
		text += fmt.Sprintf("  %%p%d = getelementptr i8, ptr addrspace(1) %%po, i64 %d\n  store i32 %s, ptr addrspace(1) %%p%d\n", n, 4*n, value, n)
	}
	declares := ""
	for k, name := range names {
		text += fmt.Sprintf("  %%r%[1]d = call {i32, i1} @llvm.%[2]s.with.overflow.i32(i32 %%a, i32 %%b)\n  %%v%[1]d = extractvalue {i32, i1} %%r%[1]d, 0\n"+
			"  %%f%[1]d = extractvalue {i32, i1} %%r%[1]d, 1\n  %%g%[1]d = zext i1 %%f%[1]d to i32\n", k, name)
		store(fmt.Sprintf("%%v%d", k), 2*k)
		store(fmt.Sprintf("%%g%d", k), 2*k+1)
		declares += "declare {i32, i1} @llvm." + name + ".with.overflow.i32(i32, i32)\n"
	}
	text += "  %sc = call i32 @llvm.scmp.i32.i32(i32 %a, i32 %b)\n  %uc = call i32 @llvm.ucmp.i32.i32(i32 %a, i32 %b)\n" +
		"  %fa = bitcast i32 %a to float\n  %fb = bitcast i32 %b to float\n  %cs = call float @llvm.copysign.f32(float %fa, float %fb)\n  %ci = bitcast float %cs to i32\n"
	store("%sc", 12)
	store("%uc", 13)
	store("%ci", 14)
	text += "  %c0 = or i32 0, 0\n"
	for bit := range 10 {
		text += fmt.Sprintf("  %%k%[1]d = call i1 @llvm.is.fpclass.f32(float %%fa, i32 %[2]d)\n  %%z%[1]d = zext i1 %%k%[1]d to i32\n  %%s%[1]d = shl i32 %%z%[1]d, %[1]d\n  %%c%[3]d = or i32 %%c%[1]d, %%s%[1]d\n",
			bit, 1<<bit, bit+1)
	}
	store("%c10", 15)
	text += "  ret void\n}\n" + declares + "declare i32 @llvm.scmp.i32.i32(i32, i32)\ndeclare i32 @llvm.ucmp.i32.i32(i32, i32)\n" +
		"declare float @llvm.copysign.f32(float, float)\ndeclare i1 @llvm.is.fpclass.f32(float, i32 immarg)\n"

	m := loadMachine(t, msl.LowerText(t, text))
	values := []uint32{0, 1, 2, 0x7fffffff, 0x80000000, 0xffffffff, 0x80000001, 0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001, 0x3f800000, 0xbf800000, 0x00000001, 0x80000005}
	var in []byte
	var pairs [][2]uint32
	for _, a := range values {
		for _, b := range values {
			pairs = append(pairs, [2]uint32{a, b})
			in = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(in, a), b)
		}
	}
	out := make([]byte, 64*len(pairs))
	m.run(m.lib.NewFunctionWithName("k"), len(pairs), 32, in, out)
	flag := func(b bool) uint32 {
		if b {
			return 1
		}
		return 0
	}
	for i, p := range pairs {
		a, b := p[0], p[1]
		sa, sb := int64(int32(a)), int64(int32(b))
		ranged := func(v int64) uint32 { return flag(v != int64(int32(v))) }
		want := []uint32{a + b, flag(a+b < a), a - b, flag(a < b), a * b, flag(uint64(a)*uint64(b) > math.MaxUint32),
			a + b, ranged(sa + sb), a - b, ranged(sa - sb), a * b, ranged(sa * sb),
			flag(sa > sb) - flag(sa < sb), flag(a > b) - flag(a < b), a&0x7fffffff | b&0x80000000, 1 << classOf(a)}
		for k := range want {
			require.Equal(t, want[k], binary.LittleEndian.Uint32(out[64*i+4*k:]), "result %d of %#x, %#x", k, a, b)
		}
	}
}

// classOf is the bit of llvm.is.fpclass for a float's bits.
func classOf(bits uint32) int {
	negative := bits>>31 != 0
	switch magnitude := bits &^ (1 << 31); {
	case magnitude > 0x7f800000 && magnitude&0x400000 == 0:
		return 0
	case magnitude > 0x7f800000:
		return 1
	case negative && magnitude == 0x7f800000:
		return 2
	case negative && magnitude >= 0x800000:
		return 3
	case negative && magnitude != 0:
		return 4
	case negative:
		return 5
	case magnitude == 0:
		return 6
	case magnitude < 0x800000:
		return 7
	case magnitude < 0x7f800000:
		return 8
	}
	return 9
}
