//go:build linux && objcdouble

package double

import (
	"runtime"

	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/objc"
	"github.com/stretchr/testify/require"
)

// byHand are the methods whose words are not the Go parameters in order.
var byHand = map[string]func(c *canary, receiver any){
	"Error": func(c *canary, receiver any) {
		b := receiver.(interface{ Error() error })
		require.NoError(c.t, b.Error())
		pool := objc.NewPool()
		defer pool.Drain()
		m := objc.NewScratch()
		defer m.Free()
		text := m.Bytes([]byte("a text\x00"))
		c.answer.X[0] = uint64(call(c.t, "make_error", text, 7, text))
		require.Equal(c.t, &objc.Error{Domain: "a text", Code: 7, Description: "a text"}, b.Error())
		c.selector("Error")
	},
	"NewComputePipelineStateWithDescriptor": func(c *canary, receiver any) {
		c.pipeline(func() (mtl.ComputePipelineState, mtl.ComputePipelineReflection, error) {
			return receiver.(mtl.Device).NewComputePipelineStateWithDescriptor(mtl.ComputePipelineDescriptorOf(c.id), 0x77)
		})
	},
	"NewComputePipelineStateWithFunctionOptionsReflection": func(c *canary, receiver any) {
		c.pipeline(func() (mtl.ComputePipelineState, mtl.ComputePipelineReflection, error) {
			return receiver.(mtl.Device).NewComputePipelineStateWithFunctionOptionsReflection(mtl.FunctionOf(c.id), 0x77)
		})
	},
	"NewLibraryWithData": func(c *canary, receiver any) {
		c.answer.X[0] = uint64(c.id)
		library, err := receiver.(mtl.Device).NewLibraryWithData([]byte("MTLB"))
		require.NoError(c.t, err)
		require.Equal(c.t, c.id, library.ID())
		require.NotZero(c.t, c.words("NewLibraryWithData", 1)[0])
	},
	"SampleTimestamps": func(c *canary, receiver any) {
		receiver.(mtl.Device).SampleTimestamps()
		w := c.words("SampleTimestamps", 1, 1)
		require.NotZero(c.t, w[0])
		require.Equal(c.t, w[0]+8, w[1])
	},
	"SetBytes": func(c *canary, receiver any) {
		c.follow("setBytes:length:atIndex:", 0)
		receiver.(mtl.ComputeCommandEncoder).SetBytes([]byte("canaries"), 29)
		require.Equal(c.t, []uint64{8, 29}, c.words("SetBytes", 1, 1, 1)[1:])
		require.Equal(c.t, uint64(0x73656972616e6163), c.behind("SetBytes", 0)[0])
	},
	"SetBuffers": func(c *canary, receiver any) {
		c.follow("setBuffers:offsets:withRange:", 0, 1)
		b := mtl.BufferOf(c.id)
		require.NoError(c.t, receiver.(mtl.ComputeCommandEncoder).SetBuffers([]mtl.Buffer{b, {}, b}, []uint{16, 0, 48}, 5))
		require.Equal(c.t, []uint64{5, 3}, c.words("SetBuffers", 1, 1, 2)[2:])
		require.Equal(c.t, []uint64{uint64(c.id), 0, uint64(c.id)}, c.behind("SetBuffers", 0)[:3])
		require.Equal(c.t, []uint64{16, 0, 48}, c.behind("SetBuffers", 1)[:3])
	},
	"SetBuffersAttributeStrides": func(c *canary, receiver any) {
		c.follow("setBuffers:offsets:attributeStrides:withRange:", 0, 1, 2)
		b := []mtl.Buffer{mtl.BufferOf(c.id)}
		require.NoError(c.t, receiver.(mtl.ComputeCommandEncoder).SetBuffersAttributeStrides(b, []uint{16}, []uint{8}, 5))
		require.Equal(c.t, []uint64{5, 1}, c.words("SetBuffersAttributeStrides", 1, 1, 1, 2)[3:])
		require.Equal(c.t, uint64(16), c.behind("SetBuffersAttributeStrides", 1)[0])
		require.Equal(c.t, uint64(8), c.behind("SetBuffersAttributeStrides", 2)[0])
	},
	"Set": func(c *canary, receiver any) {
		c.follow("setConstantValue:type:atIndex:", 0)
		require.NoError(c.t, receiver.(mtl.FunctionConstantValues).Set(3, mtl.DataTypeULong, []byte("canaries")))
		c.constant(mtl.DataTypeULong, 3, 0x73656972616e6163)
	},
	"SetRange": func(c *canary, receiver any) {
		c.follow("setConstantValues:type:withRange:", 0)
		require.NoError(c.t, receiver.(mtl.FunctionConstantValues).SetRange(7, mtl.DataTypeUShort, []byte("canaries")))
		require.Equal(c.t, []uint64{uint64(mtl.DataTypeUShort), 7, 4}, c.words("SetRange", 1, 1, 2)[1:])
		require.Equal(c.t, uint64(0x73656972616e6163), c.behind("SetRange", 0)[0])
	},
	"SetUint32": func(c *canary, receiver any) {
		c.follow("setConstantValue:type:atIndex:", 0)
		receiver.(mtl.FunctionConstantValues).SetUint32(4, 0xdeadbeef)
		c.constant(mtl.DataTypeUInt, 4, 0xdeadbeef)
	},
	"SetInt32": func(c *canary, receiver any) {
		c.follow("setConstantValue:type:atIndex:", 0)
		receiver.(mtl.FunctionConstantValues).SetInt32(5, -2)
		c.constant(mtl.DataTypeInt, 5, 0xfffffffe)
	},
	"SetBool": func(c *canary, receiver any) {
		c.follow("setConstantValue:type:atIndex:", 0)
		receiver.(mtl.FunctionConstantValues).SetBool(6, true)
		c.constant(mtl.DataTypeBool, 6, 1)
	},
	"SetNamed": func(c *canary, receiver any) {
		c.follow("setConstantValue:type:withName:", 0)
		require.NoError(c.t, receiver.(mtl.FunctionConstantValues).SetNamed("n", mtl.DataTypeUInt, []byte{1, 2, 3, 4}))
		w := c.words("SetNamed", 1, 1, 1)
		require.Equal(c.t, uint64(mtl.DataTypeUInt), w[1])
		require.NotZero(c.t, w[2])
		require.Equal(c.t, uint32(0x04030201), uint32(c.behind("SetNamed", 0)[0]))
	},
}

