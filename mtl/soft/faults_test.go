package soft

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/mtl"
)

// TestMemoryFaults lets the making of buffers, their contents and residency sets fail, in a row, and then work again.
func TestMemoryFaults(t *testing.T) {
	dev := open(t, Options{Faults: Faults{Allocation: 2, Times: 3}})
	made := func() bool {
		b := dev.NewBufferWithLength(64, mtl.ResourceStorageModeShared)
		defer b.Release()
		return !b.IsNil()
	}
	for i, want := range []bool{true, false, false, false, true, true} {
		require.Equal(t, want, made(), "allocation %d", i)
	}
	b := dev.NewBufferWithLength(64, mtl.ResourceStorageModeShared)
	defer b.Release()
	require.NoError(t, Inject(dev, Faults{Contents: 2}))
	for i, want := range []bool{true, false, true} {
		require.Equal(t, want, b.ContentsPointer() != nil, "contents %d", i)
	}
	require.ErrorContains(t, Refusal(dev), "contents")
	require.NoError(t, Inject(dev, Faults{ResidencySet: 1, Times: 2}))
	desc, err := mtl.NewResidencySetDescriptor(dev)
	require.NoError(t, err)
	defer desc.Release()
	for i, want := range []bool{false, false, true} {
		set, err := dev.NewResidencySetWithDescriptor(desc)
		require.Equal(t, want, err == nil, "set %d: %v", i, err)
		set.Release()
	}
}
