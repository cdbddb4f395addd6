package soft

import (
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/internal/testenv"
	"github.com/ingot-metal/ingot/metallib"
	"github.com/ingot-metal/ingot/metallib/air"
	"github.com/ingot-metal/ingot/metallib/msl"
	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/mtl/soft/internal/simt"
	"github.com/ingot-metal/ingot/objc"
)

var update = flag.Bool("update", false, "compile the kernels in testdata (needs clang-22)")

// TestKernelsAreCurrent compares the tests' own libraries, and the sources they were made from, with what was noted when
// they were made. With -update it makes the libraries.
func TestKernelsAreCurrent(t *testing.T) {
	for _, name := range []string{"kernels", "checks"} {
		path := "testdata/" + name
		source, err := os.ReadFile(path + ".metal")
		require.NoError(t, err)
		if *update {
			lib, err := msl.Compile(context.Background(), string(source), msl.Options{Name: name + ".metal"})
			require.NoError(t, err)
			library, err := metallib.Write(lib)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(path+".metallib", library, 0o644))
			require.NoError(t, os.WriteFile(path+".sum", []byte(sums(name, source, library)), 0o644))
		}
		library, err := os.ReadFile(path + ".metallib")
		require.NoError(t, err)
		noted, err := os.ReadFile(path + ".sum")
		require.NoError(t, err)
		require.Equal(t, string(noted), sums(name, source, library), "run: go test ./mtl/soft -run TestKernelsAreCurrent -update")
	}
}

func sums(name string, source, library []byte) string {
	return fmt.Sprintf("%x  %s.metal\n%x  %s.metallib\n", sha256.Sum256(source), name, sha256.Sum256(library), name)
}

func TestLibrary(t *testing.T) {
	dev := open(t, Options{})
	lib := kernels(t, dev)
	lib.SetLabel("kernels")
	require.Equal(t, "kernels", lib.Label())
	require.Equal(t, mtl.LibraryTypeExecutable, lib.Type())
	require.Empty(t, lib.InstallName())
	names := lib.FunctionNames().Strings()
	require.Contains(t, names, "add")
	require.Contains(t, names, "scale")
	fn := lib.NewFunctionWithName("add")
	require.Equal(t, "add", fn.Name())
	require.Equal(t, mtl.FunctionTypeKernel, fn.FunctionType())
	fn.Release()
	require.True(t, lib.NewFunctionWithName("none").IsNil())
	require.ErrorContains(t, Refusal(dev), `no function named "none"`)
}

func TestRefusedLibraries(t *testing.T) {
	good, err := os.ReadFile("testdata/kernels.metallib")
	require.NoError(t, err)
	newer := func(change func(f *metallib.Library)) []byte {
		l, err := metallib.Read(good)
		require.NoError(t, err)
		change(l)
		data, err := metallib.Write(l)
		require.NoError(t, err)
		return data
	}
	for _, c := range []struct {
		name string
		opts Options
		data []byte
		text string
	}{
		{"nothing", Options{}, nil, "Invalid library file"},
		{"garbage", Options{}, []byte("not a library"), "Invalid library file"},
		{"cut", Options{}, good[:200], "Invalid library file"},
		{"older system", Options{OSVersion: Version{13, 5}}, good, "macOS 14"},
		{"newer language", Options{OSVersion: Version{15, 0}}, newer(func(l *metallib.Library) {
			l.Functions[3].Metal = metallib.Version{Major: 4}
		}), "language version 4.0 which is not supported on this OS"},
		{"newer AIR", Options{OSVersion: Version{14, 0}}, newer(func(l *metallib.Library) {
			l.Functions[3].AIR = metallib.Version{Major: 2, Minor: 7}
		}), "AIR version 2.7 which is not supported on this OS"},
		{"told to", Options{RefuseLibraries: "no library today"}, good, "no library today"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dev := open(t, c.opts)
			_, err := dev.NewLibraryWithData(c.data)
			var e *objc.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, "MTLLibraryErrorDomain", e.Domain)
			require.Contains(t, e.Description, c.text)
		})
	}
}

func TestLibraryFile(t *testing.T) {
	dev := open(t, Options{})
	lib, err := dev.NewLibraryWithFile("testdata/kernels.metallib")
	require.NoError(t, err)
	lib.Release()
	_, err = dev.NewLibraryWithFile("testdata/none.metallib")
	require.ErrorIs(t, err, &objc.Error{Domain: "MTLLibraryErrorDomain", Code: int(mtl.LibraryErrorFileNotFound)})
}

