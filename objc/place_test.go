package objc

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"unsafe"

	"github.com/ingot-metal/ingot/internal/testenv"
)

// names are the integer registers after self and the selector, and the floating-point registers.
var names = map[string]struct {
	arch      arch
	registers []string
	float     string
}{
	"amd64": {amd64, []string{"rdx", "rcx", "r8", "r9"}, "xmm"},
	"arm64": {arm64, []string{"x2", "x3", "x4", "x5", "x6", "x7"}, "v"},
}

// where writes a placement as the reference does: one string for each argument.
func where(t *testing.T, archName string, s shape) (args []string, p placement) {
	n := names[archName]
	p, err := n.arch.place(s)
	if err != nil {
		t.Fatalf("%s: %v", archName, err)
	}
	registers := n.registers
	if p.stret {
		registers = registers[1:] // rdi is the result: everything moves by one
	}
	at := func(word uint8) (index int, how slotKind, float bool) {
		for i, sl := range p.slots {
			if sl.how != slotPad && sl.word == word {
				return i, sl.how, false
			}
		}
		for i, sl := range p.floats {
			if sl.word == word {
				return i, sl.how, true
			}
		}
		t.Fatalf("%s: word %d has no place", archName, word)
		return 0, 0, false
	}
	word := uint8(0)
	for _, v := range s.args {
		i, how, float := at(word)
		text := ""
		switch {
		case float:
			text = fmt.Sprint(n.float, i)
		case how == slotPointer && i < len(registers):
			text = "*" + registers[i]
		case how == slotPointer:
			text = fmt.Sprintf("*stack+%d", 8*(i-len(registers)))
		case i < len(registers):
			text = registers[i]
			for k := 1; k < v.words; k++ {
				if j, _, _ := at(word + uint8(k)); j != i+k {
					t.Errorf("%s: words of a structure in %d and %d", archName, i, j)
				}
				text += "+" + registers[i+k]
			}
		default:
			text = fmt.Sprintf("stack+%d:%d", 8*(i-len(registers)), 8*v.words)
		}
		args = append(args, text)
		word += uint8(v.words)
	}
	return args, p
}

// TestPlacements compares with what clang does for every call shape of Metal's compute subset.
func TestPlacements(t *testing.T) {
	text, err := os.ReadFile(testenv.Shared(t, "reference/metal_abi_shapes.json"))
	if err != nil {
		t.Fatal(err)
	}
	var shapes []struct {
		Ret  string
		Args []string
		ABI  map[string]struct {
			Args []string
			Ret  string
			Fn   string
		}
		Methods []string
	}
	if err := json.Unmarshal(text, &shapes); err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, ref := range shapes {
		enc := ref.Ret + "@:" + strings.Join(ref.Args, "")
		s, err := parseShape(enc)
		if err != nil {
			// A structure of four bytes and a class type: nothing that package mtl uses.
			t.Logf("%s: %v (%s …)", enc, err, ref.Methods[0])
			continue
		}
		for name, want := range ref.ABI {
			got, p := where(t, name, s)
			if fmt.Sprint(got) != fmt.Sprint(want.Args) {
				t.Errorf("%s on %s: %v, want %v", enc, name, got, want.Args)
			}
			if p.stret != (want.Fn == "objc_msgSend_stret") {
				t.Errorf("%s on %s: stret %t", enc, name, p.stret)
			}
			compared++
		}
	}
	if compared < 260 {
		t.Errorf("only %d placements compared", compared)
	}
}

func TestPlaceOneRegisterLeft(t *testing.T) {
	// Three registers used, then a structure of two words: it goes to the stack whole; on amd64 a later word takes the
	// register that is left, on arm64 there are enough registers.
	s, err := parseShape("v@:QQQ{_NSRange=QQ}Q")
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := where(t, "amd64", s); fmt.Sprint(got) != "[rdx rcx r8 stack+0:16 r9]" {
		t.Error(got)
	}
	// Five used, a structure of two words: on arm64 nothing takes a register any more.
	s, err = parseShape("v@:QQQQQ{_NSRange=QQ}Q")
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := where(t, "arm64", s); fmt.Sprint(got) != "[x2 x3 x4 x5 x6 stack+0:16 stack+16:8]" {
		t.Error(got)
	}
}

func TestPlaceRefuses(t *testing.T) {
	for _, c := range []struct {
		enc  string
		arch arch
		why  string
	}{
		{"v@:QQQQQQB", arm64, "packs"},
		{"v@:" + strings.Repeat("d", 9), amd64, "floating-point"},
	} {
		s, err := parseShape(c.enc)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.arch.place(s); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %v", c.enc, err)
		}
	}
}

// TestLayOut looks at the words that objc_msgSend gets, on both architectures.
func TestLayOut(t *testing.T) {
	s, err := parseShape("v@:QQQ{_NSRange=QQ}{MTLSize=QQQ}Q")
	if err != nil {
		t.Fatal(err)
	}
	c := new(Call)
	for i := range s.words {
		c.words[i] = uintptr(100 + i)
	}
	m := &Message{sel: 7, shape: s}
	if m.place, err = amd64.place(s); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(m.layOut(c, 5)); got != "[5 7 100 101 102 108 103 104 105 106 107]" {
		t.Error("amd64", got)
	}
	if m.place, err = arm64.place(s); err != nil {
		t.Fatal(err)
	}
	size := uintptr(unsafe.Pointer(&c.words[5]))
	if got, want := fmt.Sprint(m.layOut(c, 5)), fmt.Sprint([]uintptr{5, 7, 100, 101, 102, 103, 104, size, 108}); got != want {
		t.Error("arm64", got, want)
	}
	m.shape.ret = value{kindStruct, 3}
	if m.place, err = amd64.place(m.shape); err != nil {
		t.Fatal(err)
	}
	result := uintptr(unsafe.Pointer(&c.ret))
	if got, want := fmt.Sprint(m.layOut(c, 5)), fmt.Sprint([]uintptr{result, 5, 7, 100, 101, 102, 103, 104, 105, 106, 107, 108}); got != want {
		t.Error("amd64 with a large result", got, want)
	}
}
