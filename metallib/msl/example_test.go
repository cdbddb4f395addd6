package msl_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/ingot-metal/ingot/metallib"
	"github.com/ingot-metal/ingot/metallib/msl"
)

// Compiles a kernel and writes the library that a Metal device takes.
func ExampleCompile() {
	const source = `
#include <metal_stdlib>
using namespace metal;
kernel void scale(device float* x [[buffer(0)]], constant float& factor [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  x[i] *= factor;
}`
	lib, err := msl.Compile(context.Background(), source, msl.Options{Name: "scale.metal"})
	var mistakes *msl.Error
	if errors.As(err, &mistakes) {
		for _, d := range mistakes.Diagnostics {
			fmt.Println(d) // scale.metal:5:8: error: …
		}
	}
	if err != nil {
		log.Fatal(err) // clang-22 is not installed, or mistakes in the source
	}
	data, err := metallib.Write(lib)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(data) > 0)
}

// Joins a shader and what it includes, for devices that compile a single string.
func ExampleFlatten() {
	dir, err := os.MkdirTemp("", "shaders")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	for name, text := range map[string]string{
		"common.h":   "#pragma once\n#include <metal_stdlib>\nusing namespace metal;\n",
		"zero.metal": "#include \"common.h\"\nkernel void zero(device float* x [[buffer(0)]]) { x[0] = 0; }\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			log.Fatal(err)
		}
	}
	flat, err := msl.Flatten([]string{filepath.Join(dir, "zero.metal")}, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(flat)
	// Output:
	// #line 1 "zero.metal"
	// #line 1 "common.h"
	//
	// #include <metal_stdlib>
	// using namespace metal;
	// #line 2 "zero.metal"
	// kernel void zero(device float* x [[buffer(0)]]) { x[0] = 0; }
}