// TestDefaultLibrary makes a pipeline of every kernel of the library that the module embeds.
func TestDefaultLibrary(t *testing.T) {
	dev := open(t, Options{OSVersion: Version{14, 0}})
	lib, err := dev.NewLibraryWithData(metallib.Default())
	require.NoError(t, err)
	defer lib.Release()
	for _, name := range lib.FunctionNames().Strings() {
		fn := lib.NewFunctionWithName(name)
		p, err := dev.NewComputePipelineStateWithFunction(fn)
		if err != nil {
			require.ErrorContains(t, err, "function constants", name)
		} else {
			require.Positive(t, p.MaxTotalThreadsPerThreadgroup())
			p.Release()
		}
		fn.Release()
	}
}

func TestFunctionConstants(t *testing.T) {
	r := newRig(t, Options{})
	fn := r.lib.NewFunctionWithName("scale")
	defer fn.Release()
	_, err := r.dev.NewComputePipelineStateWithFunction(fn)
	require.ErrorContains(t, err, `kernel "scale" has function constants and was not specialised`)
	declared := fn.FunctionConstantsDictionary()
	key := objc.NSString("factor")
	defer key.Release()
	fc := mtl.FunctionConstantOf(objc.ID(objc.Send(declared.ID(), objc.RegisterName("objectForKey:"), uintptr(key))))
	require.Equal(t, "factor", fc.Name())
	require.Equal(t, mtl.DataTypeUInt, fc.Type())
	require.Zero(t, fc.Index())
	require.True(t, fc.Required())
	require.EqualValues(t, 2, objc.Send(declared.ID(), objc.RegisterName("count")))

	values := func(set func(v mtl.FunctionConstantValues)) mtl.FunctionConstantValues {
		v, err := mtl.NewFunctionConstantValues(r.dev)
		require.NoError(t, err)
		t.Cleanup(v.Release)
		set(v)
		return v
	}
	x := words(t, r.dev, 1, 2, 3)
	for i, c := range []struct {
		set  func(v mtl.FunctionConstantValues)
		want []uint32
	}{
		{func(v mtl.FunctionConstantValues) { v.SetUint32(0, 5); v.SetBool(1, false) }, []uint32{5, 10, 15}},
		{func(v mtl.FunctionConstantValues) {
			require.NoError(t, v.SetNamed("factor", mtl.DataTypeUInt, constants(2)))
			require.NoError(t, v.SetNamed("negate", mtl.DataTypeBool, []byte{1}))
		}, []uint32{^uint32(9), ^uint32(19), ^uint32(29)}},
	} {
		fn, err := r.lib.NewFunctionWithNameConstantValues("scale", values(c.set))
		require.NoError(t, err)
		p, err := r.dev.NewComputePipelineStateWithFunction(fn)
		require.NoError(t, err)
		mustRun(t, r.encode(mtl.DispatchTypeSerial, func(e mtl.ComputeCommandEncoder) {
			e.SetComputePipelineState(p)
			e.SetBuffer(x, 0, 0)
			e.DispatchThreads(size(3), size(3))
		}))
		require.Equal(t, c.want, wordsOf(x), i)
		p.Release()
		fn.Release()
	}
	for _, c := range []struct {
		set  func(v mtl.FunctionConstantValues)
		text string
	}{
		{func(v mtl.FunctionConstantValues) { v.SetUint32(0, 5) }, "no value for function constant negate (bool, index 1)"},
		{func(v mtl.FunctionConstantValues) { v.SetInt32(0, 5); v.SetBool(1, false) }, "function constant factor (index 0) is a uint and was set as a int"},
	} {
		_, err := r.lib.NewFunctionWithNameConstantValues("scale", values(c.set))
		require.ErrorContains(t, err, c.text)
	}
	_, err = r.lib.NewFunctionWithNameConstantValues("none", values(func(mtl.FunctionConstantValues) {}))
	require.ErrorIs(t, err, &objc.Error{Domain: "MTLLibraryErrorDomain", Code: int(mtl.LibraryErrorFunctionNotFound)})

	desc, err := mtl.NewFunctionDescriptor(r.dev)
	require.NoError(t, err)
	defer desc.Release()
	desc.SetName("scale")
	desc.SetSpecializedName("double")
	desc.SetConstantValues(values(func(v mtl.FunctionConstantValues) { v.SetUint32(0, 2); v.SetBool(1, false) }))
	double, err := r.lib.NewFunctionWithDescriptor(desc)
	require.NoError(t, err)
	require.Equal(t, "double", double.Name())
	double.Release()
}

