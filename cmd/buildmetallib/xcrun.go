package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// appleTools are Apple's compiler and linker, and the SDK. They are found with xcrun and run by path: "xcrun -sdk macosx
// metal" does not find the Metal toolchain that Xcode 26 keeps outside of the SDK.
type appleTools struct{ metal, metallib, sdk string }

func findAppleTools(ctx context.Context) (t appleTools, err error) {
	for _, ask := range []struct {
		to   *string
		args []string
	}{
		{&t.metal, []string{"-f", "metal"}},
		{&t.metallib, []string{"-f", "metallib"}},
		{&t.sdk, []string{"--sdk", "macosx", "--show-sdk-path"}},
	} {
		if *ask.to, err = command(ctx, "xcrun", ask.args...); err != nil {
			return t, err
		}
		*ask.to = strings.TrimSpace(*ask.to)
	}
	return t, nil
}

// xcrun compiles with Apple's tools. It has not run on a Mac yet.
func (b *build) xcrun(ctx context.Context, files []string) (map[string]string, func() ([]byte, error), error) {
	tools, err := findAppleTools(ctx)
	if err != nil {
		return nil, nil, err
	}
	version, err := command(ctx, tools.metal, "--version")
	if err != nil {
		return nil, nil, err
	}
	first, _, _ := strings.Cut(version, "\n")
	return map[string]string{"metal": strings.TrimSpace(first)}, func() ([]byte, error) {
		dir, err := os.MkdirTemp("", "buildmetallib-")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		var link []string
		for i, file := range files {
			air := filepath.Join(dir, fmt.Sprintf("%d.air", i))
			if _, err := command(ctx, tools.metal, append(metalArguments(tools.sdk, b.include, b.defines), "-c", file, "-o", air)...); err != nil {
				return nil, err
			}
			link = append(link, air)
		}
		out := filepath.Join(dir, "out.metallib")
		if _, err := command(ctx, tools.metallib, append(link, "-o", out)...); err != nil {
			return nil, err
		}
		return os.ReadFile(out)
	}, nil
}

// metalArguments asks Apple's compiler for what our own gives: floating-point arithmetic as written, without fast-math
// flags and without contraction.
func metalArguments(sdk string, include, defines []string) []string {
	args := []string{"-isysroot", sdk, "-std=metal" + metalVersion, "-mmacosx-version-min=" + minMacOS,
		"-fno-fast-math", "-ffp-contract=off", "-O2"}
	for _, dir := range include {
		args = append(args, "-I", dir)
	}
	for _, d := range defines {
		args = append(args, "-D"+d)
	}
	return args
}

func command(ctx context.Context, name string, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}
