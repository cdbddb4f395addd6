package air

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// What is nil, or was made by hand and lacks what must be there, is printed as far as it goes; nothing panics.
func TestZeroStrings(t *testing.T) {
	for want, s := range map[string]fmt.Stringer{
		"<nil>": (*Module)(nil), "<nil> ": padded{(*Instr)(nil)}, "<nil>  ": padded{padded{(*Function)(nil)}}, "<nil>   ": padded{padded{padded{(*Const)(nil)}}},
		"<nil>    ": padded{padded{padded{padded{(*Type)(nil)}}}},
	} {
		require.Equal(t, want, s.String())
	}
	for _, s := range []fmt.Stringer{&Function{}, &Const{}, &Instr{Op: OpCall, Args: []Value{nil}}, &Function{Blocks: []*Block{nil}}} {
		require.Contains(t, s.String(), "<invalid: something is nil>", "%T", s)
	}
	for _, s := range []fmt.Stringer{&Module{}, &Instr{}, Op(255), Pred(255), Attr{}, &Type{}, &Type{Kind: FunctionKind}, &Type{Kind: ArrayKind}} {
		_ = s.String()
	}
	require.Equal(t, "<nil>", (*Type)(nil).Body())
}

// padded tells equal texts apart in a map.
type padded struct{ fmt.Stringer }

func (p padded) String() string { return p.Stringer.String() + " " }

func TestLayoutOfNil(t *testing.T) {
	for _, typ := range []*Type{nil, {}, {Kind: ArrayKind, Len: 3}, {Kind: VectorKind, Len: 3}, {Kind: StructKind, Fields: []*Type{nil}}} {
		require.Zero(t, Size(typ))
		require.Zero(t, StoreSize(typ))
		require.EqualValues(t, 1, Align(typ))
		require.Zero(t, typ.ScalarBits())
		require.False(t, typ.IsFloat())
	}
	offsets, size := StructLayout(nil)
	require.Empty(t, offsets)
	require.Zero(t, size)
	require.Equal(t, 1, (*Type)(nil).Lanes())
	require.Nil(t, (*Type)(nil).Scalar())
}
