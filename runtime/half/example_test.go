package half_test

import (
	"fmt"

	"github.com/ingot-metal/ingot/runtime/half"
)

func Example() {
	x := []float32{1, 0.1, 70000}
	fmt.Println(half.Float16s(x))
	fmt.Println(half.BFloat16s(x))
	fmt.Printf("%#04x\n", uint16(half.BFloat16FromFloat32(1)))
	// Output:
	// [1 0.099975586 +Inf]
	// [1 0.100097656 70144]
	// 0x3f80
}
