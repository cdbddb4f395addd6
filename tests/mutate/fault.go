package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A fault is a change of one shader.
type fault struct {
	// File is the shader, What says in a few words what is wrong with it. Together they are the fault's name.
	File, What string
	// Old is in the shader exactly once. New takes its place.
	Old, New string
	// Kernels, if not empty, is a pattern of the instances of templates that get the fault, by their host names; the others stay
	// as they are, and need not be compiled.
	Kernels string
	// Tests is the -run pattern of the tests in package nn that are to fail.
	Tests string
	// Equal, if not empty, is a proof that the change computes the same. Then no test is to fail.
	Equal string
}

func (f *fault) name() string { return f.File + ": " + f.What }

// apply is the text with the fault in it.
func (f *fault) apply(text string) (string, error) {
	if f.Old == "" {
		return "", errors.New("nothing is replaced")
	}
	if f.Old == f.New {
		return "", errors.New("the new text is the old one")
	}
	if n := strings.Count(text, f.Old); n != 1 {
		return "", fmt.Errorf("its old text is there %d times, not once:\n%s", n, f.Old)
	}
	return strings.Replace(text, f.Old, f.New, 1), nil
}

// readShaders are the texts of all shaders by file name.
func readShaders(dir string) (map[string]string, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	text := map[string]string{}
	for _, f := range files {
		data, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return nil, err
		}
		text[f.Name()] = string(data)
	}
	return text, nil
}

// check says everything that is wrong with a table of faults. Shaders without a fault are wrong too.
func check(shaders map[string]string, faults []fault) error {
	return errors.Join(checkFaults(shaders, faults), checkCovered(shaders, faults))
}

func checkFaults(shaders map[string]string, faults []fault) error {
	var all []error
	names := map[string]bool{}
	for _, f := range faults {
		bad := func(err error) { all = append(all, fmt.Errorf("%s: %w", f.name(), err)) }
		text, ok := shaders[f.File]
		switch {
		case !ok:
			bad(errors.New("there is no such shader"))
		case f.What == "":
			bad(errors.New("it does not say what is wrong"))
		case names[f.name()]:
			bad(errors.New("another fault has this name"))
		}
		names[f.name()] = true
		if ok {
			if _, err := f.apply(text); err != nil {
				bad(err)
			}
		}
		if _, err := regexp.Compile(f.Kernels); err != nil {
			bad(err)
		}
		if _, err := regexp.Compile(f.Tests); err != nil || f.Tests == "" {
			bad(fmt.Errorf("pattern %q of tests: %v", f.Tests, err))
		}
	}
	return errors.Join(all...)
}

func checkCovered(shaders map[string]string, faults []fault) error {
	var all []error
	for _, name := range sortedNames(shaders) {
		if len(dependents(shaders, name)) == 0 {
			continue // a header that no kernel includes
		}
		if !slices.ContainsFunc(faults, func(f fault) bool { return f.File == name }) {
			all = append(all, fmt.Errorf("%s: the table has no fault for this shader", name))
		}
	}
	return errors.Join(all...)
}

func sortedNames(m map[string]string) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

var include = regexp.MustCompile(`(?m)^#include "([^"]+)"`)

// included are the shaders that a shader's text takes in, with itself.
func included(shaders map[string]string, file string) map[string]bool {
	all := map[string]bool{file: true}
	for queue := []string{file}; len(queue) > 0; queue = queue[1:] {
		for _, m := range include.FindAllStringSubmatch(shaders[queue[0]], -1) {
			if _, ok := shaders[m[1]]; ok && !all[m[1]] {
				all[m[1]] = true
				queue = append(queue, m[1])
			}
		}
	}
	return all
}

var instance = regexp.MustCompile(`(?m)^template \[\[host_name\("(\w+)"\)\]\] kernel [^\n]*;\n`)

// only is the text without the instances of templates whose host names do not match.
func only(text string, kernels *regexp.Regexp) string {
	return instance.ReplaceAllStringFunc(text, func(line string) string {
		if kernels.MatchString(instance.FindStringSubmatch(line)[1]) {
			return line
		}
		return ""
	})
}

// dependents are the .metal files that a shader's text gets into: itself, or those that include it, directly or not.
func dependents(shaders map[string]string, file string) []string {
	var out []string
	for _, name := range sortedNames(shaders) {
		if filepath.Ext(name) == ".metal" && included(shaders, name)[file] {
			out = append(out, name)
		}
	}
	return out
}

// findRoot is the repository's root, above the working folder.
func findRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && bytes.HasPrefix(text, []byte("module github.com/ingot-metal/ingot\n")) {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("not inside the repository")
		}
		dir = up
	}
}