func TestPipelines(t *testing.T) {
	r := newRig(t, Options{RefuseKernels: []string{"count"}, Faults: Faults{Pipeline: 2}, ExecutionWidth: 64})
	fn := r.lib.NewFunctionWithName("add")
	defer fn.Release()
	desc, err := mtl.NewComputePipelineDescriptor(r.dev)
	require.NoError(t, err)
	defer desc.Release()
	desc.SetComputeFunction(fn)
	desc.SetLabel("adder")
	desc.SetMaxTotalThreadsPerThreadgroup(128)
	desc.SetSupportIndirectCommandBuffers(true)
	desc.SetThreadGroupSizeIsMultipleOfThreadExecutionWidth(true)
	p, reflection, err := r.dev.NewComputePipelineStateWithDescriptor(desc, mtl.PipelineOptionBindingInfo)
	require.NoError(t, err)
	defer p.Release()
	defer reflection.Release()
	require.Equal(t, "adder", p.Label())
	require.EqualValues(t, 128, p.MaxTotalThreadsPerThreadgroup())
	require.EqualValues(t, 64, p.ThreadExecutionWidth())
	require.True(t, p.SupportIndirectCommandBuffers())
	require.Zero(t, p.StaticThreadgroupMemoryLength())
	require.Equal(t, mtl.Size{}, p.RequiredThreadsPerThreadgroup())

	require.Equal(t, 4, reflection.Bindings().Len())
	n := mtl.BufferBindingOf(reflection.Bindings().At(3).ID())
	require.Equal(t, "n", n.Name())
	require.EqualValues(t, 3, n.Index())
	require.Equal(t, mtl.BindingTypeBuffer, n.Type())
	require.Equal(t, mtl.BindingAccessReadOnly, n.Access())
	require.Equal(t, mtl.DataTypeUInt, n.BufferDataType())
	require.EqualValues(t, 4, n.BufferDataSize())
	require.EqualValues(t, 4, n.BufferAlignment())
	require.True(t, n.IsUsed())
	out := mtl.ArgumentOf(reflection.Arguments().At(2).ID())
	require.Equal(t, "out", out.Name())
	require.Equal(t, mtl.BindingAccessReadWrite, out.Access())
	require.True(t, out.IsActive())
	require.Equal(t, p.Reflection().ID(), reflection.ID())

	// Threadgroups must be multiples of the width, as was promised.
	x := floats(t, r.dev, 1, 2, 3, 4)
	mustFail(t, r.encode(mtl.DispatchTypeSerial, func(e mtl.ComputeCommandEncoder) {
		e.SetComputePipelineState(p)
		for i := range uint(3) {
			e.SetBuffer(x, 0, i)
		}
		e.SetBytes(constants(4), 3)
		e.DispatchThreadgroups(size(1), size(4))
	}), mtl.CommandBufferErrorInvalidResource, "promised multiples of 64")

	_, err = r.dev.NewComputePipelineStateWithFunction(fn)
	require.ErrorContains(t, err, "told to fail")
	count := r.lib.NewFunctionWithName("count")
	defer count.Release()
	_, err = r.dev.NewComputePipelineStateWithFunction(count)
	require.ErrorContains(t, err, `kernel "count": the device refuses it`)
	_, err = r.dev.NewComputePipelineStateWithFunction(mtl.Function{})
	require.ErrorContains(t, err, "nil is no function")
	desc.SetMaxTotalThreadsPerThreadgroup(2048)
	_, _, err = r.dev.NewComputePipelineStateWithDescriptor(desc, 0)
	require.ErrorContains(t, err, "maxTotalThreadsPerThreadgroup is 2048")
	desc.SetMaxTotalThreadsPerThreadgroup(0)
	desc.SetRequiredThreadsPerThreadgroup(size(64, 64))
	required, _, err := r.dev.NewComputePipelineStateWithDescriptor(desc, 0)
	require.NoError(t, err)
	require.Equal(t, size(64, 64), required.RequiredThreadsPerThreadgroup())
	required.Release()
	_, err = p.NewComputePipelineStateWithAdditionalBinaryFunctions(mtl.Array{})
	require.ErrorContains(t, err, "not supported")
}

