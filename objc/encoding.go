package objc

import (
	"fmt"
	"strings"
)

// kind says how a value travels.
type kind uint8

const (
	kindVoid    kind = iota
	kindWord         // pointers, objects, 64-bit integers
	kindObject       // '@'
	kindBool         // 'B'
	kindInt8         // 'c'
	kindUint8        // 'C'
	kindInt16        // 's'
	kindUint16       // 'S'
	kindInt32        // 'i'
	kindUint32       // 'I'
	kindFloat32      // 'f'
	kindFloat64      // 'd'
	kindStruct       // made of 64-bit integers only
)

// value is one argument or result: its kind, and its size in words.
type value struct {
	kind  kind
	words int
}

// shape is a method's type encoding, understood: the one description that both ends of a message follow.
type shape struct {
	ret   value
	args  []value
	words int // logical words of all arguments
}

// parseShape reads a method's type encoding, such as "v@:{MTLSize=QQQ}Q": the result, self, the selector, the arguments.
func parseShape(enc string) (shape, error) {
	var s shape
	p := parser{enc: enc}
	s.ret = p.value()
	if v := p.value(); p.err == nil && v.kind != kindObject {
		p.fail("the second type is not @ (self)")
	}
	if p.err == nil && !strings.HasPrefix(p.rest(), ":") {
		p.fail("the third type is not : (the selector)")
	}
	p.pos++
	for p.err == nil && p.pos < len(enc) {
		v := p.value()
		if p.err == nil && v.kind == kindVoid {
			p.fail("an argument cannot be void")
		}
		s.args = append(s.args, v)
		s.words += v.words
	}
	if p.err == nil && s.words > maxWords {
		p.fail(fmt.Sprintf("%d words of arguments; at most %d are supported", s.words, maxWords))
	}
	if p.err == nil && s.ret.words > maxResult {
		p.fail(fmt.Sprintf("a result of %d words; at most %d are supported", s.ret.words, maxResult))
	}
	return s, p.err
}

type parser struct {
	enc   string
	pos   int
	depth int
	err   error
}

func (p *parser) rest() string { return p.enc[min(p.pos, len(p.enc)):] }

func (p *parser) fail(why string) {
	if p.err == nil {
		p.err = fmt.Errorf("objc: type encoding %q, at byte %d: %s", p.enc, p.pos, why)
	}
}

var simple = map[byte]value{
	'v': {kindVoid, 0}, 'B': {kindBool, 1}, 'c': {kindInt8, 1}, 'C': {kindUint8, 1}, 's': {kindInt16, 1}, 'S': {kindUint16, 1},
	'i': {kindInt32, 1}, 'I': {kindUint32, 1}, 'q': {kindWord, 1}, 'Q': {kindWord, 1}, 'l': {kindInt32, 1}, 'L': {kindUint32, 1},
	'f': {kindFloat32, 1}, 'd': {kindFloat64, 1}, '*': {kindWord, 1}, '#': {kindObject, 1}, ':': {kindWord, 1},
}

// value reads one type.
func (p *parser) value() value {
	if p.err != nil {
		return value{}
	}
	for p.pos < len(p.enc) && strings.IndexByte("rnNoORV", p.enc[p.pos]) >= 0 {
		p.pos++
	}
	if p.pos >= len(p.enc) {
		p.fail("a type is missing")
		return value{}
	}
	c := p.enc[p.pos]
	switch c {
	case '@':
		p.pos++
		if strings.HasPrefix(p.rest(), "?") { // a block
			p.pos++
		}
		return value{kindObject, 1}
	case '^':
		p.pos++
		if strings.HasPrefix(p.rest(), "?") { // a function
			p.pos++
		} else {
			p.pointee()
		}
		return value{kindWord, 1}
	case '{':
		return p.structure()
	}
	v, ok := simple[c]
	if !ok {
		p.fail(fmt.Sprintf("type %q is not supported", c))
		return value{}
	}
	p.pos++
	return v
}

// pointee skips what a pointer points to, which may be more than can be passed by value.
func (p *parser) pointee() {
	for p.pos < len(p.enc) && strings.IndexByte("rnNoORV^", p.enc[p.pos]) >= 0 {
		p.pos++
	}
	if p.pos >= len(p.enc) {
		p.fail("a type is missing after ^")
		return
	}
	c := p.enc[p.pos]
	if c != '{' && c != '(' && c != '[' {
		p.value()
		return
	}
	depth := 0
	for ; p.pos < len(p.enc); p.pos++ {
		switch p.enc[p.pos] {
		case '{', '(', '[':
			depth++
		case '}', ')', ']':
			depth--
		}
		if depth == 0 {
			p.pos++
			return
		}
	}
	p.fail("a bracket is not closed")
}

func (p *parser) structure() value {
	if p.depth++; p.depth > 8 {
		p.fail("structures are nested too deep")
		return value{}
	}
	defer func() { p.depth-- }()
	eq := strings.IndexByte(p.rest(), '=')
	if eq < 0 || strings.ContainsAny(p.rest()[:eq], "}") {
		p.fail("a structure without fields cannot be passed by value")
		return value{}
	}
	p.pos += eq + 1
	v := value{kind: kindStruct}
	for p.err == nil {
		if p.pos >= len(p.enc) {
			p.fail("a structure is not closed")
			break
		}
		if p.enc[p.pos] == '}' {
			p.pos++
			break
		}
		f := p.value()
		if p.err == nil && f.kind != kindWord && f.kind != kindObject && f.kind != kindStruct {
			p.fail("structures with fields other than 64-bit integers are not supported")
		}
		v.words += f.words
	}
	if p.err == nil && v.words == 0 {
		p.fail("an empty structure")
	}
	if v.words == 1 {
		v.kind = kindWord
	}
	return v
}
