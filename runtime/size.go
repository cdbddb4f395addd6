package runtime

import "fmt"

// A Size is an extent in three dimensions: threadgroups of a grid, or threads of a threadgroup.
type Size struct{ X, Y, Z int }

// D1 is Size{x, 1, 1}.
func D1(x int) Size { return Size{x, 1, 1} }

// D2 is Size{x, y, 1}.
func D2(x, y int) Size { return Size{x, y, 1} }

// D3 is Size{x, y, z}.
func D3(x, y, z int) Size { return Size{x, y, z} }

// String is "x*y*z".
func (s Size) String() string { return fmt.Sprintf("%d*%d*%d", s.X, s.Y, s.Z) }

func (s Size) each(ok func(int) bool) bool { return ok(s.X) && ok(s.Y) && ok(s.Z) }