// TestThreadgroupBinding reflects threadgroup memory.
func TestThreadgroupBinding(t *testing.T) {
	r := newRig(t, Options{})
	fn := r.lib.NewFunctionWithName("sum")
	defer fn.Release()
	p, reflection, err := r.dev.NewComputePipelineStateWithFunctionOptionsReflection(fn, mtl.PipelineOptionBindingInfo)
	require.NoError(t, err)
	defer p.Release()
	defer reflection.Release()
	list := reflection.Bindings()
	b := mtl.ThreadgroupBindingOf(list.At(list.Len() - 1).ID())
	require.Equal(t, mtl.BindingTypeThreadgroupMemory, b.Type())
	require.Equal(t, "part", b.Name())
	require.EqualValues(t, 4, b.ThreadgroupMemoryDataSize())
	require.EqualValues(t, 4, b.ThreadgroupMemoryAlignment())
}

// TestCompletionHandlers makes libraries, functions and pipelines on other goroutines.
func TestCompletionHandlers(t *testing.T) {
	r := newRig(t, Options{RefuseSource: "no source today"})
	done := make(chan error, 8)
	fn := r.lib.NewFunctionWithName("add")
	defer fn.Release()
	require.NoError(t, r.dev.NewComputePipelineStateWithFunctionCompletionHandler(fn, func(p mtl.ComputePipelineState, err error) {
		require.False(t, p.IsNil())
		done <- err
	}))
	require.NoError(t, <-done)
	require.NoError(t, r.dev.NewComputePipelineStateWithFunctionOptionsCompletionHandler(fn, mtl.PipelineOptionBindingInfo,
		func(p mtl.ComputePipelineState, reflection mtl.ComputePipelineReflection, err error) {
			require.Equal(t, 4, reflection.Bindings().Len())
			done <- err
		}))
	require.NoError(t, <-done)
	desc, err := mtl.NewComputePipelineDescriptor(r.dev)
	require.NoError(t, err)
	defer desc.Release()
	require.NoError(t, r.dev.NewComputePipelineStateWithDescriptorCompletionHandler(desc, 0,
		func(p mtl.ComputePipelineState, _ mtl.ComputePipelineReflection, err error) { done <- err }))
	require.ErrorContains(t, <-done, "nil is no function")
	require.NoError(t, r.dev.NewLibraryWithSourceCompletionHandler("", mtl.CompileOptions{}, func(_ mtl.Library, err error) { done <- err }))
	require.ErrorContains(t, <-done, "no source today")
	values, err := mtl.NewFunctionConstantValues(r.dev)
	require.NoError(t, err)
	defer values.Release()
	require.NoError(t, r.lib.NewFunctionWithNameConstantValuesCompletionHandler("scale", values, func(_ mtl.Function, err error) { done <- err }))
	require.ErrorContains(t, <-done, "no value for function constant")
	waitFor(t, "goroutines", func() bool { return Stats(r.dev).Goroutines == 0 })
}

const square = `#include <metal_stdlib>
using namespace metal;
kernel void square(device float *x [[buffer(0)]], uint i [[thread_position_in_grid]]) { x[i] = x[i] * x[i]; }
`

func TestSource(t *testing.T) {
	testenv.Tool(t, "clang-22")
	r := newRig(t, Options{OSVersion: Version{14, 0}})
	opts, err := mtl.NewCompileOptions(r.dev)
	require.NoError(t, err)
	defer opts.Release()
	opts.SetLanguageVersion(mtl.LanguageVersion3_1)
	lib, err := r.dev.NewLibraryWithSource(square, opts)
	require.NoError(t, err)
	defer lib.Release()
	require.True(t, slices.Contains(lib.FunctionNames().Strings(), "square"))
	p := pipelineFor(t, r.dev, lib, "square")
	x := floats(t, r.dev, 1, 2, 3)
	mustRun(t, r.encode(mtl.DispatchTypeSerial, func(e mtl.ComputeCommandEncoder) {
		e.SetComputePipelineState(p)
		e.SetBuffer(x, 0, 0)
		e.DispatchThreads(size(3), size(3))
	}))
	require.Equal(t, []float32{1, 4, 9}, floatsOf(x))

	_, err = r.dev.NewLibraryWithSource("kernel void broken(device float *x [[buffer(0)]]) { x[0] = nothing; }", opts)
	require.ErrorIs(t, err, &objc.Error{Domain: "MTLLibraryErrorDomain", Code: int(mtl.LibraryErrorCompileFailure)})
	require.ErrorContains(t, err, "nothing")
	opts.SetLanguageVersion(mtl.LanguageVersion4_0)
	_, err = r.dev.NewLibraryWithSource(square, opts)
	require.ErrorContains(t, err, "language version 4.0")
}

