package gen_test

import (
	"fmt"

	"github.com/ingot-metal/ingot/mtl/internal/gen"
)

// A description of one class becomes Go.
func ExampleGenerate() {
	spec, err := gen.Parse([]byte(`{"floor": "14.0", "classes": [{"name": "MTLFence", "kind": "protocol", "methods": [
		{"sel": "device", "enc": "@@:", "ret": "id<MTLFence>", "since": "10.13"}]}]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	files, err := gen.Generate(spec)
	fmt.Println(len(files["zz_fence.go"]) > 0, spec.Classes[0].Methods[0].GoName(), err)
	// Output: true Device <nil>
}