// pipeline checks the two methods with a reflection and an error behind pointers: words 2 and 3.
func (c *canary) pipeline(send func() (mtl.ComputePipelineState, mtl.ComputePipelineReflection, error)) {
	c.answer.X[0] = uint64(c.id)
	state, reflection, err := send()
	require.NoError(c.t, err)
	require.Equal(c.t, c.id, state.ID())
	require.True(c.t, reflection.IsNil())
	w := c.words("pipeline", 1, 1, 1, 1)
	require.Equal(c.t, []uint64{uint64(c.id), 0x77}, w[:2])
	require.NotZero(c.t, w[2])
	require.NotZero(c.t, w[3])
	_, place := c.selector("pipeline")
	c.answer.X[0] = 0
	c.answer.fail(locate(c.t, place.Args[runtime.GOARCH][3]))
	_, _, err = send()
	require.Equal(c.t, &objc.Error{Domain: "CanaryDomain", Code: 42, Description: "the canary fell off its perch"}, err)
}

// constant checks the words of a function constant that was set by index.
func (c *canary) constant(t mtl.DataType, index, value uint64) {
	require.Equal(c.t, []uint64{uint64(t), index}, c.words("constant", 1, 1, 1)[1:])
	size := map[mtl.DataType]uint{mtl.DataTypeBool: 8, mtl.DataTypeInt: 32, mtl.DataTypeUInt: 32, mtl.DataTypeULong: 64}[t]
	require.Equal(c.t, value, c.behind("constant", 0)[0]<<(64-size)>>(64-size))
}

// follow asks the canary to copy what the given arguments of the next message point to.
func (c *canary) follow(sel string, args ...int) {
	place, ok := c.table[sel]
	require.True(c.t, ok, sel)
	for _, i := range args {
		c.answer.follow(locate(c.t, place.Args[runtime.GOARCH][i]))
	}
}

// words are the words of the last message's arguments, of which argument i has sizes[i].
func (c *canary) words(name string, sizes ...int) []uint64 {
	_, place := c.selector(name)
	var w []uint64
	for i, at := range place.Args[runtime.GOARCH][:len(sizes)] {
		w = append(w, c.last.read(locate(c.t, at), sizes[i])...)
	}
	return w
}

// behind is what argument i of the last message pointed to.
func (c *canary) behind(name string, i int) []uint64 {
	_, place := c.selector(name)
	return c.last.pointee(locate(c.t, place.Args[runtime.GOARCH][i]))
}