// TestNoCompiler says clearly what is missing when there is no clang.
func TestNoCompiler(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	dev := open(t, Options{})
	_, err := dev.NewLibraryWithSource(square, mtl.CompileOptions{})
	var e *objc.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, "MTLLibraryErrorDomain", e.Domain)
	require.Contains(t, e.Description, "clang-22")
}

// TestOptionalConstants leaves a constant out that the kernel asks about.
func TestOptionalConstants(t *testing.T) {
	r := newRig(t, Options{})
	plain := r.lib.NewFunctionWithName("reward")
	defer plain.Release()
	key := objc.NSString("bonus")
	defer key.Release()
	declared := plain.FunctionConstantsDictionary()
	fc := mtl.FunctionConstantOf(objc.ID(objc.Send(declared.ID(), objc.RegisterName("objectForKey:"), uintptr(key))))
	require.EqualValues(t, 3, fc.Index())
	require.False(t, fc.Required())
	x := words(t, r.dev, 0)
	run := func(p mtl.ComputePipelineState) {
		mustRun(t, r.encode(mtl.DispatchTypeSerial, func(e mtl.ComputeCommandEncoder) {
			e.SetComputePipelineState(p)
			e.SetBuffer(x, 0, 0)
			e.DispatchThreads(size(1), size(1))
		}))
	}
	for _, set := range []bool{false, true} {
		v, err := mtl.NewFunctionConstantValues(r.dev)
		require.NoError(t, err)
		if set {
			v.SetUint32(3, 7)
		}
		fn, err := r.lib.NewFunctionWithNameConstantValues("reward", v)
		require.NoError(t, err)
		p, err := r.dev.NewComputePipelineStateWithFunction(fn)
		require.NoError(t, err)
		run(p)
		v.Release()
		fn.Release()
		p.Release()
	}
	require.Equal(t, []uint32{107}, wordsOf(x))
	// Without any values at all the function is not specialised, though none would be needed.
	_, err := r.dev.NewComputePipelineStateWithFunction(plain)
	require.ErrorContains(t, err, "was not specialised")
}

// TestConditionalArguments leaves arguments out whose function constant is false.
func TestConditionalArguments(t *testing.T) {
	k := &air.Kernel{Constants: []air.FunctionConstant{{Name: "extra", Index: 4, TypeName: "bool", Global: &air.Global{Symbol: air.Symbol{Name: "_extra"}}}}}
	for _, c := range []struct {
		values *simt.Options
		want   bool
	}{
		{nil, false},
		{&simt.Options{Constants: map[int]simt.Value{}}, false},
		{&simt.Options{Constants: map[int]simt.Value{4: {Bits: 1}}}, true},
	} {
		f := &function{values: c.values}
		require.Equal(t, c.want, f.enabled("extra", k))
		require.Equal(t, c.want, f.enabled("_extra", k))
		require.True(t, f.enabled("unheard of", k))
	}
}

func TestConstantKinds(t *testing.T) {
	for kind, want := range map[mtl.DataType]simt.ConstantType{
		mtl.DataTypeBool: simt.ConstantBool, mtl.DataTypeFloat: simt.ConstantFloat, mtl.DataTypeHalf: simt.ConstantHalf,
		mtl.DataTypeBFloat: simt.ConstantBFloat, mtl.DataTypeShort: simt.ConstantInt, mtl.DataTypeULong: simt.ConstantInt,
	} {
		require.Equal(t, want, constantKind(kind))
	}
	_, err := constantValue(air.FunctionConstant{Name: "v", TypeName: "float4"}, mtl.ConstantValue{Type: mtl.DataTypeFloat4, Bytes: make([]byte, 16)})
	require.ErrorContains(t, err, "only scalars")
	require.Equal(t, mtl.DataTypeFloat3, dataTypeOf("float3"))
	require.Equal(t, mtl.DataTypeNone, dataTypeOf("Params"))
}
