//go:build linux && objcdouble

package double

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// message is what the double's canary wrote down of the last message (struct message in canary.c).
type message struct {
	X            [integers]uint64
	D            [8]uint64
	Stack        [16]uint64
	XPointee     [integers][6]uint64
	StackPointee [16][6]uint64
	Count        uint64
}

// answer is what the canary answers (struct answer in canary.c).
type answer struct {
	X             [2]uint64
	D             uint64
	Size          uint64
	Memory        [8]uint64
	PointersX     uint64
	PointersStack uint64
	ErrorX        uint64
	ErrorStack    uint64
}

// placement is where Apple's compiler puts the words of a message.
type placement struct {
	Selector string              `json:"sel"`
	Args     map[string][]string `json:"args"`
	Result   map[string]string   `json:"ret"`
}

func placements(t *testing.T) map[string]placement {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "testdata", "placements.json"))
	require.NoError(t, err)
	var list []placement
	require.NoError(t, json.Unmarshal(text, &list))
	bySelector := map[string]placement{}
	for _, p := range list {
		bySelector[p.Selector] = p
	}
	return bySelector
}

// location is a place of one argument: words in registers or on the stack, or a pointer to them.
type location struct {
	pointer bool
	regs    []int // integer registers
	float   int   // floating-point register, -1 for none
	stack   int   // first stack word, -1 for none
	words   int
}

// locate reads a place as the table writes it: "rdx", "rcx+r8", "stack+0:24", "*x3", "*stack+16", "xmm0".
func locate(t *testing.T, text string) location {
	t.Helper()
	l := location{float: -1, stack: -1}
	rest, pointer := strings.CutPrefix(text, "*")
	l.pointer = pointer
	if at, ok := strings.CutPrefix(rest, "stack+"); ok {
		offset, size, sized := strings.Cut(at, ":")
		n, err := strconv.Atoi(offset)
		require.NoError(t, err, text)
		l.stack, l.words = n/8, 1
		if sized {
			n, err = strconv.Atoi(size)
			require.NoError(t, err, text)
			l.words = (n + 7) / 8
		}
		return l
	}
	for _, name := range strings.Split(rest, "+") {
		if r, ok := registers[name]; ok {
			l.regs = append(l.regs, r)
			continue
		}
		n, err := strconv.Atoi(strings.TrimLeft(name, "xmv"))
		require.NoError(t, err, "no register %q of %s", name, runtime.GOARCH)
		l.float = n
	}
	l.words = len(l.regs)
	if l.float >= 0 {
		l.words = 1
	}
	return l
}

// read gives the words of an argument from the message as it arrived; n words behind a pointer to a structure.
func (m *message) read(l location, n int) []uint64 {
	switch {
	case l.pointer && l.stack >= 0:
		return m.StackPointee[l.stack][:n]
	case l.pointer:
		return m.XPointee[l.regs[0]][:n]
	case l.float >= 0:
		return m.D[l.float : l.float+1]
	case l.stack >= 0:
		return m.Stack[l.stack : l.stack+l.words]
	}
	var w []uint64
	for _, r := range l.regs {
		w = append(w, m.X[r])
	}
	return w
}

// pointee gives what an argument that is a pointer by itself pointed to.
func (m *message) pointee(l location) []uint64 {
	if l.stack >= 0 {
		return m.StackPointee[l.stack][:]
	}
	return m.XPointee[l.regs[0]][:]
}

// follow asks the canary to copy what is behind the pointer at l.
func (a *answer) follow(l location) {
	if l.stack >= 0 {
		a.PointersStack |= 1 << l.stack
		return
	}
	a.PointersX |= 1 << l.regs[0]
}

// fail asks the canary to report an NSError through the pointer at l.
func (a *answer) fail(l location) {
	if l.stack >= 0 {
		a.ErrorStack = uint64(l.stack) + 1
		return
	}
	a.ErrorX = uint64(l.regs[0]) + 1
}
