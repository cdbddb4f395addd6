package nn

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ingot-metal/ingot/internal/testenv"
	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/mtl/soft"
	"github.com/ingot-metal/ingot/runtime"
)

var update = flag.Bool("update", false, "write docs/kernels.md anew")

// The table of docs/kernels.md is what the software device counts now; each kernel that nn launches has a row.
//
//	go test ./nn -run TestKernelTable -update
func TestKernelTable(t *testing.T) {
	if testing.Short() && !*update {
		t.Skip("all kernels run")
	}
	dev := soft.New(soft.Options{Counts: true})
	defer dev.Release()
	rt, err := runtime.Open(runtime.WithDevice(dev))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := rt.Close(); err != nil {
			t.Error(err)
		}
	})
	rows := map[string]bool{}
	text := kernelTableHead
	for _, f := range (costCases{t, rt, source(4242)}).families() {
		text += fmt.Sprintf("\n## %s\n\nUseful operation: %s. Bytes needed: %s.\n\n%s", f.title, f.operation, f.bytes, kernelTableColumns)
		for _, c := range f.costs {
			if rows[c.kernel] {
				t.Errorf("%s has two rows", c.kernel)
			}
			rows[c.kernel] = true
			text += costRow(t, rt, dev, c)
		}
	}
	for name := range kernelSlots {
		if !rows[name] {
			t.Errorf("%s has no row: its useful operations and needed bytes belong into kernelcost_test.go", name)
		}
	}
	path := filepath.Join(testenv.Root(t), "docs", "kernels.md")
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != text {
		t.Errorf("docs/kernels.md is not what kernels do now; first difference:\n%s\ngo test ./nn -run TestKernelTable -update", firstDifferentLine(string(have), text))
	}
}

const kernelTableHead = `# What kernels do

<!-- Made by the test of package nn that also compares it; after a change of a kernel: go test ./nn -run TestKernelTable -update -->

    go test ./nn -run TestKernelTable -update

makes this page: each kernel is launched once on the software device with ` + "`soft.Options.Counts`" + `, and ` + "`soft.Stats`" + ` tells what it did. The
counts are the same on every machine. They are instructions of the program that the software device makes of a kernel's AIR, not of a
GPU, whose compiler and caches are others; they show where a kernel does more than its formula asks for.

- Instructions: lane slots for each useful operation, 32 for each instruction of a simdgroup. A multiply-add of float32 takes
  at least 1, but 1/16 on simdgroup matrices, where an instruction makes 512 of them. Unpacking codes, addresses, loops and
  reductions come on top.
- Lanes: the share of those slots whose lane ran. The rest is divergence and simdgroups with too little to do.
- Moved: bytes that loads and stores of device and constant memory moved, scalars included, without any cache. What a
  simdgroup loads from one address for all its lanes counts once.
- Needed: bytes that the result depends on, and the result, each once. What moved is more than that is left to caches.
`

const kernelTableColumns = `| kernel | shape | operations | instructions / operation | lanes | moved | needed | moved / needed |
|---|---|--:|--:|--:|--:|--:|--:|
`

// costRow launches a kernel and makes its row.
func costRow(t *testing.T, rt *runtime.Runtime, dev mtl.Device, c kernelCost) string {
	t.Helper()
	before := soft.Stats(dev).Kernels[c.kernel]
	if err := rt.Run(c.call); err != nil {
		t.Fatal(c.kernel, err)
	}
	after := soft.Stats(dev).Kernels[c.kernel]
	if n := after.Dispatches - before.Dispatches; n != 1 {
		t.Fatalf("%s was launched %d times", c.kernel, n)
	}
	moved := uint64(0)
	for slot := range after.Read {
		moved += after.Read[slot] - before.Read[slot] + after.Written[slot] - before.Written[slot]
	}
	slots := 32 * (after.Instructions - before.Instructions)
	if moved < uint64(c.bytes) {
		t.Errorf("%s moved %d bytes, fewer than the %d that are said to be needed", c.kernel, moved, c.bytes)
	}
	return fmt.Sprintf("| `%s` | %s | %d | %.2f | %.0f%% | %d | %d | %.2f |\n", c.kernel, c.shape, c.operations,
		float64(slots)/float64(c.operations), 100*float64(after.Lanes-before.Lanes)/float64(slots), moved, c.bytes, float64(moved)/float64(c.bytes))
}

// firstDifferentLine shows the line at which two texts part.
func firstDifferentLine(have, want string) string {
	a, b := strings.Split(have, "\n"), strings.Split(want, "\n")
	for i := range max(len(a), len(b)) {
		line := func(lines []string) string {
			if i < len(lines) {
				return lines[i]
			}
			return "(the end)"
		}
		if line(a) != line(b) {
			return "there: " + line(a) + "\nnow:   " + line(b)
		}
	}
	return "none"
}
